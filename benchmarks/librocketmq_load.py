# SPDX-License-Identifier: Apache-2.0
"""Puts one load on the Python client `rocketmq` (librocketmq), as client_load.py does on ours.

It runs in an environment of its own, which has neither this project nor its dependencies. The
client has only blocking sends, and its pull consumer belongs to no group, so the modes are sync and
push.
"""

import json
import os
import sys
import threading
import time
from typing import Any

from rocketmq.client import (  # type: ignore[import-not-found]
    Message,
    Producer,
    PushConsumer,
)

BODY = "x" * 1024
DRAIN_S = 180


def say(**event: Any) -> None:
    """Writes one line of JSON."""
    print(json.dumps(event), flush=True)


def sync(namesrv: str, topic: str, options: "dict[str, int]") -> None:
    """Sends in one thread, and waits for each answer."""
    producer = Producer("bench-producer")
    producer.set_namesrv_addr(namesrv)
    producer.start()

    def send() -> None:
        message = Message(topic)
        message.set_body(BODY)
        producer.send_sync(message)

    until_s = time.perf_counter() + options["warmup-ms"] / 1000
    while time.perf_counter() < until_s:
        send()
    say(event="start")
    times, now_s = [], time.perf_counter()
    started_s, until_s = now_s, now_s + options["window-ms"] / 1000
    while now_s < until_s:
        send()
        before_s, now_s = now_s, time.perf_counter()
        times.append((now_s - before_s) * 1000)
    say(event="end")
    times.sort()
    say(
        event="result", messages=len(times), seconds=now_s - started_s, failed=0,
        p50_ms=times[len(times) // 2], p99_ms=times[len(times) * 99 // 100],
    )  # fmt: skip


def push(namesrv: str, topic: str, options: "dict[str, int]") -> None:
    """Drains a topic with a push consumer's listener."""
    total = options["messages"]
    lock, done = threading.Lock(), threading.Event()
    state = {"taken": 0, "first": 0, "started_s": 0.0}

    def listener(_: Any) -> None:
        with lock:
            state["taken"] += 1
            if state["taken"] == total // 10:
                state["first"], state["started_s"] = state["taken"], time.perf_counter()
                say(event="start")
            elif state["taken"] == total:
                seconds = time.perf_counter() - state["started_s"]
                say(event="end")
                count = state["taken"] - state["first"]
                say(event="result", messages=count, seconds=seconds, failed=0)
                done.set()

    consumer = PushConsumer("librocketmq-" + topic)
    consumer.set_namesrv_addr(namesrv)
    consumer.subscribe(topic, listener)
    consumer.start()
    done.wait(DRAIN_S)


def main() -> None:
    """Runs the load that the arguments name; ends without the client's shutdown."""
    namesrv, topic, mode, *given = sys.argv[1:]
    options = {name: int(value) for name, value in (each.split("=") for each in given)}
    {"sync": sync, "push": push}[mode](namesrv, topic, options)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
