# SPDX-License-Identifier: Apache-2.0
"""Decoding a commit log to Arrow: CPU for a message, compared with a bare read of the same bytes.

    .venv/bin/python -m benchmarks.spark_decode STORE [--rounds 7] [--only NAME...]

Reads the files of the log in windows of 8 MiB into one buffer, and makes a batch of each, as a
Spark worker does, in one thread. The bare read fills a buffer of 32 MiB again and again: one
that stays in the processor's cache would measure that cache. Each round does everything once, the
bare read first; CPU is that of this process, the median of the rounds; the multiple of the bare
read is taken in each round and is again the median. `benchmarks.spark_store` writes stores to
measure with.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from txrocketmq.spark.arrow import schema
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Stop, walk
from txrocketmq.spark.columns.decode import Decoder

WINDOW_BYTES: Final = 8 << 20
BARE_WINDOW_BYTES: Final = 32 << 20
BARE_READ: Final = "bare read"
_ALL: Final = tuple(column.name for column in schema.default_columns(schema.MESSAGES))
_FROM_PROPERTIES: Final = ("properties", "tags", "keys", "uniqKey")
_HEADER: Final = tuple(
    name for name in _ALL if name not in (*_FROM_PROPERTIES, "body", "brokerName")
)
COLUMN_SETS: Final[dict[str, tuple[str, ...]]] = {
    "one number": ("queueId",),
    "header": _HEADER,
    "body": ("body",),
    "header+body": (*_HEADER, "body"),
    "header+body+tags,keys": (*_HEADER, "body", "tags", "keys"),
    "header+body+properties": (*_HEADER, "body", "properties"),
    "all": _ALL,
    "all, CRC checked": (*_ALL, "crcOk"),
}


class Window(NamedTuple):
    """The result of working on a piece of a file."""

    end: int
    """Where the next piece starts; 0 after the last one of a file."""
    messages: int


Work = Callable[[int, int, int], Window]
"""Works on a piece, given the file, the physical offset of its start, and the position in it."""


def log_files(store: Path) -> list[Path]:
    """Returns the files of the commit log, in order."""
    return sorted((store / "commitlog").iterdir())


def bare_read(buffer: NDArray[np.uint8]) -> Work:
    """Returns work that only reads."""

    def work(file: int, _: int, at: int) -> Window:
        got = os.preadv(file, [buffer.data], at)
        return Window(at + got if got == len(buffer) else 0, 0)

    return work


def decoding(buffer: NDArray[np.uint8], columns: Sequence[str]) -> Work:
    """Returns work that reads, and makes batches of these columns."""
    decoder = Decoder(columns, broker_name="broker-a")

    def work(file: int, first_offset: int, at: int) -> Window:
        there = buffer[: os.preadv(file, [buffer.data], at)]
        found = walk(there, first_offset + at)
        records = Records(there, found.starts, first_offset + at, read=found.heads)
        messages = 0
        for decoded in decoder.decode(records):
            messages += decoded.batch.num_rows
            assert not decoded.bad
        more = found.reason in (Stop.PARTIAL, Stop.END) and len(found.starts)
        return Window(at + found.stop if more else 0, messages)

    return work


class Cost(NamedTuple):
    """The cost of one kind of work on all files: seconds, and the messages made."""

    cpu_s: float
    wall_s: float
    messages: int
    times_bare: float = 1.0
    """Its CPU time, as a multiple of a bare read's."""


def measured(files: Sequence[Path], works: Mapping[str, Work], rounds: int) -> dict[str, Cost]:
    """Measures what each work costs; the first one is the bare read.

    In a round each of them goes over all files once. So no window is still in the processor's
    caches, and what disturbs the machine for a while disturbs them alike.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(rounds):
        of_round = {name: _cost(files, work) for name, work in works.items()}
        bare_s = of_round[BARE_READ].cpu_s
        for name, cost in of_round.items():
            costs[name].append(cost._replace(times_bare=cost.cpu_s / bare_s))
    return {name: _median(of_rounds) for name, of_rounds in costs.items()}


def _median(costs: Sequence[Cost]) -> Cost:
    """Returns the median of each field."""
    cpu_s, wall_s, messages, times_bare = map(median, zip(*costs, strict=True))
    return Cost(cpu_s, wall_s, int(messages), times_bare)


def _cost(files: Sequence[Path], work: Work) -> Cost:
    messages = 0
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    for path in files:
        with path.open("rb", buffering=0) as file:
            window = Window(0, 0)
            while True:
                window = work(file.fileno(), int(path.name), window.end)
                messages += window.messages
                if not window.end:
                    break
    return Cost(time.process_time() - cpu_s, time.perf_counter() - wall_s, messages)


def show(costs: dict[str, Cost], gib: float) -> None:
    """Prints a table."""
    print(f"{'':24}{'CPU s/GiB':>10}{'us/message':>12}{'GiB/cpu-s':>11}{'x bare read':>13}")
    for name, cost in costs.items():
        us = f"{cost.cpu_s / cost.messages * 1e6:.3f}" if cost.messages else ""
        print(
            f"{name:24}{cost.cpu_s / gib:10.3f}{us:>12}"
            f"{gib / cost.cpu_s:11.2f}{cost.times_bare:13.2f}"
        )


def show_json(costs: dict[str, Cost], gib: float) -> None:
    """Prints one line of JSON for each cost, for `benchmarks.spark`."""
    messages = max(cost.messages for cost in costs.values())
    for name, cost in costs.items():
        job = name if name == BARE_READ else f"decode {name}"
        print(json.dumps({**cost._asdict(), "messages": messages, "job": job, "gib": gib}))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=list(COLUMN_SETS), default=list(COLUMN_SETS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    files = log_files(arguments.store)
    buffer = np.zeros(WINDOW_BYTES, np.uint8)
    works = {BARE_READ: bare_read(np.zeros(BARE_WINDOW_BYTES, np.uint8))}
    works |= {name: decoding(buffer, COLUMN_SETS[name]) for name in arguments.only}
    costs = measured(files, works, arguments.rounds)
    gib = sum(path.stat().st_size for path in files) / (1 << 30)
    (show_json if arguments.json else show)(costs, gib)


if __name__ == "__main__":
    main()
