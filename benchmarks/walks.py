# SPDX-License-Identifier: Apache-2.0
"""How fast records of a log are walked over: GiB for a second of one core.

    .venv/bin/python -m benchmarks.walks [--messages 200000] [--rounds 3]

The store is what benchmarks/store.py puts, with bodies of 1 KiB and its log in the page cache. The
log is passed as when a store is opened, with CRC; it is appended to a replica, which dispatches it
to queues and index; and the store is looked at as by `txrocketmq store check`, with all its files.
Then the whole store is opened: after its process was killed, which has left all that it wrote, and
without the folders of queues, of the index, or of both, as after a crash of the machine that took
more. With `TXROCKETMQ_KERNEL=off` the same is done without the compiled kernel.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.store_check import write_store
from txrocketmq.broker.kernel.chosen import chosen_kernel, kernel_text
from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.check.stretches import StretchWalk
from txrocketmq.broker.store.disk.dry_files import DryFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.log_walk import LogWalk
from txrocketmq.broker.store.message_store import MessageStore

PIECE_BYTES: Final = 256 * 1024


def log_of(root: str) -> tuple[MappedFileQueue, int]:
    """Returns the files of the log of a store, to be read, and where it ends."""
    log = CommitLog(DryFiles(()), StoreConfig(store_path_root_dir=root)).files
    log.load()
    walk = LogWalk(log, (), check_crc=False)
    walk.pass_all(0)
    return log, walk.position


def passed(kind: type[LogWalk], root: str) -> float:
    """Passes the log by a walk of this kind."""
    log, _ = log_of(root)
    return cpu_s(lambda: kind(log, (), check_crc=True).pass_all(0))


def dispatched(root: str) -> float:
    """Appends the log to a replica, as a slave does, and dispatches it; only that is counted."""
    with tempfile.TemporaryDirectory() as folder:
        store = store_at(folder, broker_role="SLAVE")
        now_ms = time.time_ns() // 1_000_000
        store.load(now_ms)
        spent_s = 0.0
        log, log_end = log_of(root)
        for file in log.mapped_files:
            size_bytes = min(file.size_bytes, log_end - file.from_offset)
            for at in range(0, size_bytes, PIECE_BYTES):
                end = min(at + PIECE_BYTES, size_bytes)
                store.append_raw(file.from_offset + at, file.view[at:end])
                spent_s += cpu_s(partial(dispatch_all, store))
        store.stop(now_ms)
    return spent_s


def store_at(root: str, **settings: str) -> MessageStore:
    """Returns a store as a broker makes it, which is to be opened."""
    kernel = chosen_kernel()
    config = StoreConfig(store_path_root_dir=root, **settings)  # type: ignore[arg-type]
    return MessageStore(config, new_rows=None if kernel is None else kernel.new_rows)


def opened(root: str, lost: Sequence[str] = ()) -> float:
    """Opens the store without some of its folders, which are there again afterwards."""
    now_ms = time.time_ns() // 1_000_000
    for folder in lost:
        shutil.rmtree(Path(root, folder))
    store = store_at(root)
    spent_s = cpu_s(lambda: store.load(now_ms))
    store.stop(now_ms)
    return spent_s


def opened_after_a_kill(root: str) -> float:
    """Opens the store after a process had it open that was killed."""
    if not (pid := os.fork()):
        store_at(root).load(time.time_ns() // 1_000_000)
        os._exit(0)
    os.waitpid(pid, 0)
    return opened(root)


def dispatch_all(store: MessageStore) -> None:
    """Dispatches what has been appended."""
    while store.dispatch():
        pass


def checked(root: str) -> float:
    """Looks at the store in one process."""
    check = StoreCheck(StoreConfig(store_path_root_dir=root))

    def look() -> None:
        if not check.open(time.time_ns() // 1_000_000):
            raise SystemExit(f"benchmarks.walks: {check.refusal}")
        looked = [check.look(part) for part in check.parts()]
        if found := [*check.findings, *check.finish(looked)]:
            raise SystemExit(f"benchmarks.walks: {found}")

    try:
        return cpu_s(look)
    finally:
        check.close()


def cpu_s(work: Callable[[], object]) -> float:
    """Returns the CPU time of some work, in seconds."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Prints the best round of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    loads: dict[str, Callable[[str], float]] = {
        "passed, as at opening": partial(passed, LogWalk),
        "passed, as by store check": partial(passed, StretchWalk),
        "dispatched by a replica": dispatched,
        "all of store check": checked,
        "opened after a kill": opened_after_a_kill,
        "opened without queues": partial(opened, lost=("consumequeue",)),
        "opened without index": partial(opened, lost=("index",)),
        "opened without both": partial(opened, lost=("consumequeue", "index")),
    }
    with tempfile.TemporaryDirectory() as root:
        write_store(root, options.messages)
        _, size_bytes = log_of(root)
        print(f"GiB for a second of a core; kernel: {kernel_text()}")
        for name, work in loads.items():
            best_s = min(work(root) for _ in range(options.rounds))
            print(f"{name:<28} {size_bytes / 2**30 / best_s:6.2f}")


if __name__ == "__main__":
    main()
