# SPDX-License-Identifier: Apache-2.0
"""What it costs to plan reads of a store with very many queues and files.

    .venv/bin/python -m benchmarks.spark_planning [--queues 20000] [--files 10000]

Makes a store in a temporary folder: a log of so many files of 16 KiB, with a few messages in each,
and so many consume queues of full size, 100 in each topic. Prints seconds of CPU and of wall time,
and how many tasks were planned. Spark is not started; it adds some 40 ms for each task. Run it
alone on the machine.
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadAllAvailable
from rich.console import Console
from rich.table import Table

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.reading import Reading
from txrocketmq.spark.planning.split import LogRange
from txrocketmq.spark.stream import StoreStreamReader

FILE_BYTES: Final = 16 << 10
QUEUE_FILE_BYTES: Final = 6_000_000
IN_A_FILE: Final = 10
"""Messages in each file of the log."""
QUEUES_OF_A_TOPIC: Final = 100
FIRST_MS: Final = 1_790_000_000_000
TAGS: Final = ("created", "paid", "shipped", "returned")


def write_store(root: Path, queues: int, files: int) -> int:
    """Writes the store; returns the number of messages."""
    log, units = root / "commitlog", defaultdict[int, list[bytes]](list)
    log.mkdir(parents=True)
    for number in range(files):
        data = b""
        for row in range(number * IN_A_FILE, (number + 1) * IN_A_FILE):
            at, queue, tag = number * FILE_BYTES + len(data), row % queues, TAGS[row % len(TAGS)]
            record = _record(queue, row // queues, at, tag, FIRST_MS + row)
            unit = {"physical_offset": at, "size": len(record), "tags_code": tags_code(tag)}
            units[queue].append(formats.CONSUME_QUEUE_UNIT.build(unit))
            data += record
        data += BLANK.build({"room": FILE_BYTES - len(data), "magic": MAGIC_BLANK})
        _write(log / f"{number * FILE_BYTES:020d}", data, FILE_BYTES)
    for queue in range(queues):
        folder = root / "consumequeue" / _topic(queue) / str(queue % QUEUES_OF_A_TOPIC)
        folder.mkdir(parents=True)
        _write(folder / f"{0:020d}", b"".join(units[queue]), QUEUE_FILE_BYTES)
    (root / "config").mkdir()
    (root / "config/topics.json").write_text(json.dumps({"topicConfigTable": {}}))
    return files * IN_A_FILE


def _topic(queue: int) -> str:
    return f"topic-{queue // QUEUES_OF_A_TOPIC}"


def _record(queue: int, offset: int, at: int, tag: str, stored_ms: int) -> bytes:
    message = MessageExt(
        _topic(queue),
        b"x" * 200,
        0,
        {"TAGS": tag},
        queue_id=queue % QUEUES_OF_A_TOPIC,
        queue_offset=offset,
        commit_log_offset=at,
        born_timestamp=stored_ms,
        store_timestamp=stored_ms,
    )
    message.born_host = message.store_host = Host("127.0.0.1", 10911)
    return encode_message(message)


def _write(path: Path, data: bytes, size: int) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.truncate(size)


class Timings:
    """Measures steps and shows them as a table."""

    def __init__(self) -> None:
        self._table = Table("", "CPU s", "wall s", "tasks")

    def step(self, name: str, run: Callable[[], Any]) -> Any:
        """Runs a step, which returns the planned tasks or anything else."""
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        found = run()
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        tasks = f"{len(found):,}" if isinstance(found, list) else ""
        self._table.add_row(name, f"{cpu_s:.2f}", f"{wall_s:.2f}", tasks)
        return found

    def show(self, title: str) -> None:
        self._table.title = title
        Console(width=100).print(self._table)


def measure(root: Path, timings: Timings) -> None:
    """Plans reads and micro-batches of the store, and reads one task."""

    def reading(**options: str) -> Reading:
        chosen = _options(root, **options)
        return Reading(chosen, Output.of(chosen))

    def plan(**options: str) -> list[Any]:
        return list(reading(**options).parts())

    timings.step("all of it", plan)
    timings.step("one topic", lambda: plan(topic="topic-0"))
    timings.step("all topics by a pattern", lambda: plan(topicPattern="topic-.*"))
    timings.step("some topics by a pattern", lambda: plan(topicPattern="topic-1.*"))
    timings.step("a rare tag", lambda: plan(subExpression="refunded"))
    whole = reading()
    first = whole.parts()[0]
    assert isinstance(first.split, LogRange)
    inside = (first.split.end - first.split.start) // FILE_BYTES
    timings.step(f"a task reads {inside:,} files", lambda: sum(map(len, whole.batches(first))))
    for topic in ({}, {"topic": "topic-0"}):
        options = _options(root, startingOffsets="earliest", **topic)
        stream = StoreStreamReader(options, Output.of(options))
        begin = stream.initialOffset()

        def micro_batch(stream: StoreStreamReader = stream, begin: Any = begin) -> list[Any]:
            end = stream.latestOffset(begin, ReadAllAvailable())
            return list(stream.partitions(begin, end))

        name = "a stream of one topic" if topic else "a stream"
        timings.step(f"{name}: first micro-batch", micro_batch)
        timings.step(f"{name}: another one", micro_batch)


def _options(root: Path, **options: str) -> SourceOptions:
    return SourceOptions.of({"storePath": str(root), "columns": "topic,body", **options})


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queues", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-planning-") as folder:
        root = Path(folder) / "broker-a" / "store"
        messages = write_store(root, asked.queues, asked.files)
        timings = Timings()
        measure(root, timings)
        timings.show(f"{asked.queues:,} queues, {asked.files:,} files, {messages:,} messages")


if __name__ == "__main__":
    main()
