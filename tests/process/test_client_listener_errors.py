# SPDX-License-Identifier: Apache-2.0
"""What a program prints whose listener fails, in each form of the client: each error once."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from txrocketmq.testing.server import Server

COUNT = 6
PROGRAM = """
import asyncio, logging, sys, threading
from txrocketmq.client import ConsumeFrom, PushConsumer, aio, orderly

kind, where, log = sys.argv[1:]
if log == "configured":
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
settings = {"namesrv_addr": where, "consume_from": ConsumeFrom.FIRST_OFFSET}
calls, enough = [], threading.Event()

def listener(messages, context):
    calls.append(messages)
    if len(calls) == 6:
        enough.set()
    raise ValueError("no stock")

async def aio_listener(messages, context):
    await asyncio.sleep(0)
    listener(messages, context)

async def aio_main():
    async with aio.PushConsumer("of-aio", {"Fails": "*"}, aio_listener, **settings):
        await asyncio.to_thread(enough.wait, 60)

if kind == "aio":
    asyncio.run(aio_main())
elif kind == "tx":
    from twisted.internet import defer, task, threads
    from txrocketmq.client import tx

    async def tx_main(reactor):
        async with tx.PushConsumer("of-tx", {"Fails": "*"}, listener, **settings):
            await threads.deferToThread(enough.wait, 60)

    task.react(lambda reactor: defer.Deferred.fromCoroutine(tx_main(reactor)))
else:
    listener = orderly(listener) if kind == "orderly" else listener
    with PushConsumer("of-" + kind, {"Fails": "*"}, listener, **settings):
        enough.wait(60)
"""


@pytest.mark.parametrize("log", ["configured", "plain"])
@pytest.mark.parametrize("kind", ["blocking", "orderly", "aio", "tx"])
def test_each_error_is_printed_once(rocketmq_server: Server, kind: str, log: str) -> None:
    for number in range(COUNT):
        rocketmq_server.send("Fails", f"{number}")
    command = [sys.executable, "-W", "error", "-c", PROGRAM, kind, rocketmq_server.namesrv_addr]
    done = subprocess.run(
        [*command, log], capture_output=True, text=True, check=True, timeout=120
    )  # fmt: skip
    lines = done.stderr.splitlines()
    start = "ERROR txrocketmq.client.listener: " if log == "configured" else ""
    first = f"{start}the listener of group of-{kind} failed with a message of topic Fails, queue "
    assert lines[0].startswith(first), done.stderr
    assert lines[0].endswith("which will be delivered again: ValueError: no stock")
    assert lines.count("Traceback (most recent call last):") == 1
    assert lines.count("ValueError: no stock") == 1
    assert lines[-1].startswith(f"{start}the listener of group of-{kind} failed ")
    assert re.search(r" (once more|\d+ more times) with ValueError at <string>:", lines[-1])
    assert len(lines) <= 12, done.stderr
