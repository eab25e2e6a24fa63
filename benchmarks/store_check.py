# SPDX-License-Identifier: Apache-2.0
"""How fast `txrocketmq store check` reads a store, beside a program that only reads its bytes.

    .venv/bin/python -m benchmarks.store_check [--messages 400000] [--rounds 3]

The store is what benchmarks/store.py puts: one topic, bodies of 1 KiB, with an index. Both programs
use all cores. The other one takes CRC-32 of the files of the log, 1 MiB at a time, from the same
page cache. They take turns, so that a busy machine slows down both. MB/s are of the clock; MB for a
second of CPU, summed over all processes, depend less on what else runs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.store import QUEUES, messages
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore

BATCH: Final = 10_000
COMMAND: Final = Path(sys.executable).with_name("txrocketmq")
FLOOR: Final = """
import mmap, sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from txrocketmq.remoting.primitives.checksum import crc32

def read(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        view = memoryview(mapped)
        for at in range(0, len(view), 1 << 20):
            crc32(view[at : at + (1 << 20)])
        view.release()

if __name__ == "__main__":
    with ProcessPoolExecutor() as pool:
        list(pool.map(read, sorted(Path(sys.argv[1], "commitlog").iterdir())))
"""


class Run(NamedTuple):
    """A run of a program: seconds of the clock, seconds of CPU, and its output."""

    clock_s: float
    cpu_s: float
    text: str


def timed(command: Sequence[str]) -> Run:
    """Runs a program to its end. Raises CalledProcessError when it fails."""
    started, before = time.monotonic(), os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    return Run(time.monotonic() - started, cpu_s, done.stdout)


def write_store(root: str, count: int) -> None:
    """Writes a store that is closed in order."""
    now_ms = time.time_ns() // 1_000_000
    store = MessageStore(StoreConfig(store_path_root_dir=root))
    store.load(now_ms)
    for start in range(0, count, BATCH):
        store.put(messages(BATCH, now_ms + start, QUEUES), now_ms)
        store.tick(now_ms)
    store.stop(now_ms)


def line(name: str, size_bytes: int, run: Run) -> str:
    """Returns a row of the table."""
    megabytes = size_bytes / 1e6
    return f"{name:14} {megabytes / run.clock_s:9,.0f} {megabytes / run.cpu_s:17,.0f}"


def main() -> None:
    """Prints the best round of each program, by CPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    checks, floors = [], []
    with tempfile.TemporaryDirectory() as folder:
        write_store(folder, options.messages)
        for _ in range(options.rounds):
            floors.append(timed([sys.executable, "-c", FLOOR, folder]))
            checks.append(timed([str(COMMAND), "store", "check", folder, "--json"]))
    check = min(checks, key=lambda run: run.cpu_s)
    floor = min(floors, key=lambda run: run.cpu_s)
    report = json.loads(check.text)
    assert report["sound"], report["findings"]
    size_bytes = report["bytes"]
    print(f"{report['messages']:,} messages, {size_bytes:,} bytes, {os.cpu_count()} cores")
    print(f"{'':14} {'MB/s':>9} {'MB/CPU second':>17}")
    print(line("store check", size_bytes, check))
    print(line("CRC of all", size_bytes, floor))


if __name__ == "__main__":
    main()
