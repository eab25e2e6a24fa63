# SPDX-License-Identifier: Apache-2.0
"""`make bench-proxy`: the same calls on our proxy and on the original's, before one of our brokers.

In each round the servers are new and the proxies take turns; what counts are the medians. Prints a
table, and leaves proxies.json in var/bench.

    python -m benchmarks.proxies --quick
    python -m benchmarks.proxies --sides ours --only send16 --profile var/bench/proxy.prof
"""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final, cast

from benchmarks import clients, proc, rounds, servers
from benchmarks.choices import some_of
from benchmarks.rounds import MEDIAN, OUTPUT, ROOT
from compat_tests.engine import LocalEngine, LocalProcess
from compat_tests.jars import JarsUnavailable
from compat_tests.peers import NameServer, PeerFailed, Proxy

SIDES: Final = ("ours", "original")


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
    Load("pace", "send to receive at 100 msg/s", "pace", 4),
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
    """Runs a load on a proxy. Raises rounds.LoadError."""
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
    assert isinstance(proxy.process, LocalProcess)
    its = rounds.measured(
        [sys.executable, "-m", "benchmarks.grpc_load", *words],
        log,
        pair,
        proc.resident_bytes,
        pid=proxy.process.pid,
        home=ROOT,
    )
    rate, p50_ms = its.messages / its.result["seconds"], its.result.get("p50_ms")
    return Sample(
        load.name, side, rate, its.cpu_us, p50_ms, its.memory_bytes, ready_s, its.others_cores
    )


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
                    except rounds.LoadError as error:
                        print(f"  {error}", flush=True)
                        continue
                    samples.append(sample)
                    print(f"  {_line(sample)}", flush=True)
    return samples


def _line(sample: Sample) -> str:
    return (
        f"{sample.load:<8}{sample.side:<10}{sample.rate:>8,.0f} msg/s"
        f"{sample.proxy_cpu_us:>8.1f} us CPU a message{_p50(sample.p50_ms, ', p50 {:.2f} ms')}"
        f"{rounds.busy(sample.others_cores)}"
    )


def _p50(p50_ms: float | None, words: str) -> str:
    return "" if p50_ms is None else words.format(p50_ms)


def medians(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Returns a row of medians for each load and side."""
    columns: rounds.Columns = {
        "rate": MEDIAN,
        "proxy_cpu_us": MEDIAN,
        "p50_ms": _median,
        "ready_s": MEDIAN,
        "resident_bytes": max,
    }
    return rounds.medians(samples, LOADS, "side", SIDES, columns)


def _median(found: list[float | None]) -> float | None:
    known = [each for each in found if each is not None]
    return MEDIAN(known) if known else None


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the medians as a table of text."""
    lines = [f"{'':<34}{'':<10}{'msg/s':>8}{'us CPU':>9}{'p50 ms':>8}{'ready s':>9}{'MiB':>6}"]
    lines += [
        f"{row['title']:<34}{row['side']:<10}{row['rate']:>8,.0f}{row['proxy_cpu_us']:>9.1f}"
        f"{_p50(row['p50_ms'], '{:.2f}'):>8}"
        f"{row['ready_s']:>9.2f}{row['resident_bytes'] / 2**20:>6.0f}"
        for row in rows
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Runs all rounds, prints the table, writes the file. Returns 1 if a load or server failed."""
    parser = rounds.parser("proxies", __doc__, LOADS)
    parser.add_argument("--sides", type=some_of(SIDES), default=list(SIDES))
    parser.add_argument("--profile", type=Path, help="cProfile statistics of our proxy")
    options = parser.parse_args(argv)
    if options.profile and options.sides != ["ours"]:
        parser.error("--profile slows our proxy down: use it with --sides ours, not to compare")
    profile = options.profile.resolve() if options.profile else None
    loads = [load for load in LOADS if load.name in options.only]
    windows = QUICK if options.quick else FULL
    samples = rounds.run(
        "proxies",
        options,
        lambda: one_round(loads, options.sides, windows, profile),
        medians,
        table,
        (PeerFailed, JarsUnavailable),
    )
    return 0 if len(samples) >= len(loads) * len(options.sides) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
