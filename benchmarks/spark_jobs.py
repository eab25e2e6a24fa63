# SPDX-License-Identifier: Apache-2.0
"""Jobs over stores and tables in one Spark session, each measured and printed as a line of JSON.

    .venv/bin/python -m benchmarks.spark_jobs --store DIR [--topic NAME [--conditions]]
        [--parquet DIR] [--cores 2]

CPU is that of this process and of all that descend from it: the JVM and Spark's Python workers.
A job runs `--rounds` times after one run over a single topic that warms the session up.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks import proc
from benchmarks.choices import some_of
from benchmarks.spark_decode import COLUMN_SETS
from txrocketmq.spark import register

FAST_JVM: Final = (
    "-XX:+UseParallelGC"
    " -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
"""As docs/spark.md advises for throughput: without looking at each value of an Arrow batch whether
it lies inside.
"""
TRIGGER_BYTES: Final = 1 << 20
MICRO_BATCHES: Final = 20


def session(cores: int) -> SparkSession:
    """Opens a local session with a small heap, since rows only pass through it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.buffer.size", "1048576")
        .config("spark.driver.extraJavaOptions", FAST_JVM)
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    register(made)
    return made


def noop(frame: DataFrame) -> None:
    """Reads all rows into the JVM and forgets them."""
    frame.write.format("noop").mode("overwrite").save()


def store_frame(
    spark: SparkSession, store: Path, columns: tuple[str, ...], **options: str
) -> DataFrame:
    """Returns the messages of a store with these columns."""
    reader = spark.read.format("rocketmq").option("storePath", str(store))
    return reader.option("columns", ",".join(columns)).options(**options).load()


def worker_peak_bytes() -> int:
    """Returns the largest peak memory of the Python processes of Spark below this one."""
    peak = 0
    for pid in proc.descendants(os.getpid()):
        program, *arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"python" in program and any(b"pyspark" in argument for argument in arguments):
            peak = max(peak, proc.peak_resident_bytes(pid))
    return peak


def measured(name: str, run: Callable[[], None]) -> dict[str, Any]:
    """Runs the job once; returns its seconds of wall time and of CPU."""
    cpu, wall = proc.tree_cpu_seconds(os.getpid()), time.monotonic()
    run()
    return {
        "job": name,
        "wall_s": time.monotonic() - wall,
        "cpu_s": proc.tree_cpu_seconds(os.getpid()) - cpu,
        "worker_peak_bytes": worker_peak_bytes(),
    }


def micro_batch_ms(spark: SparkSession, store: Path) -> list[int]:
    """Returns how long each micro-batch of a megabyte took, in ms, without the first ones."""
    with tempfile.TemporaryDirectory() as scratch:
        stream = (
            spark.readStream.format("rocketmq")
            .option("storePath", str(store))
            .option("startingOffsets", "earliest")
            .option("maxBytesPerTrigger", str(TRIGGER_BYTES))
            .option("columns", "topic,queueOffset")
            .load()
        )
        query = (
            stream.writeStream.format("noop")
            .option("checkpointLocation", scratch)
            .trigger(processingTime="0 seconds")
            .start()
        )
        try:
            deadline = time.monotonic() + 120
            while query.isActive and time.monotonic() < deadline:
                progress = query.recentProgress
                if len(progress) > MICRO_BATCHES:
                    return [p["durationMs"]["triggerExecution"] for p in progress[3:]]
                time.sleep(0.2)
        finally:
            query.stop()
    raise RuntimeError("the stream made no progress in two minutes")


def jobs(spark: SparkSession, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Yields name and action of each job that the options ask for; the action includes loading."""

    def scan(columns: tuple[str, ...], **chosen: str) -> Callable[[], None]:
        return lambda: noop(store_frame(spark, options.store, columns, **chosen))

    def filtered(columns: tuple[str, ...], condition: str) -> Callable[[], None]:
        return lambda: noop(store_frame(spark, options.store, columns).where(condition))

    def parquet_scan(columns: tuple[str, ...]) -> Callable[[], None]:
        return lambda: noop(spark.read.parquet(str(options.parquet)).select(*columns))

    yield "load", lambda: store_frame(spark, options.store, COLUMN_SETS["all"])
    for name in options.sets:
        yield name, scan(COLUMN_SETS[name])
        if options.topic:
            yield f"one topic, {name}", scan(COLUMN_SETS[name], topic=options.topic)
        if options.topic and options.conditions:
            condition = f"topic = '{options.topic}'"
            yield f"option where, {name}", scan(COLUMN_SETS[name], where=condition)
            yield f"where of the query, {name}", filtered(COLUMN_SETS[name], condition)
        if options.parquet:
            yield f"parquet scan, {name}", parquet_scan(COLUMN_SETS[name])


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.spark_jobs", description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--sets", type=some_of(COLUMN_SETS), default=["header+body", "all"])
    parser.add_argument("--topic", help="a topic with a small share, to be selected")
    parser.add_argument(
        "--conditions", action="store_true", help="that topic by conditions, too, of both kinds"
    )
    parser.add_argument("--parquet", type=Path, help="a table of the same rows, to be scanned")
    parser.add_argument("--stream", action="store_true", help="micro-batches, too")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Runs the jobs in turn, round by round."""
    options = _arguments(argv)
    spark = session(options.cores)
    noop(spark.read.format("rocketmq").option("storePath", str(options.store)).load().limit(100))
    for _ in range(options.rounds):
        for name, run in jobs(spark, options):
            print(json.dumps(measured(name, run)), flush=True)
    if options.stream:
        times = micro_batch_ms(spark, options.store)
        print(json.dumps({"job": "micro-batch", "ms": times}), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
