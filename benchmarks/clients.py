# SPDX-License-Identifier: Apache-2.0
"""`make bench-client`: the same loads on our Python client, the Java one and librocketmq's.

All of them talk to one of our brokers, one after the other, with bodies of 1 KiB. In each round the
servers are new; what counts are the medians. Prints a table, and leaves clients.json in var/bench.

    python -m benchmarks.clients --quick
    python -m benchmarks.clients --clients ours,java --only push,lite
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import official, proc, servers
from benchmarks.choices import some_of
from compat_tests import python_client
from compat_tests.jars import JarsUnavailable
from txrocketmq.client import aio

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "var" / "bench"
DEADLINE_S: Final = 240.0
CLIENTS: Final = ("ours", "java", "librocketmq")
FILLED: Final = "bench-filled"
MUCH: Final = 0.2
"""In cores: if other processes took this many, the figures say little."""
_BATCH: Final = 64


@dataclass(frozen=True)
class Load:
    """A load: the mode and the options of each client; None if a client does not have it."""

    name: str
    title: str
    ours: tuple[str, dict[str, int]]
    java: tuple[str, dict[str, int]] | None
    librocketmq: tuple[str, dict[str, int]] | None = None
    drains: bool = False


LOADS: Final = (
    Load("sync", "sync send, 1 thread", ("sync", {}), ("sync", {"threads": 1}), ("sync", {})),
    Load(
        "async",
        "async send, 512 in flight",
        ("async", {"in-flight": 512}),
        ("async", {"threads": 1, "in-flight": 512}),
    ),
    Load(
        "push",
        "push, 1 message a call",
        ("push", {"batch": 1}),
        ("drain", {"consume-batch": 1}),
        ("push", {}),
        drains=True,
    ),
    Load(
        "push32",
        "push, up to 32 messages a call",
        ("push", {"batch": 32}),
        ("drain", {"consume-batch": 32}),
        drains=True,
    ),
    Load("lite", "lite pull", ("lite", {}), ("lite", {}), drains=True),
)


@dataclass(frozen=True)
class Windows:
    """How long sends warm up and count, and how many messages are drained."""

    warm_up_ms: int
    window_ms: int
    messages: int


FULL: Final = Windows(4_000, 6_000, 300_000)
QUICK: Final = Windows(1_500, 2_500, 100_000)


@dataclass(frozen=True)
class Sample:
    """What one run of a load with one client has given."""

    load: str
    client: str
    rate: float
    """Messages per second."""
    client_cpu_us: float
    """CPU time of the client's process per message, with all threads."""
    memory_bytes: int
    """Anonymous memory of the client at the end."""
    others_cores: float
    """Cores that processes other than the client and the servers took."""


class LoadError(Exception):
    """The load ended without a result; the message has its output."""


