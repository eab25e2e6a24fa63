# SPDX-License-Identifier: Apache-2.0
"""Decoding a commit log to Arrow: CPU a message, beside a bare read of the same bytes.

    .venv/bin/python -m benchmarks.spark_decode STORE [--rounds 3] [--only NAME...]

Reads the files of the log in windows of 32 MiB into one buffer, and makes batches of about 4 MiB,
as a Spark worker does, in one thread. CPU is that of this process, the least of some rounds: other
processes only ever add. `benchmarks.spark_store` writes stores to measure with.
"""

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from txrocketmq.spark import schema
from txrocketmq.spark.decode import Decoder
from txrocketmq.spark.records import Records
from txrocketmq.spark.walk import Stop, walk

WINDOW_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 4 << 20
_ALL: Final = tuple(column.name for column in schema.default_columns(schema.MESSAGES))
_FROM_PROPERTIES: Final = ("properties", "tags", "keys", "uniqKey")
_HEADER: Final = tuple(
    name for name in _ALL if name not in (*_FROM_PROPERTIES, "body", "brokerName")
)
SETS: Final[dict[str, tuple[str, ...]]] = {
    "one number": ("queueId",),
    "header": _HEADER,
    "body": ("body",),
    "header+body": (*_HEADER, "body"),
    "header+body+tags,keys": (*_HEADER, "body", "tags", "keys"),
    "header+body+properties": (*_HEADER, "body", "properties"),
    "all default columns": _ALL,
    "all, bodies checked": (*_ALL, "crcOk"),
}


class Measured(NamedTuple):
    """Of a run over all files."""

    cpu_s: float
    messages: int


def log_files(store: Path) -> list[Path]:
    """The files of the commit log, in order."""
    return sorted((store / "commitlog").iterdir())


def read_bare(files: Sequence[Path], buffer: NDArray[np.uint8]) -> int:
    """Only reads; no messages."""
    for path in files:
        file = os.open(path, os.O_RDONLY)
        at = 0
        while got := os.preadv(file, [buffer.data], at):
            at += got
        os.close(file)
    return 0


def windows(files: Sequence[Path], buffer: NDArray[np.uint8]) -> Iterator[Records]:
    """The records of all files, a window at a time."""
    for path in files:
        first_offset = int(path.name)
        file = os.open(path, os.O_RDONLY)
        at = 0
        while got := os.preadv(file, [buffer.data], at):
            found = walk(buffer[:got], first_offset + at)
            yield Records(buffer[:got], found.starts, first_offset + at)
            if found.reason not in (Stop.PARTIAL, Stop.END) or not len(found.starts):
                break
            at += found.stop
        os.close(file)


def decode(files: Sequence[Path], buffer: NDArray[np.uint8], columns: Sequence[str]) -> int:
    """Makes batches of all messages; how many there are."""
    decoder = Decoder(columns, broker_name="broker-a")
    messages = 0
    for records in windows(files, buffer):
        ends = records.starts // BATCH_BYTES
        cuts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(records)]
        for start, end in itertools.pairwise(cuts):
            for decoded in decoder.decode(records.slice(start, end)):
                messages += decoded.batch.num_rows
                assert not decoded.bad
    return messages


def least_cpu(work: Callable[[], int], rounds: int) -> Measured:
    """The round that took the least CPU."""
    best = Measured(float("inf"), 0)
    for _ in range(rounds):
        started = time.process_time()
        messages = work()
        best = min(best, Measured(time.process_time() - started, messages))
    return best


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(SETS), default=list(SETS))
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    files = log_files(arguments.store)
    size_gib = sum(path.stat().st_size for path in files) / (1 << 30)
    buffer = np.zeros(WINDOW_BYTES, np.uint8)
    bare = least_cpu(lambda: read_bare(files, buffer), arguments.rounds)
    print(f"{'':24}{'CPU s/GiB':>10}{'us/message':>12}{'GiB/cpu-s':>11}{'x bare read':>13}")
    print(f"{'bare read':24}{bare.cpu_s / size_gib:10.3f}{'':12}{size_gib / bare.cpu_s:11.2f}")
    for name in arguments.only:
        columns = SETS[name]
        found = least_cpu(lambda columns=columns: decode(files, buffer, columns), arguments.rounds)
        print(
            f"{name:24}{found.cpu_s / size_gib:10.3f}{found.cpu_s / found.messages * 1e6:12.3f}"
            f"{size_gib / found.cpu_s:11.2f}{found.cpu_s / bare.cpu_s:13.2f}"
        )


if __name__ == "__main__":
    main()
