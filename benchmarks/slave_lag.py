# SPDX-License-Identifier: Apache-2.0
"""How far a slave is behind at any moment while its master takes sends at full speed.

    .venv/bin/python -m benchmarks.slave_lag [--load async] [--seconds 20]

An official client loads a master of ours that has a slave of ours. Ten times a second it is asked
where a queue of the master ends, and then how long the slave needs to get there. Printed are the
median, the 99th percentile and the longest of these times, which include the questions. The row
"time until the slave has all" of benchmarks.run asks once, when the load has ended.
"""

import argparse
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks import loads, probe, servers
from benchmarks.catch_up import percentile

OUTPUT: Final = Path(__file__).resolve().parent.parent / "var" / "bench"
TOPIC: Final = "bench-slave-lag"
QUEUE_ID: Final = 0
EVERY_S: Final = 0.1
POLL_S: Final = 0.002
WARM_UP_MS: Final = 5_000
MOST_MS: Final = 200.0


def lag_ms(running: servers.Servers) -> float:
    """Returns how long the slave needs for what the queue of the master has now."""
    end = probe.max_offset(running.broker_port, TOPIC, QUEUE_ID)
    began_s = time.monotonic()
    while probe.max_offset(running.slave_port, TOPIC, QUEUE_ID) < end:
        if time.monotonic() - began_s > loads.DEADLINE_S:
            raise loads.LoadError(f"the slave does not get to {end} of queue {QUEUE_ID}")
        time.sleep(POLL_S)
    return (time.monotonic() - began_s) * 1000


def measure(load: loads.Load, seconds: int) -> bool:
    """Prints the figures of a load; returns whether they are as good as they have to be."""
    windows = loads.Windows(WARM_UP_MS, seconds * 1000, 0)
    samples: list[loads.Sample] = []
    lags: list[float] = []
    with servers.running("ours", OUTPUT, slave=True) as running:
        sender = threading.Thread(
            target=lambda: samples.append(loads.run(load, running, windows, TOPIC))
        )
        sender.start()
        while sender.is_alive():
            lags.append(lag_ms(running))
            time.sleep(EVERY_S)
    if not samples:
        raise loads.LoadError(f"the load {load.name} has failed")
    print(
        f"{load.title}: {samples[0].rate:,.0f} messages a second; the slave is behind by"
        f" {percentile(lags, 0.5):.0f} ms (median of {len(lags)}), {percentile(lags, 0.99):.0f} ms"
        f" (p99), {max(lags):.0f} ms at most (wanted: {MOST_MS:.0f})"
    )
    return max(lags) <= MOST_MS


def main() -> int:
    """Measures a load; returns 1 if the slave was behind for longer."""
    usual = {load.name: load for load in loads.LOADS if not load.broker and load.mode != "drain"}
    parser = argparse.ArgumentParser(
        prog="benchmarks.slave_lag", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--load", choices=sorted(usual), default="async")
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    load = replace(usual[options.load], slave=True)
    return 0 if measure(load, options.seconds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
