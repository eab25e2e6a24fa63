# SPDX-License-Identifier: Apache-2.0
"""`make bench-proxy`: the same calls on our proxy and on the original's, before one of our brokers.

In each round the servers are new and the proxies take turns; what counts are the medians. Prints a
table, and leaves proxies.json in var/bench.

    python -m benchmarks.proxies --quick
    python -m benchmarks.proxies --sides ours --only send16 --profile var/bench/proxy.prof
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
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final, cast

from benchmarks import clients, official, proc, servers
from benchmarks.choices import some_of
from compat_tests.engine import LocalEngine, LocalProcess
from compat_tests.jars import JarsUnavailable
from compat_tests.peers import NameServer, PeerFailed, Proxy

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "var" / "bench"
SIDES: Final = ("ours", "original")
DEADLINE_S: Final = 240.0


@dataclass(frozen=True)
class Load:
    """A load: a mode of grpc_load.py, and how many calls are in flight."""

    name: str
    title: str
    mode: str
    in_flight: int


LOADS: Final = (
    Load("send16", "send, 16 in flight", "send", 16),
    Load("send64", "send, 64 in flight", "send", 64),
    Load("receive", "receive by 32, acknowledge each", "receive", 16),
)


@dataclass(frozen=True)
class Windows:
    """How long sends warm up and count, and how many messages are received."""

    warm_up_ms: int
    window_ms: int
    messages: int


FULL: Final = Windows(8_000, 8_000, 40_000)
QUICK: Final = Windows(4_000, 3_000, 8_000)


@dataclass(frozen=True)
class Sample:
    """What one run of a load on one proxy has given."""

    load: str
    side: str
    rate: float
    """Messages per second."""
    proxy_cpu_us: float
    """CPU time of the proxy per message, with all threads."""
    p50_ms: float | None
    resident_bytes: int
    """Resident memory of the proxy at the end."""
    ready_s: float
    """How long the proxy took to be ready."""
    others_cores: float
    """Cores that processes other than the proxy, the client and the servers took."""


@contextmanager
def running(side: str, folder: Path, namesrv: str, profile: Path | None) -> Iterator[Proxy]:
    """Runs a proxy before a name server. Raises PeerFailed."""
    folder.mkdir()
    engine = None if side == "ours" else LocalEngine("java", folder, "for the benchmark")
    proxy = Proxy(engine, folder, cast("NameServer", SimpleNamespace(address=namesrv)))
    if profile is not None:
        proxy.profile = profile
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.stop()


def measure(
    load: Load, side: str, proxy: Proxy, ready_s: float, pair: servers.Servers, windows: Windows
) -> Sample:
    """Runs a load on a proxy. Raises clients.LoadError."""
    topic = f"bench-{load.name}-{side}"
    asyncio.run(clients.fill(pair.namesrv_address, topic, 1))
    time.sleep(1)  # the name server learns of it
    options = {
        "in-flight": load.in_flight,
        "warmup-ms": windows.warm_up_ms,
        "window-ms": windows.window_ms,
        "messages": windows.messages,
    }
    words = [proxy.address, topic, load.mode, *(f"{k}={v}" for k, v in options.items())]
    log = pair.home / f"load-{load.name}-{side}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.grpc_load", *words],
            stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT,
        )  # fmt: skip
    assert isinstance(proxy.process, LocalProcess)
    pid = proxy.process.pid
    overdue = threading.Timer(DEADLINE_S, os.kill, (process.pid, signal.SIGKILL))
    overdue.start()
    try:
        edges, result, resident_bytes = _metered(process, pid, pair)
    finally:
        overdue.cancel()
        process.kill()
        process.wait()
    if result is None or not result["messages"]:
        said = log.read_text(errors="replace")[-2000:]
        raise clients.LoadError(f"{load.name} of {side} failed: {said}")
    seconds, own, known_s, machine = (
        end - start for start, end in zip(edges["start"], edges["end"], strict=True)
    )
    return Sample(
        load.name,
        side,
        result["messages"] / result["seconds"],
        own / result["messages"] * 1e6,
        result.get("p50_ms"),
        resident_bytes,
        ready_s,
        max(0.0, machine - own - known_s) / seconds,
    )


Edge = tuple[float, float, float, float]
"""The time, and the CPU seconds of the proxy, of the client and the servers, and of all."""


def _metered(
    process: "subprocess.Popen[str]", pid: int, pair: servers.Servers
) -> tuple[dict[str, Edge], dict[str, Any] | None, int]:
    """Returns the edges of the window, the result, and the resident memory at the end."""
    edges: dict[str, Edge] = {}
    result: dict[str, Any] | None = None
    resident_bytes = 0
    known = (process.pid, pair.broker_pid, pair.namesrv_pid)
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "result":
            result = event
            continue
        edges[event["event"]] = (
            time.perf_counter(),
            proc.cpu_seconds(pid),
            sum(map(proc.cpu_seconds, known)),
            proc.machine_cpu_seconds(),
        )
        resident_bytes = proc.resident_bytes(pid)
    return edges, result, resident_bytes


def one_round(
    loads: list[Load], sides: list[str], windows: Windows, profile: Path | None
) -> list[Sample]:
    """Runs each load on each proxy, with new servers. Raises ServerError and PeerFailed."""
    samples = []
    with servers.running("ours", OUTPUT) as pair, TemporaryDirectory(dir=OUTPUT) as folder:
        for side in sides:
            began_s = time.monotonic()
            with running(side, Path(folder) / side, pair.namesrv_address, profile) as proxy:
                ready_s = time.monotonic() - began_s
                for load in loads:
                    try:
                        sample = measure(load, side, proxy, ready_s, pair, windows)
                    except clients.LoadError as error:
                        print(f"  {error}", flush=True)
                        continue
                    samples.append(sample)
                    print(f"  {_line(sample)}", flush=True)
    return samples


def _line(sample: Sample) -> str:
    busy = f", others {sample.others_cores:.1f} cores" if sample.others_cores >= 0.1 else ""
    return (
        f"{sample.load:<8}{sample.side:<10}{sample.rate:>8,.0f} msg/s"
        f"{sample.proxy_cpu_us:>8.1f} us CPU a message{busy}"
    )


def medians(samples: list[Sample]) -> list[dict[str, Any]]:
    """Returns a row of medians for each load and side."""
    rows = []
    for load in LOADS:
        for side in SIDES:
            its = [each for each in samples if (each.load, each.side) == (load.name, side)]
            if its:
                rows.append(
                    {
                        "load": load.name,
                        "title": load.title,
                        "side": side,
                        "rate": statistics.median(each.rate for each in its),
                        "proxy_cpu_us": statistics.median(each.proxy_cpu_us for each in its),
                        "ready_s": statistics.median(each.ready_s for each in its),
                        "resident_bytes": max(each.resident_bytes for each in its),
                        "runs": len(its),
                    }
                )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the medians as a table of text."""
    lines = [f"{'':<34}{'':<10}{'msg/s':>8}{'us CPU':>9}{'ready s':>9}{'MiB':>6}"]
    lines += [
        f"{row['title']:<34}{row['side']:<10}{row['rate']:>8,.0f}{row['proxy_cpu_us']:>9.1f}"
        f"{row['ready_s']:>9.2f}{row['resident_bytes'] / 2**20:>6.0f}"
        for row in rows
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Runs all rounds, prints the table, writes the file. Returns 1 if a load or server failed."""
    names = [load.name for load in LOADS]
    parser = argparse.ArgumentParser(prog="benchmarks.proxies", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="short windows, one round")
    parser.add_argument("--only", type=some_of(names), default=names, help="loads, comma-separated")
    parser.add_argument("--sides", type=some_of(SIDES), default=list(SIDES))
    parser.add_argument("--profile", type=Path, help="cProfile statistics of our proxy")
    options = parser.parse_args(argv)
    if options.profile and options.sides != ["ours"]:
        parser.error("--profile slows our proxy down: use it with --sides ours, not to compare")
    profile = options.profile.resolve() if options.profile else None
    loads = [load for load in LOADS if load.name in options.only]
    windows = QUICK if options.quick else FULL
    OUTPUT.mkdir(parents=True, exist_ok=True)
    samples: list[Sample] = []
    try:
        for _ in range(1 if options.quick else options.rounds):
            samples += one_round(loads, options.sides, windows, profile)
    except (servers.ServerError, PeerFailed, JarsUnavailable) as error:
        print(f"benchmarks.proxies: {error}", file=sys.stderr)
        return 1
    content = {
        "date": time.strftime("%Y-%m-%d"),
        "quick": options.quick,
        "machine": official.machine(),
        "rows": medians(samples),
        "samples": [asdict(each) for each in samples],
    }
    (OUTPUT / "proxies.json").write_text(json.dumps(content, indent=1) + "\n")
    print(f"\n{table(content['rows'])}\n\nWritten: {OUTPUT / 'proxies.json'}")
    others = max((each.others_cores for each in samples), default=0.0)
    if others >= clients.MUCH:
        print(f"Other processes used up to {others:.1f} cores meanwhile: run again when quiet.")
    return 0 if len(samples) >= len(loads) * len(options.sides) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
