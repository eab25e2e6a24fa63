# SPDX-License-Identifier: Apache-2.0
"""One load on our Python client: `python -m benchmarks.client_load NAMESRV TOPIC MODE`.

Modes and output are those of java/Load.java: sync (one send after the other, blocking), async (so
many in flight), push (drains a topic by a push consumer) and lite (the same by a lite pull
consumer). Standard output carries one JSON object a line; "start" and "end" stand at the edges of
the measured window. Bodies have 1 KiB.
"""

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from txrocketmq.client import (
    ConsumeFrom,
    LitePullConsumer,
    MessageExt,
    Producer,
    PushConsumer,
    aio,
    new_message,
)

BODY: Final = b"x" * 1024
QUEUES: Final = 8
IDLE_S: Final = 60.0
"""A drain that gets nothing more for so many seconds has failed."""


class Edges:
    """Reports the beginning and the end of the window, and what happened in it."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._started_s = 0.0
        self._times_ms: list[float] = []

    def start(self) -> None:
        """Begins the window, after the warm-up.

        A collection of all objects takes as long as ten thousand messages. It comes first, so that
        it does not depend on what was imported whether one falls into a short window.
        """
        gc.collect()
        say(event="start")
        self._started_s = time.perf_counter()

    def took(self, seconds: float) -> None:
        """Notes how long a send took."""
        self._times_ms.append(seconds * 1000)

    def end(self, messages: int) -> None:
        """Ends the window, in which so many messages were counted."""
        seconds = time.perf_counter() - self._started_s
        say(event="end")
        times = sorted(self._times_ms)
        result: dict[str, Any] = {"messages": messages, "seconds": seconds, "failed": 0}
        if times:
            result["p50_ms"] = times[len(times) // 2]
            result["p99_ms"] = times[len(times) * 99 // 100]
        say(event="result", mode=self._mode, **result)


def say(**event: Any) -> None:
    """Writes one line of JSON."""
    print(json.dumps(event), flush=True)


def sync(namesrv: str, topic: str, options: dict[str, int]) -> None:
    """Sends in one thread, and waits for each answer."""
    settings: Any = {"namesrv_addr": namesrv, "default_topic_queue_nums": QUEUES}
    with Producer("bench-producer", **settings) as producer:
        until_s = time.perf_counter() + options["warmup-ms"] / 1000
        while time.perf_counter() < until_s:
            producer.send(new_message(topic, BODY))
        edges, count = Edges("sync"), 0
        edges.start()
        now_s = time.perf_counter()
        until_s = now_s + options["window-ms"] / 1000
        while now_s < until_s:
            producer.send(new_message(topic, BODY))
            before_s, now_s = now_s, time.perf_counter()
            edges.took(now_s - before_s)
            count += 1
        edges.end(count)


def asynchronous(namesrv: str, topic: str, options: dict[str, int]) -> None:
    """Sends on asyncio, with as many sends in flight as the options allow."""
    asyncio.run(_asynchronous(namesrv, topic, options))


async def _asynchronous(namesrv: str, topic: str, options: dict[str, int]) -> None:
    settings: Any = {"namesrv_addr": namesrv, "default_topic_queue_nums": QUEUES}
    count, edges = 0, Edges("async")
    async with aio.Producer("bench-producer", **settings) as producer:
        await producer.send(aio.new_message(topic, BODY))
        until_s = time.perf_counter() + (options["warmup-ms"] + options["window-ms"]) / 1000

        async def send_on() -> None:
            nonlocal count
            while time.perf_counter() < until_s:
                await producer.send(aio.new_message(topic, BODY))
                count += 1

        senders = [asyncio.ensure_future(send_on()) for _ in range(options["in-flight"])]
        await asyncio.sleep(options["warmup-ms"] / 1000)
        before = count
        edges.start()
        await asyncio.sleep(options["window-ms"] / 1000)
        edges.end(count - before)
        await asyncio.gather(*senders)


class Drain:
    """Counts the messages of a drain; the window begins after the first tenth of them."""

    def __init__(self, mode: str, total: int) -> None:
        self._edges = Edges(mode)
        self._total = total
        self._first = 0
        self._taken = 0
        self.done = threading.Event()

    def took(self, count: int) -> None:
        """Counts so many more messages."""
        self._taken += count
        if not self._first and self._taken >= self._total // 10:
            self._first = self._taken
            self._edges.start()
        elif self._taken >= self._total and not self.done.is_set():
            self._edges.end(self._taken - self._first)
            self.done.set()


def push(namesrv: str, topic: str, options: dict[str, int]) -> None:
    """Drains a topic with a push consumer's listener."""
    drain = Drain("push", options["messages"])
    lock = threading.Lock()

    def listener(messages: list[MessageExt], _: object) -> None:
        with lock:
            drain.took(len(messages))

    settings: Any = {
        "namesrv_addr": namesrv,
        "consume_from": ConsumeFrom.FIRST_OFFSET,
        "consume_message_batch_max_size": options.get("batch", 1),
    }
    with PushConsumer(f"push-{topic}", {topic: "*"}, listener, **settings):
        if not drain.done.wait(IDLE_S * 3):
            raise SystemExit("it was not drained")


def lite(namesrv: str, topic: str, options: dict[str, int]) -> None:
    """Drains a topic by polling with a lite pull consumer."""
    drain = Drain("lite", options["messages"])
    settings: Any = {
        "namesrv_addr": namesrv,
        "consume_from": ConsumeFrom.FIRST_OFFSET,
        "pull_batch_size": 32,
    }
    with LitePullConsumer(f"lite-{topic}", {topic: "*"}, **settings) as consumer:
        while not drain.done.is_set():
            drain.took(len(consumer.poll()))


MODES: Final[dict[str, Callable[[str, str, dict[str, int]], None]]] = {
    "sync": sync,
    "async": asynchronous,
    "push": push,
    "lite": lite,
}


def main() -> None:
    """Runs the load that the arguments name."""
    namesrv, topic, mode, *given = sys.argv[1:]
    options = {name: int(value) for name, value in (each.split("=") for each in given)}
    MODES[mode](namesrv, topic, options)


if __name__ == "__main__":
    main()
