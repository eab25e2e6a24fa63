# SPDX-License-Identifier: Apache-2.0
"""The store alone: microseconds of CPU for a message, without network, headers or processors.

    .venv/bin/python -m benchmarks.store [--messages 100000] [--directory DIR]

Messages are those of the Java client's load: a body of 1 KiB, a unique key, no tag, in turn for
four queues of one topic; so a pull of one queue finds others between. File sizes are the defaults.
Each number is the best of some rounds, since other processes only ever add.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage

TOPIC: Final = "bench"
QUEUES: Final = 4
BODY: Final = os.urandom(1024)
HOST: Final = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
BATCHES: Final = (1, 16, 64)
PULLED: Final = 32
ROUNDS: Final = 5
MANY: Final = 1 << 22


def messages(count: int, now_ms: int, queues: int) -> list[PutMessage]:
    """Makes messages as the send processor does; the producer makes fifty per millisecond."""
    made = []
    for number in range(count):
        key = f"7F0000010A1B18B4AAC2{now_ms + number // 50 & 0xFFFFFFFF:08X}{number & 0xFFFF:04X}"
        text = f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02CLUSTER\x01DefaultCluster\x02".encode()
        place = number % queues
        made.append(PutMessage(TOPIC, place, BODY, text, 0, now_ms, HOST, HOST, key, None, None))
    return made


def cpu_us(work: Callable[[], int]) -> float:
    """Returns the CPU time per message; `work` returns the number of messages."""
    started = time.process_time()
    count = work()
    return (time.process_time() - started) / count * 1e6


def puts(store: MessageStore, batch: int, count: int, queues: int = QUEUES) -> float:
    """Returns the time to put a message in batches of this size, with its share of the index."""
    now_ms = time.time_ns() // 1_000_000

    def put_all(made: list[PutMessage]) -> int:
        for start in range(0, len(made), batch):
            store.put(made[start : start + batch], now_ms)
        return len(made)

    best = float("inf")
    for _ in range(ROUNDS):
        made = messages(count // ROUNDS, now_ms, queues)
        best = min(best, cpu_us(partial(put_all, made)))
        store.tick(now_ms)
    return best


def gets(store: MessageStore, codes: frozenset[int] | None = None) -> float:
    """Returns the time to get a message in pulls of 32 from one queue."""

    def get_all() -> int:
        count = offset = 0
        while True:
            result = store.get(TOPIC, 0, offset, PULLED, MANY, codes)
            if not result.count:
                return count
            count += result.count
            offset = result.next_begin_offset

    return min(cpu_us(get_all) for _ in range(ROUNDS))


def measured(directory: str, count: int) -> Iterator[tuple[str, float]]:
    """Yields the name of each measurement, and the microseconds of a message."""
    for batch in BATCHES:
        store = opened(directory)
        yield f"put, in batches of {batch}", puts(store, batch, count)
    yield f"get {PULLED}, others between", gets(store)
    yield f"get {PULLED}, others between, by tag", gets(store, frozenset([0]))
    store = opened(directory)
    puts(store, BATCHES[-1], count, queues=1)
    yield f"get {PULLED}, side by side", gets(store)
    now_ms = time.time_ns() // 1_000_000
    stopped = time.perf_counter()
    store.stop(now_ms)
    yield "stop (wall time)", (time.perf_counter() - stopped) / count * 1e6
    started = time.perf_counter()
    again = MessageStore(store.config)
    again.load(now_ms)
    yield "start, checking all (wall time)", (time.perf_counter() - started) / count * 1e6
    again.stop(now_ms)


def opened(directory: str) -> MessageStore:
    """Opens an empty store."""
    root = tempfile.mkdtemp(dir=directory)
    store = MessageStore(StoreConfig(store_path_root_dir=root, disk_space_warning_level_ratio=90))
    store.load(time.time_ns() // 1_000_000)
    return store


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description="Measures the store alone.")
    parser.add_argument("--messages", type=int, default=100_000, help="for each line")
    parser.add_argument("--directory", default=None, help="where to make stores (default: TMPDIR)")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(dir=arguments.directory)
    try:
        for name, microseconds in measured(directory, arguments.messages):
            print(f"{name:<36} {microseconds:8.2f} us")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
