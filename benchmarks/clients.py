# SPDX-License-Identifier: Apache-2.0
"""`make bench-client`: the same loads on our Python client, the Java one and librocketmq's.

All of them talk to one of our brokers, one after the other, with bodies of 1 KiB. In each round the
servers are new; what counts are the medians. Prints a table, and leaves clients.json in var/bench.

    python -m benchmarks.clients --quick
    python -m benchmarks.clients --clients ours,java --only push,lite
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import official, proc, rounds, servers
from benchmarks.choices import some_of
from benchmarks.rounds import MEDIAN, OUTPUT, ROOT
from compat_tests import python_client
from compat_tests.jars import JarsUnavailable
from txrocketmq.client import aio

CLIENTS: Final = ("ours", "java", "librocketmq")
FILLED: Final = "bench-filled"
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


def measure(load: Load, client: str, running: servers.Servers, windows: Windows) -> Sample | None:
    """Runs a load with a client; None if the client does not have it. Raises rounds.LoadError."""
    how = getattr(load, client)
    if how is None:
        return None
    # Java's load program drains each topic with one group, and so only once.
    topic = f"{FILLED}-{load.name}" if load.drains else f"bench-{load.name}-{client}"
    command = _command(client, running, topic, how, windows, load)
    log = running.home / f"load-{load.name}-{client}.log"
    its = rounds.measured(command, log, running, proc.anonymous_bytes)
    return Sample(
        load.name,
        client,
        its.messages / its.seconds,
        its.cpu_us,
        its.memory_bytes,
        its.others_cores,
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
                except rounds.LoadError as error:
                    print(f"  {error}", flush=True)
                    continue
                if sample is not None:
                    samples.append(sample)
                    print(f"  {_line(sample)}", flush=True)
    return samples


def _line(sample: Sample) -> str:
    return (
        f"{sample.load:<8}{sample.client:<12}{sample.rate:>10,.0f} msg/s"
        f"{sample.client_cpu_us:>8.1f} us CPU a message{rounds.busy(sample.others_cores)}"
    )


def medians(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Returns a row of medians for each load and client."""
    columns: rounds.Columns = {"rate": MEDIAN, "client_cpu_us": MEDIAN, "memory_bytes": max}
    return rounds.medians(samples, LOADS, "client", CLIENTS, columns)


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
    parser = rounds.parser("clients", __doc__, LOADS)
    parser.add_argument(
        "--clients", type=some_of(CLIENTS), default=list(CLIENTS), help="comma-separated too"
    )
    options = parser.parse_args(argv)
    loads = [load for load in LOADS if load.name in options.only]
    windows = QUICK if options.quick else FULL
    samples = rounds.run(
        "clients",
        options,
        lambda: one_round(loads, options.clients, windows),
        medians,
        table,
        (official.LoadNotCompiled, JarsUnavailable, python_client.PythonClientUnavailable),
    )
    return 0 if samples else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
