# SPDX-License-Identifier: Apache-2.0
"""How fast an empty slave takes over the log of its master, and what the master's clients notice.

    .venv/bin/python -m benchmarks.catch_up [--gib 4]

A store of so many GiB is written once, and a master of ours opens a copy of it. While a client
sends a message every 10 ms and waits for its answer, an empty slave of ours starts. Printed are the
bytes of the log that it takes over in a second, the time that its queues need after that, and how
long the client waits for its answers meanwhile.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Final

from benchmarks import frames, probe, proc, servers
from benchmarks.spark_store import write_store

OUTPUT: Final = Path(__file__).resolve().parent.parent / "var" / "bench"
EVERY_S: Final = 0.010
DEADLINE_S: Final = 300.0
LEAST_MB_S: Final = 150.0
MOST_MS: Final = 30.0
GIB: Final = 1 << 30


def ends(port: int) -> tuple[int, int]:
    """Returns where the log of a broker ends, and up to where its messages are in queues."""
    body = probe.body(port, frames.runtime_info(opaque=1))
    table = json.loads(body)["table"] if body else {}
    log_end = int(table.get("commitLogMaxOffset", 0))
    return log_end, log_end - int(table.get("dispatchBehindBytes", 0))


def waits_ms(port: int, seconds: float) -> list[float]:
    """Sends for so long; returns how long each answer took. Raises ServerError."""
    found = []
    until_s = time.monotonic() + seconds
    while (now_s := time.monotonic()) < until_s:
        if not probe.accepts_send(port):
            raise servers.ServerError("the master has refused a message")
        found.append((time.monotonic() - now_s) * 1000)
        time.sleep(EVERY_S)
    return found


def percentile(values: list[float], share: float) -> float:
    """Returns what that share of the values does not exceed."""
    return sorted(values)[math.ceil(len(values) * share) - 1]


def measure(store: Path) -> bool:
    """Prints the figures; returns whether they are as good as they have to be."""
    with servers.running("ours", OUTPUT, store=store) as master:
        alone = waits_ms(master.broker_port, 5.0)
        end, _ = ends(master.broker_port)
        with servers.following(master) as pid:
            while not probe.accepts_connections(master.slave_port):
                time.sleep(EVERY_S)
            waited: list[float] = []
            began_s = time.monotonic()
            arrived_s = begun_s = 0.0
            begun = here = dispatched = 0
            while dispatched < end:
                waited += waits_ms(master.broker_port, 0.2)
                now_s = time.monotonic()
                if now_s - began_s > DEADLINE_S:
                    raise servers.ServerError(f"the slave has {here:,} bytes of {end:,}")
                here, dispatched = ends(master.slave_port)
                if here and not begun_s:
                    begun_s, begun = now_s, here
                if here >= end and not arrived_s:
                    arrived_s = now_s
            now_s, cpu_s = time.monotonic(), proc.cpu_seconds(pid)
    rate = (end - begun) / max(arrived_s - begun_s, EVERY_S) / 1e6
    p99_ms = percentile(waited, 0.99)
    print(f"log of {end / GIB:.2f} GiB: {rate:,.0f} MB/s (wanted: {LEAST_MB_S:.0f})")
    print(f"in queues {now_s - arrived_s:.1f} s after that; the slave used {cpu_s:.1f} s of CPU")
    for what, found in (("alone", alone), ("meanwhile", waited)):
        median_ms, most = percentile(found, 0.5), max(found)
        print(
            f"a send takes {what}: median {median_ms:.1f} ms, p99 {percentile(found, 0.99):.1f} ms,"
            f" at most {most:.1f} ms"
        )
    return rate >= LEAST_MB_S and p99_ms < MOST_MS


def main() -> int:
    """Writes the store if there is none, and measures; returns 1 if the figures are not reached."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.catch_up", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--gib", type=int, default=4)
    gib = parser.parse_args().gib
    store = OUTPUT / f"catch-up-{gib}"
    if not store.exists():
        write_store(store, "uniform", gib)
    return 0 if measure(store) else 1


if __name__ == "__main__":
    raise SystemExit(main())