def measure(load: Load, client: str, running: servers.Servers, windows: Windows) -> Sample | None:
    """Runs a load with a client; None if the client does not have it. Raises LoadError."""
    how = getattr(load, client)
    if how is None:
        return None
    # Java's load program drains each topic with one group, and so only once.
    topic = f"{FILLED}-{load.name}" if load.drains else f"bench-{load.name}-{client}"
    command = _command(client, running, topic, how, windows, load)
    log = running.home / f"load-{load.name}-{client}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=running.home,
            env={**os.environ, "HOME": str(running.home), "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
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
            own = proc.cpu_seconds(process.pid)
            theirs = proc.cpu_seconds(running.broker_pid) + proc.cpu_seconds(running.namesrv_pid)
            edges[event["event"]] = (
                time.perf_counter(),
                own,
                theirs,
                proc.machine_cpu_seconds(),
            )
            if event["event"] == "end":
                memory_bytes = proc.anonymous_bytes(process.pid)
    finally:
        overdue.cancel()
        process.kill()
        process.wait()
    if result is None or not result["messages"]:
        raise LoadError(
            f"{load.name} of {client} failed: {log.read_text(errors='replace')[-2000:]}"
        )
    seconds, own, theirs, machine = (
        end - start for start, end in zip(edges["start"], edges["end"], strict=True)
    )
    messages = result["messages"]
    return Sample(
        load.name,
        client,
        messages / seconds,
        own / messages * 1e6,
        memory_bytes,
        max(0.0, machine - own - theirs) / seconds,
    )


def _command(
    client: str,
    running: servers.Servers,
    topic: str,
    how: tuple[str, dict[str, int]],
    windows: Windows,
    load: Load,
) -> list[str]:
    mode, own = how
    options = {"warmup-ms": windows.warm_up_ms, "window-ms": windows.window_ms, **own}
    if load.drains:
        options |= {"messages": windows.messages, "stored": windows.messages}
    words = [running.namesrv_address, topic, mode, *(f"{k}={v}" for k, v in options.items())]
    if client == "java":
        return [
            "java", "-Xms512m", "-Xmx1g", f"-Drocketmq.client.logRoot={running.home}/client-logs",
            "-Drocketmq.client.logLevel=WARN", "-cp", official.load_classpath(), "Load", *words,
        ]  # fmt: skip
    if client == "librocketmq":
        program = ROOT / "benchmarks" / "librocketmq_load.py"
        return [str(python_client.install()), str(program), *words]
    return [sys.executable, "-m", "benchmarks.client_load", *words]


def _events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yields the JSON lines of a process; the clients also print log lines among them."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and "event" in (event := json.loads(line)):
            yield event


async def fill(namesrv: str, topic: str, messages: int) -> None:
    """Stores so many messages of 1 KiB."""
    body = b"x" * 1024
    left = messages
    async with aio.Producer("bench-fill", namesrv_addr=namesrv, default_topic_queue_nums=8) as to:
        while left:
            count = min(left, _BATCH)
            await to.send_batch([aio.new_message(topic, body) for _ in range(count)])
            left -= count


def one_round(loads: list[Load], clients: list[str], windows: Windows) -> list[Sample]:
    """Runs each load with each client, with new servers for each. Raises ServerError."""
    samples = []
    with servers.running("ours", OUTPUT) as running:
        for load in loads:
            if load.drains:
                filling = fill(running.namesrv_address, f"{FILLED}-{load.name}", windows.messages)
                asyncio.run(filling)
            for client in clients:
                try:
                    sample = measure(load, client, running, windows)
                except LoadError as error:
                    print(f"  {error}", flush=True)
                    continue
                if sample is not None:
                    samples.append(sample)
                    print(f"  {_line(sample)}", flush=True)
    return samples


def _line(sample: Sample) -> str:
    busy = f", others {sample.others_cores:.1f} cores" if sample.others_cores >= 0.1 else ""
    return (
        f"{sample.load:<8}{sample.client:<12}{sample.rate:>10,.0f} msg/s"
        f"{sample.client_cpu_us:>8.1f} us CPU a message{busy}"
    )


def medians(samples: list[Sample]) -> list[dict[str, Any]]:
    """Returns a row of medians for each load and client."""
    rows = []
    for load in LOADS:
        for client in CLIENTS:
            its = [each for each in samples if (each.load, each.client) == (load.name, client)]
            if its:
                rows.append(
                    {
                        "load": load.name,
                        "title": load.title,
                        "client": client,
                        "rate": statistics.median(each.rate for each in its),
                        "client_cpu_us": statistics.median(each.client_cpu_us for each in its),
                        "memory_bytes": max(each.memory_bytes for each in its),
                        "runs": len(its),
                    }
                )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the medians as a table of text."""
    lines = [f"{'':<32}{'':<13}{'msg/s':>10}{'us CPU':>9}{'MiB':>7}"]
    lines += [
        f"{row['title']:<32}{row['client']:<13}{row['rate']:>10,.0f}{row['client_cpu_us']:>9.1f}"
        f"{row['memory_bytes'] / 2**20:>7.0f}"
        for row in rows
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Runs all rounds, prints the table, writes the file. Returns 1 if a load or server failed."""
    names = [load.name for load in LOADS]
    parser = argparse.ArgumentParser(prog="benchmarks.clients", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="short windows, one round")
    parser.add_argument("--only", type=some_of(names), default=names, help="loads, comma-separated")
    parser.add_argument(
        "--clients", type=some_of(CLIENTS), default=list(CLIENTS), help="comma-separated too"
    )
    options = parser.parse_args(argv)
    loads = [load for load in LOADS if load.name in options.only]
    windows = QUICK if options.quick else FULL
    OUTPUT.mkdir(parents=True, exist_ok=True)
    samples: list[Sample] = []
    try:
        for _ in range(1 if options.quick else options.rounds):
            samples += one_round(loads, options.clients, windows)
    except (
        servers.ServerError,
        official.LoadNotCompiled,
        JarsUnavailable,
        python_client.PythonClientUnavailable,
    ) as error:
        print(f"benchmarks.clients: {error}", file=sys.stderr)
        return 1
    others = max((each.others_cores for each in samples), default=0.0)
    content = {
        "date": time.strftime("%Y-%m-%d"),
        "quick": options.quick,
        "machine": official.machine(),
        "others_cores": others,
        "rows": medians(samples),
        "samples": [asdict(each) for each in samples],
    }
    written = json.dumps(content, indent=1) + "\n"
    (OUTPUT / "clients.json").write_text(written)
    print(f"\n{table(content['rows'])}\n\nWritten: {OUTPUT / 'clients.json'}")
    if others >= MUCH:
        print(f"Other processes used up to {others:.1f} cores meanwhile: run again when quiet.")
    return 0 if samples else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
