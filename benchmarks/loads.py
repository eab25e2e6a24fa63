# SPDX-License-Identifier: Apache-2.0
"""Runs one load of an official client, Java or Go, against running servers, and measures both."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks import official, probe, proc
from benchmarks.servers import ACCOUNT, ACL_1, ACL_2, Servers

DEADLINE_S: Final = 240.0
MAX_FAILED_SHARE: Final = 0.01


class LoadError(Exception):
    """The load program failed, or some of its messages did; the message says how."""


@dataclass(frozen=True)
class Load:
    """One kind of load: a mode of Load.java and its options.

    `jvm` are flags of the virtual machine, and `broker` are settings of the broker besides the
    usual ones. With `slave` another broker of the same side follows it. With `go` Apache's Go
    client sends. `release` is that of the client, and of the original broker that ours is compared
    with.
    """

    name: str
    mode: str
    title: str
    options: dict[str, int] = field(default_factory=dict)
    jvm: tuple[str, ...] = ()
    broker: tuple[tuple[str, str], ...] = ()
    slave: bool = False
    go: bool = False
    release: str = official.RELEASE


@dataclass(frozen=True)
class Windows:
    """How long a load warms up and how long it counts; the drain is bounded by messages."""

    warm_up_ms: int
    window_ms: int
    drain_messages: int


@dataclass(frozen=True)
class Sample:
    """What one run of a load measured over its window."""

    load: str
    rate: float
    """Messages per second."""
    p50_ms: float | None
    p99_ms: float | None
    broker_cpu_us: float
    """Broker CPU time per message, with all threads."""
    client_cpu_us: float
    anonymous_bytes: int
    """Anonymous memory of name server and broker at the end of the window."""
    failed: int
    """Sends that were refused, including the warm-up; more than a few end the run."""
    first_error: str | None
    others_cores: float
    """CPU that processes outside the benchmark took: how far to trust this sample."""
    slave_behind_ms: float | None = None
    """How long the slave needed, after the load, for what the master had; None without a slave."""


_PROPERTIES: Final = {"properties": 3}
_BINARY: Final = ("-Drocketmq.serialize.type=ROCKETMQ",)
_SYNC_FLUSH: Final = (("flushDiskType", "SYNC_FLUSH"),)
_THREADS: Final = {"threads": 64}
_QUEUES: Final = 8
"""How many queues the topics of Load.java have."""
_POLL_S: Final = 0.005
_SYNC_MASTER: Final = (("brokerRole", "SYNC_MASTER"),)
_TWO_IN_SYNC: Final = (*_SYNC_MASTER, ("inSyncReplicas", "2"), ("totalReplicas", "2"))
"""What a SYNC_MASTER of 5.x needs so that it waits for its slave."""
_ASYNC: Final = {"threads": 2, "in-flight": 512}
_ACCOUNT: Final = tuple(f"-Dbench.{name}={text}" for name, text in ACCOUNT.items())


def _replicated(suffix: str, broker: tuple[tuple[str, str], ...], release: str) -> tuple[Load, ...]:
    """The loads of a SYNC_MASTER, whose answers wait for its slave."""
    return tuple(
        Load(
            f"{name}-replicated{suffix}",
            mode,
            f"{title}, SYNC_MASTER of {release}",
            options,
            broker=broker,
            slave=True,
            release=release,
        )
        for name, mode, title, options in (
            ("sync1", "sync", "sync, 1 thread", {"threads": 1}),
            ("sync64", "sync", "sync, 64 threads", _THREADS),
            ("async", "async", "async, 1,024 in flight", {"threads": 2, "in-flight": 1024}),
        )
    )


LOADS: Final = (
    Load("sync1", "sync", "sync, 1 thread", {"threads": 1}),
    Load(
        "sync1-binary-props",
        "sync",
        "sync, 1 thread, binary header, 3 properties",
        {"threads": 1, **_PROPERTIES},
        jvm=_BINARY,
    ),
    Load("sync16", "sync", "sync, 16 threads", {"threads": 16}),
    Load("sync64", "sync", "sync, 64 threads", _THREADS),
    Load("sync64-props", "sync", "sync, 64 threads, 3 properties", {**_THREADS, **_PROPERTIES}),
    Load("sync64-binary", "sync", "sync, 64 threads, binary header", _THREADS, jvm=_BINARY),
    Load("sync64-flush", "sync", "sync, 64 threads, SYNC_FLUSH", _THREADS, broker=_SYNC_FLUSH),
    Load(
        "sync64-acl1",
        "sync",
        "sync, 64 threads, signed, with ACL 1",
        _THREADS,
        jvm=_ACCOUNT,
        broker=ACL_1,
    ),
    Load(
        "sync64-acl2",
        "sync",
        "sync, 64 threads, signed, with ACL 2",
        _THREADS,
        jvm=_ACCOUNT,
        broker=ACL_2,
        release=official.LATER_RELEASE,
    ),
    Load("go64", "sync", "sync, 64 goroutines of the Go client", _THREADS, go=True),
    Load("async", "async", "async, 512 in flight", _ASYNC),
    Load("async-props", "async", "async, 512 in flight, 3 properties", {**_ASYNC, **_PROPERTIES}),
    Load("oneway", "oneway", "one-way", {"threads": 2}),
    Load("transaction", "transaction", "transactions, 64 threads", _THREADS),
    Load("batch", "batch", "batch of 32 x 128 B", {"threads": 4}),
    Load(
        "batch-props", "batch", "batch of 32 x 128 B, 3 properties", {"threads": 4, **_PROPERTIES}
    ),
    Load("drain", "drain", "drain by push consumer"),
    Load(
        "drain-acl2",
        "drain",
        "drain by push consumer, signed, with ACL 2",
        jvm=_ACCOUNT,
        broker=ACL_2,
        release=official.LATER_RELEASE,
    ),
    Load(
        "timer",
        "timer",
        "timer messages, sent and delivered",
        {"threads": 16, "delay-ms": 2000},
        release=official.LATER_RELEASE,
    ),
    Load(
        "pop",
        "drain",
        "drain by push consumer that pops",
        {"pop": 1, "messages": 60_000},
        broker=(("defaultMessageRequestMode", "POP"),),
        release=official.LATER_RELEASE,
    ),
    Load(
        "sync64-slave",
        "sync",
        "sync, 64 threads, ASYNC_MASTER with a slave",
        _THREADS,
        slave=True,
    ),
    *_replicated("", _SYNC_MASTER, official.RELEASE),
    *_replicated("-5", _TWO_IN_SYNC, official.LATER_RELEASE),
    Load("latency", "latency", "send to consume, 100 msg/s", {"rate": 100}),
)


@dataclass
class _Meters:
    """CPU seconds, read at one end of the window."""

    broker: float
    namesrv: float
    slave: float
    client: float
    machine: float

    @classmethod
    def read(cls, servers: Servers, client_pid: int) -> "_Meters":
        return cls(
            broker=proc.cpu_seconds(servers.broker_pid),
            namesrv=proc.cpu_seconds(servers.namesrv_pid),
            slave=proc.cpu_seconds(servers.slave_pid) if servers.slave_pid else 0.0,
            client=proc.cpu_seconds(client_pid),
            machine=proc.machine_cpu_seconds(),
        )


def run(load: Load, servers: Servers, windows: Windows, topic: str | None = None) -> Sample:
    """Runs the load to its end, on a topic of its own if none is named. Raises LoadError."""
    home, topic = servers.home, topic or f"bench-{load.name}"
    command, told = _command(load, servers, windows, topic)
    with (home / f"load-{load.name}.log").open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdin is not None
    process.stdin.write(told)
    process.stdin.flush()  # left open, since the Go program ends with its input
    overdue = threading.Timer(DEADLINE_S, os.kill, (process.pid, signal.SIGKILL))
    overdue.start()
    edges: dict[str, _Meters] = {}
    result: dict[str, Any] | None = None
    anonymous_bytes = 0
    behind_ms: float | None = None
    try:
        for event in _events(process):
            if event["event"] == "result":
                result = event
                continue
            edges[event["event"]] = _Meters.read(servers, process.pid)
            if event["event"] == "end":
                anonymous_bytes = proc.anonymous_bytes(servers.broker_pid)
                anonymous_bytes += proc.anonymous_bytes(servers.namesrv_pid)
                behind_ms = _behind_ms(servers, topic)
    finally:
        overdue.cancel()
        process.kill()
        process.wait()
    _check(load, result, home)
    return _sample(load, result or {}, edges, anonymous_bytes, behind_ms)


def _behind_ms(servers: Servers, topic: str) -> float | None:
    """Returns how long the slave needs for what the master has now, if there is one."""
    if servers.slave_pid is None:
        return None
    began_s = time.monotonic()
    for queue_id in range(_QUEUES):
        end = probe.max_offset(servers.broker_port, topic, queue_id)
        while probe.max_offset(servers.slave_port, topic, queue_id) < end:
            if time.monotonic() - began_s > DEADLINE_S:
                raise LoadError(f"the slave does not get to the end of {topic}, queue {queue_id}")
            time.sleep(_POLL_S)
    return (time.monotonic() - began_s) * 1000


def _command(load: Load, servers: Servers, windows: Windows, topic: str) -> tuple[list[str], str]:
    """Returns the command, and its standard input."""
    options = {
        "warmup-ms": windows.warm_up_ms,
        "window-ms": windows.window_ms,
        "messages": windows.drain_messages,
        **load.options,
    }
    if load.go:
        told = {"op": "load", "namesrv": servers.namesrv_address, "topic": topic, "load": options}
        return [str(official.go_program())], json.dumps(told)
    java = [
        "java",
        "-Xms512m",
        "-Xmx1g",
        *load.jvm,
        f"-Drocketmq.client.logRoot={servers.home}/client-logs",
        "-Drocketmq.client.logLevel=WARN",
        "-cp",
        official.load_classpath(load.release),
        "Load",
        servers.namesrv_address,
        topic,
        load.mode,
        *(f"{name}={value}" for name, value in options.items()),
    ]
    return java, ""


def _events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yields the JSON lines of a process; the clients also print log lines among them."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and "event" in (event := json.loads(line)):
            yield event


def _check(load: Load, result: dict[str, Any] | None, home: Path) -> None:
    if result is None:
        said = (home / f"load-{load.name}.log").read_text(errors="replace")[-2000:]
        raise LoadError(f"the load {load.name} ended without a result; it said:\n{said}")
    # A loaded broker may answer a few sends with SYSTEM_BUSY; more than that is no measurement.
    if result["failed"] > result["messages"] * MAX_FAILED_SHARE:
        raise LoadError(
            f"{result['failed']} sends of {load.name} failed, {result['messages']} got through; "
            f"the first: {result['error']}"
        )
    if not result["messages"]:
        raise LoadError(f"the load {load.name} got no message through")


def _sample(
    load: Load,
    result: dict[str, Any],
    edges: dict[str, _Meters],
    anonymous_bytes: int,
    behind_ms: float | None,
) -> Sample:
    start, end = edges["start"], edges["end"]
    broker, client = end.broker - start.broker, end.client - start.client
    servers = end.namesrv - start.namesrv + end.slave - start.slave
    others = end.machine - start.machine - broker - client - servers
    return Sample(
        load=load.name,
        rate=result["rate"],
        p50_ms=result["p50_ms"],
        p99_ms=result["p99_ms"],
        broker_cpu_us=broker / result["messages"] * 1e6,
        client_cpu_us=client / result["messages"] * 1e6,
        anonymous_bytes=anonymous_bytes,
        failed=result["failed"],
        first_error=result["error"],
        others_cores=max(0.0, others / result["seconds"]),
        slave_behind_ms=behind_ms,
    )
