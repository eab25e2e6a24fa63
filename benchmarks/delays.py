# SPDX-License-Identifier: Apache-2.0
"""A delay level in process: how fast it delivers, and how long other work has to wait.

    .venv/bin/python -m benchmarks.delays [--rounds 3]

A whole broker on a reactor without a network delivers messages of 100 bytes and of 1 MB. What is
counted is CPU time of the process, in slices as the reactor would run them: the best round, and
the longest slice of that round, in CPU and in wall time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from twisted.internet.testing import MemoryReactorClock

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.work.slices import Slices
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol.body.route import TopicConfig

LOADS: Final = {"60,000 of 100 B": (60_000, 100), "400 of 1 MB": (400, 1_000_000)}
QUEUES: Final = 8
LEVEL_1_S: Final = 1.2
AT_ONCE_BYTES: Final = 4_000_000


class Delivered(NamedTuple):
    """What a round has given: the messages per second of CPU, and the longest slice in ms."""

    messages_per_cpu_s: float
    slice_cpu_ms: float
    slice_ms: float


class RunningClock(Clock):
    """A clock whose steady time runs; calls without delay are kept in `soon`."""

    def __init__(self, reactor: object) -> None:
        super().__init__(reactor)
        self.soon: list[Callable[[], object]] = []

    def steady_ms(self) -> int:
        return super().steady_ms() + time.monotonic_ns() // 1_000_000

    def later(self, delay_ms: float, call: Callable[..., object], *args: Any) -> Any:
        if not delay_ms:
            self.soon.append(partial(call, *args))
            return None
        return super().later(delay_ms, call, *args)


class Bench:
    """A broker with a topic."""

    def __init__(self, folder: Path) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.reactor.advance(1_700_000_000)
        self.clock = RunningClock(self.reactor)
        store = StoreConfig(store_path_root_dir=str(folder))
        self.broker = Broker(BrokerConfig(broker_ip1="127.0.0.1"), store, self.clock)
        self.broker.start()
        self.parts = self.broker.parts
        self.parts.topics.update(TopicConfig(topic_name="T"))
        self._sent = 0
        host = self.parts.known_as.store_host
        now_ms = self.clock.now_ms()
        for queue in range(QUEUES):  # makes the queue's files beforehand
            self.parts.intake.take([InnerMessage("T", queue, b"x", now_ms, host, host)], now_ms)

    def send(self, count: int, body: bytes) -> None:
        """Sends messages that are delayed by one second."""
        host, now_ms = self.parts.known_as.store_host, self.clock.now_ms()
        while count:
            number = min(count, max(AT_ONCE_BYTES // len(body), 1), 1_000)
            messages = [
                InnerMessage(
                    "T", (self._sent + n) % QUEUES, body, now_ms, host, host,
                    {"UNIQ_KEY": f"{self._sent + n:032X}", "WAIT": "true", "TAGS": "t",
                     "DELAY": "1"},
                )
                for n in range(number)
            ]  # fmt: skip
            assert set(self.parts.intake.take(messages, now_ms)) == {PutStatus.PUT_OK}
            count -= number
            self._sent += number

    def deliver(self, count: int) -> Delivered:
        """Moves on the time until they are due; returns what their delivery took."""
        store = self.parts.store
        before = sum(store.max_offset("T", queue) for queue in range(QUEUES))
        self.clock.soon.clear()
        self.reactor.rightNow += LEVEL_1_S
        slices: list[tuple[float, float]] = []
        clock = self.clock
        slices_of = Slices(self.parts.schedule, clock.now_ms, clock.steady_ms, self.parts.call_soon)
        calls: list[Callable[[], object]] = [slices_of.begin]
        while calls:
            for call in calls:
                wall, cpu = time.perf_counter(), time.process_time()
                call()
                slices.append((time.process_time() - cpu, time.perf_counter() - wall))
            calls, self.clock.soon = self.clock.soon, []
        found = sum(store.max_offset("T", queue) for queue in range(QUEUES)) - before
        if found != count:
            raise SystemExit(f"benchmarks.delays: {found} of {count} messages came")
        total_s = sum(cpu for cpu, _ in slices)
        worst_cpu, worst = (max(each) * 1e3 for each in zip(*slices, strict=True))
        return Delivered(count / total_s, worst_cpu, worst)


def measure(rounds: int) -> dict[str, Delivered]:
    """Returns the best of some rounds for each load."""
    best: dict[str, Delivered] = {}
    for _ in range(rounds):
        for name, (count, size) in LOADS.items():
            folder = tempfile.mkdtemp()
            try:
                bench = Bench(Path(folder))
                bench.send(count, bytes(size))
                found = bench.deliver(count)
            finally:
                shutil.rmtree(folder)
            best[name] = max(best.get(name, found), found)
    return best


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description="Measures a delay level in process.")
    parser.add_argument("--rounds", type=int, default=3)
    print(f"{'due at once':<20}  messages/CPU s  longest slice: ms of CPU / ms")
    for name, found in measure(parser.parse_args().rounds).items():
        rate, cpu_ms, ms = found
        print(f"{name:<20}  {rate:>14,.0f}  {cpu_ms:>24.1f} / {ms:.1f}")


if __name__ == "__main__":
    main()
