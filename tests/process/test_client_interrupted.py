# SPDX-License-Identifier: Apache-2.0
"""One Ctrl-C ends a program, also if its listener hangs."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import pytest

from txrocketmq.client.thread.function_threads import END_S
from txrocketmq.testing.server import Server

PROGRAM = """
import sys, threading, time
from txrocketmq.client import ConsumeFrom, PushConsumer, aio, orderly

kind, topic, where, await_ms = sys.argv[1:]
settings = {
    "namesrv_addr": where,
    "consume_from": ConsumeFrom.FIRST_OFFSET,
    "await_termination_ms": int(await_ms),
}

def listener(messages, context):
    print("hangs", flush=True)
    while True:
        try:
            time.sleep(1_000)
        except Exception:
            continue

if kind == "tx":
    from twisted.internet import defer, task
    from txrocketmq.client import tx

    async def main(reactor):
        settings["consume_in_threads"] = True
        async with tx.PushConsumer("tx", {topic: "*"}, listener, **settings):
            await task.deferLater(reactor, 1_000)

    task.react(lambda reactor: defer.Deferred.fromCoroutine(main(reactor)))
if kind == "orderly":
    listener = orderly(listener)
with PushConsumer(kind, {topic: "*"}, listener, **settings):
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("kind", "await_ms"), [("plain", 0), ("plain", 1_500), ("orderly", 0), ("tx", 0)]
)
def test_a_program_whose_listener_hangs(rocketmq_server: Server, kind: str, await_ms: int) -> None:
    topic = f"Hangs-{kind}-{await_ms}"  # with the messages of another one, two listeners may print
    rocketmq_server.send(topic, "x")
    where = rocketmq_server.namesrv_addr
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kind, topic, where, str(await_ms)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "hangs\n"
        began_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        took_s = time.monotonic() - began_s
    finally:
        process.kill()
        process.communicate()
    assert took_s >= await_ms / 1_000
    assert took_s < await_ms / 1_000 + END_S + 20
    if kind != "tx":
        assert said.count("KeyboardInterrupt") == 1
        assert re.search(r"the program ends although \d+ calls of its functions still run", said)
