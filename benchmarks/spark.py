# SPDX-License-Identifier: Apache-2.0
"""`make bench-spark`: the cost of reading a store, compared with its lower bounds in the same run.

Two stores are generated once (uniform: 1 KiB bodies; mixed: JSON bodies of 500 bytes on average)
and kept in var/bench-spark. Then, in turn: bare reads and decoding in one process; the official
Java push consumer over a copy of the uniform store, with the original broker; the ingest job;
Spark's own scan of the Parquet table that it wrote; Spark's scans of the stores; micro-batches.
What counts is CPU time of all processes that took part, by message. Leaves a table here and
results.json in var/bench-spark.

    python -m benchmarks.spark --gib 4 --rounds 5
    python -m benchmarks.spark --gib 1 --rounds 1        # quick, about five minutes
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks import loads, official, proc, servers, spark_store
from benchmarks.report import Goal
from compat_tests.jars import JarsUnavailable

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "var" / "bench-spark"
DRAIN: Final = loads.Load("consumer", "drain", "official push consumer")
UNIFORM_TOPIC: Final = "bench"
SMALL_TOPIC: Final = "orders-18"
"""A topic of the mixed store with 1.5 % of its messages."""
DECODE_ROUNDS: Final = 5
JAVA_ROUNDS: Final = 3
TERABYTE_GIB: Final = 1e12 / (1 << 30)
MICRO_BATCH_GOAL_MS: Final = 300.0
LOAD_GOAL_S: Final = 0.15
WORKER_GOAL_BYTES: Final = 200 << 20


@dataclass(frozen=True)
class Cost:
    """What one job cost: seconds of wall time and of CPU, and its messages."""

    job: str
    wall_s: float
    cpu_s: float
    messages: int
    gib: float = 0.0
    """The commit log that was read, in GiB."""
    times_bare: float = 0.0
    """For a decode, the median ratio of its CPU time to that of the bare read before it."""

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / self.messages * 1e6


@dataclass(frozen=True)
class Row:
    """One line of the verdicts: a value, often a ratio of two costs, and its goal, if any."""

    what: str
    value: float
    unit: str
    goal: Goal

    @property
    def verdict(self) -> str:
        if not str(self.goal):
            return ""
        return "met" if self.goal.met(self.value, self.value) else "missed"


@dataclass(frozen=True)
class Stores:
    """The generated stores and how many messages each has."""

    paths: dict[str, Path]
    messages: dict[str, int]
    gib: int

    @classmethod
    def made(cls, gib: int) -> "Stores":
        paths = {kind: OUTPUT / f"{kind}-{gib}" for kind in spark_store.KINDS}
        messages = {}
        for kind, path in paths.items():
            done = path / "messages"
            if not done.exists():
                shutil.rmtree(path, ignore_errors=True)
                print(f"generating {gib} GiB of the {kind} store in {path}", flush=True)
                done.write_text(str(spark_store.write_store(path, kind, gib)))
            messages[kind] = int(done.read_text())
        return cls(paths, messages, gib)


def decoding(stores: Stores) -> dict[str, Cost]:
    """Returns the costs `KIND bare read`, and `KIND decode SET` for each set of columns."""
    costs: dict[str, Cost] = {}
    for kind, path in stores.paths.items():
        command = [sys.executable, "-m", "benchmarks.spark_decode", str(path), "--json"]
        command += ["--only", "header+body", "all", "--rounds", str(DECODE_ROUNDS)]
        for line in _output(command):
            told = json.loads(line)
            name = f"{kind} {told['job']}"
            del told["job"]
            costs[name] = Cost(name, **told)
    return costs


def java_consumer(stores: Stores) -> Cost:
    """Measures the official push consumer and the original broker together, on the uniform store.

    The result is the median of some runs, since this cost varies most.
    """
    total = stores.messages["uniform"]
    load = loads.Load(DRAIN.name, DRAIN.mode, DRAIN.title, {"stored": total})
    windows = loads.Windows(warm_up_ms=0, window_ms=0, drain_messages=0)
    wall_s, cpu_s = [], []
    for _ in range(JAVA_ROUNDS):
        with servers.running("original", OUTPUT, store=stores.paths["uniform"]) as running:
            sample = loads.run(load, running, windows, UNIFORM_TOPIC)
        wall_s.append(total / sample.rate)
        cpu_s.append((sample.broker_cpu_us + sample.client_cpu_us) * total / 1e6)
        print(f"  official push consumer and broker: {cpu_s[-1]:.1f} s of CPU", flush=True)
    job = "uniform Java consumer + broker"
    return Cost(job, median(wall_s), median(cpu_s), total, stores.gib)


def ingest(kind: str, stores: Stores) -> Cost:
    """Measures the ingest job as a user runs it, including its start, into an empty table."""
    table = OUTPUT / f"{kind}-table"
    shutil.rmtree(table, ignore_errors=True)
    script = str(Path(sys.executable).parent / "txrocketmq")
    store = str(stores.paths[kind])
    command = [script, "ingest", "--store", store, "--out", str(table), "--quiet"]
    if kind == "mixed":  # Spark scans its files as plain Parquet, so they have to contain the topic
        command += ["--partition-by", "none"]
    used = proc.run(command)
    name = f"{kind} ingest to Parquet"
    return Cost(name, used.wall_s, used.cpu_s, stores.messages[kind], stores.gib)


def spark_jobs(kind: str, stores: Stores, rounds: int) -> tuple[dict[str, Cost], int, list[float]]:
    """Returns costs by name, the largest Python worker in bytes, and micro-batches in ms."""
    command = [sys.executable, "-m", "benchmarks.spark_jobs", "--store", str(stores.paths[kind])]
    if kind == "mixed":
        command += ["--topic", SMALL_TOPIC, "--parquet", str(OUTPUT / f"{kind}-table"), "--stream"]
    runs: dict[str, list[dict[str, Any]]] = {}
    for line in _output([*command, "--rounds", str(rounds)]):
        told = json.loads(line)
        runs.setdefault(told["job"], []).append(told)
    batches = [float(ms) for told in runs.pop("micro-batch", []) for ms in told["ms"]]
    peak = max(told["worker_peak_bytes"] for job in runs.values() for told in job)
    costs = {}
    for job, of_job in runs.items():
        name = f"{kind} Spark {job}"
        wall_s = median(told["wall_s"] for told in of_job)
        cpu_s = median(told["cpu_s"] for told in of_job)
        costs[name] = Cost(name, wall_s, cpu_s, stores.messages[kind], stores.gib)
    return costs, peak, batches


def verdicts(costs: dict[str, Cost], peak_bytes: int, batches_ms: list[float]) -> list[Row]:
    """Returns the goals, each with what was measured in this run."""

    def times(upper: str, lower: str) -> float:
        return costs[upper].cpu_us / costs[lower].cpu_us

    java = "uniform Java consumer + broker"
    rows = []
    for columns, in_process, in_spark, by_parquet in (
        ("header+body", 0.7, 2.2, 1.3),
        ("all", 1.3, 3.5, 1.6),
    ):
        for job, limit in (("decode", in_process), ("Spark", in_spark)):
            value = costs[f"mixed {job} {columns}"].cpu_us
            rows.append(Row(f"mixed: {job} {columns}", value, "us", Goal(max_value=limit)))
        ratio = times(f"mixed Spark {columns}", f"mixed Spark parquet scan, {columns}")
        what = f"mixed: Spark {columns} / Spark's scan of Parquet"
        rows.append(Row(what, ratio, "x", Goal(max_ratio=by_parquet)))
    for job in ("decode header+body", "Spark header+body", "Spark all", "ingest to Parquet"):
        goal = Goal(min_ratio=2.5 if job == "ingest to Parquet" else None)
        rows.append(
            Row(f"Java consumer + broker / {job}", times(java, f"uniform {job}"), "x", goal)
        )
    selected = times("mixed Spark all", "mixed Spark one topic, all")
    rows.append(Row("mixed: whole scan / one small topic", selected, "x", Goal(min_ratio=10)))
    load_s = costs["mixed Spark load"].wall_s
    rows.append(Row("warm load()", load_s, "s", Goal(max_value=LOAD_GOAL_S)))
    peak = peak_bytes / (1 << 20)
    rows.append(Row("largest Python worker", peak, "MiB", Goal(max_value=WORKER_GOAL_BYTES >> 20)))
    overhead = median(batches_ms)
    rows.append(Row("micro-batch of 1 MiB", overhead, "ms", Goal(max_value=MICRO_BATCH_GOAL_MS)))
    return rows


def publish(costs: dict[str, Cost], rows: list[Row], machine: dict[str, Any]) -> None:
    """Prints both tables and writes results.json."""
    console = Console(width=110)
    table = Table("job", "wall s", "CPU s", "us CPU a message", "core-seconds for 1 TB")
    for cost in costs.values():
        terabyte = f"{cost.cpu_s / cost.gib * TERABYTE_GIB:,.0f}" if cost.gib else "-"
        table.add_row(
            cost.job, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", f"{cost.cpu_us:.2f}", terabyte
        )
    console.print(table)
    goals = Table("goal", "measured", "wanted", "")
    for row in rows:
        goals.add_row(row.what, f"{row.value:.3g} {row.unit}", str(row.goal), row.verdict)
    console.print(goals)
    results = {
        "machine": machine,
        "costs": [{**asdict(cost), "cpu_us": cost.cpu_us} for cost in costs.values()],
        "goals": [{**asdict(row), "verdict": row.verdict} for row in rows],
    }
    path = OUTPUT / "results.json"
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print(f"Written: {path}")


def _output(command: list[str]) -> Iterator[str]:
    """Yields the JSON lines of a command as they come. Raises CalledProcessError when it fails."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                print(f"  {line.strip()[:150]}", flush=True)
                yield line
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def main(argv: list[str]) -> int:
    """Measures everything in turn; returns 0 when all was measured, even if goals were missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=int, default=4, help="commit log of each store")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    absent = [command for command in ("java", "javac") if shutil.which(command) is None]
    if absent:
        print(f"benchmarks.spark: needs {' and '.join(absent)} on the PATH", file=sys.stderr)
        return 1
    OUTPUT.mkdir(parents=True, exist_ok=True)
    stores = Stores.made(options.gib)
    try:
        costs = decoding(stores)
        java = java_consumer(stores)
        costs[java.job] = java
        for kind in stores.paths:
            cost = ingest(kind, stores)
            costs[cost.job] = cost
        peak = 0
        batches: list[float] = []
        for kind in stores.paths:
            of_kind, peak_of_kind, batches_of_kind = spark_jobs(kind, stores, options.rounds)
            costs |= of_kind
            peak = max(peak, peak_of_kind)
            batches += batches_of_kind
    except (
        servers.ServerError,
        loads.LoadError,
        official.LoadNotCompiled,
        JarsUnavailable,
        subprocess.CalledProcessError,
    ) as error:
        print(f"benchmarks.spark: {error}", file=sys.stderr)
        return 1
    publish(costs, verdicts(costs, peak, batches), official.machine())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
