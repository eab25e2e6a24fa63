# SPDX-License-Identifier: Apache-2.0
"""What benchmarks share that compare several programs in rounds, load by load.

A load program writes one JSON object a line: "start" and "end" at the edges of the window in which
it measures, and then its result. What counts are the medians of all rounds.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks import official, proc, servers
from benchmarks.choices import some_of

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "var" / "bench"
DEADLINE_S: Final = 240.0
MUCH: Final = 0.2
"""In cores: if other processes took this many, the figures say little."""


Columns = Mapping[str, Callable[..., Any]]
"""How the figures of several samples become one, by their names."""
MEDIAN: Final = statistics.median


class LoadError(Exception):
    """The load ended without a result; the message has its output."""


class Named(Protocol):
    """A load."""

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def title(self) -> str:
        """Its name in the table."""


class Sampled(Protocol):
    """What one run of a load has given."""

    @property
    def load(self) -> str:
        """The name of the load."""

    @property
    def others_cores(self) -> float:
        """Cores that processes other than those that are known took."""


@dataclass(frozen=True)
class Measured:
    """What was measured in the window of one load."""

    messages: int
    seconds: float
    """How long the window was, as it is seen here."""
    cpu_us: float
    """CPU time of the process that is looked at per message, with all threads."""
    memory_bytes: int
    """Its memory at the end."""
    others_cores: float
    """Cores that processes other than the load, the servers and that one took."""
    result: dict[str, Any]
    """What the load program has reported."""


def measured(
    command: Sequence[str],
    log: Path,
    running: servers.Servers,
    memory: Callable[[int], int],
    *,
    pid: int | None = None,
    home: Path | None = None,
) -> Measured:
    """Runs a load program and looks at a process meanwhile: at the program itself without `pid`.

    `home` is the folder in which it runs, by default that of the servers. Raises LoadError.
    """
    home = home or running.home
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=home,
            env={**os.environ, "HOME": str(running.home), "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    looked_at = process.pid if pid is None else pid
    known = {process.pid, running.broker_pid, running.namesrv_pid} - {looked_at}
    overdue = threading.Timer(DEADLINE_S, os.kill, (process.pid, signal.SIGKILL))
    overdue.start()
    edges: dict[str, tuple[float, float, float, float]] = {}
    result: dict[str, Any] | None = None
    memory_bytes = 0
    try:
        for event in _events(process):
            if event["event"] == "result":
                result = event
                continue
            edges[event["event"]] = (
                time.perf_counter(),
                proc.cpu_seconds(looked_at),
                sum(map(proc.cpu_seconds, known)),
                proc.machine_cpu_seconds(),
            )
            memory_bytes = memory(looked_at)
    finally:
        overdue.cancel()
        process.kill()
        process.wait()
    if result is None or not result["messages"]:
        raise LoadError(f"{log.stem} failed: {log.read_text(errors='replace')[-2000:]}")
    seconds, own, theirs, machine = (
        end - start for start, end in zip(edges["start"], edges["end"], strict=True)
    )
    messages = result["messages"]
    return Measured(
        messages,
        seconds,
        own / messages * 1e6,
        memory_bytes,
        max(0.0, machine - own - theirs) / seconds,
        result,
    )


def _events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yields the JSON lines of a process; some clients also print log lines among them."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and "event" in (event := json.loads(line)):
            yield event


def busy(others_cores: float) -> str:
    """Returns what a line of the output says about other processes, if there is much to say."""
    return f", others {others_cores:.1f} cores" if others_cores >= 0.1 else ""


def medians(
    samples: Iterable[Sampled],
    loads: Iterable[Named],
    field: str,
    names: Iterable[str],
    columns: Columns,
) -> list[dict[str, Any]]:
    """Returns a row for each load and each of the `names` that samples have in a field."""
    samples, names = list(samples), list(names)
    rows = []
    for load in loads:
        for name in names:
            its = [
                each for each in samples if (each.load, getattr(each, field)) == (load.name, name)
            ]
            if its:
                figures = {
                    column: how([getattr(each, column) for each in its])
                    for column, how in columns.items()
                }
                rows.append(
                    {
                        "load": load.name,
                        "title": load.title,
                        field: name,
                        **figures,
                        "runs": len(its),
                    }
                )
    return rows


def parser(module: str, about: str, loads: Iterable[Named]) -> argparse.ArgumentParser:
    """Returns the parser of the options that all of these benchmarks have."""
    names = [load.name for load in loads]
    made = argparse.ArgumentParser(prog=f"benchmarks.{module}", description=about.splitlines()[0])
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--quick", action="store_true", help="short windows, one round")
    made.add_argument("--only", type=some_of(names), default=names, help="loads, comma-separated")
    return made


def run(
    module: str,
    options: argparse.Namespace,
    one_round: Callable[[], Sequence[Any]],
    rows_of: Callable[[Sequence[Any]], list[dict[str, Any]]],
    table: Callable[[list[dict[str, Any]]], str],
    errors: tuple[type[Exception], ...],
) -> list[Any]:
    """Runs all rounds, prints the table, writes MODULE.json; returns the samples.

    Exits with 1 if a server cannot be run, or one of the `errors` is raised.
    """
    OUTPUT.mkdir(parents=True, exist_ok=True)
    samples: list[Any] = []
    expected: tuple[type[Exception], ...] = (servers.ServerError, *errors)
    try:
        for _ in range(1 if options.quick else options.rounds):
            samples += one_round()
    except expected as error:
        print(f"benchmarks.{module}: {error}", file=sys.stderr)
        sys.exit(1)
    others = max((each.others_cores for each in samples), default=0.0)
    content = {
        "date": time.strftime("%Y-%m-%d"),
        "quick": options.quick,
        "machine": official.machine(),
        "others_cores": others,
        "rows": rows_of(samples),
        "samples": [asdict(each) for each in samples],
    }
    path = OUTPUT / f"{module}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"\n{table(content['rows'])}\n\nWritten: {path}")
    if others >= MUCH:
        print(f"Other processes used up to {others:.1f} cores meanwhile: run again when quiet.")
    return samples
