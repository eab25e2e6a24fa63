# SPDX-License-Identifier: Apache-2.0
"""Programs that forget to shut a client down: they end, say so, and have told how far they came."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

import pytest

from txrocketmq.client import LitePullConsumer, new_message, split_batches
from txrocketmq.testing.server import Server

COUNT: Final = 300
ENDS_S: Final = 60
"""To consume all messages would take the listeners below longer than that."""

PRODUCER: Final = """
from txrocketmq.client import Producer, new_message
import sys
client = Producer(sys.argv[2], namesrv_addr=sys.argv[1]).start()
client.send(new_message("Orders", "x"))
assert "twisted.internet.reactor" not in sys.modules
"""
PUSH: Final = """
import sys, threading, time
from txrocketmq.client import ConsumeFrom, PushConsumer

begun = threading.Event()

def listen(messages, context):
    begun.set()
    time.sleep(0.5)

client = PushConsumer(
    sys.argv[2], {"Forgotten": "*"}, listen, namesrv_addr=sys.argv[1], consume_concurrency=2,
    consume_from=ConsumeFrom.FIRST_OFFSET,
).start()
assert begun.wait(60)
"""
ORDERLY: Final = PUSH.replace("consume_concurrency=2", "orderly=True")
AIO: Final = """
import asyncio, sys
from txrocketmq.client.aio import ConsumeFrom, PushConsumer

async def main():
    consumed = asyncio.Event()

    async def listen(messages, context):
        if not consumed.is_set():
            consumed.set()
            return
        await asyncio.sleep(1_000)

    client = await PushConsumer(
        sys.argv[2], {"Forgotten": "*"}, listen, namesrv_addr=sys.argv[1],
        consume_from=ConsumeFrom.FIRST_OFFSET,
    ).start()
    await consumed.wait()
    await asyncio.sleep(0.2)
    return client

client = asyncio.run(main())
"""
LITE: Final = """
import sys
from txrocketmq.client import ConsumeFrom, LitePullConsumer

client = LitePullConsumer(
    sys.argv[2], {"Forgotten": "*"}, namesrv_addr=sys.argv[1], auto_commit_interval_ms=1_000,
    consume_from=ConsumeFrom.FIRST_OFFSET,
).start()
for _ in client:
    break
client.commit()
"""
POP: Final = """
import sys
from txrocketmq.client import PopConsumer

client = PopConsumer(sys.argv[2], {"Forgotten": "*"}, namesrv_addr=sys.argv[1]).start()
client.ack(client.receive(1, 600_000, wait_ms=60_000))
"""
TWISTED: Final = """
import sys
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from txrocketmq.client.tx import Producer, new_message

async def main(reactor):
    global client
    client = await Producer(sys.argv[2], namesrv_addr=sys.argv[1]).start()
    await client.send(new_message("Orders", "x"))

try:
    react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
except SystemExit as end:
    assert end.code == 0
"""


@pytest.fixture(scope="module")
def where(rocketmq_server: Server) -> str:
    """A broker with more messages than the listeners consume in time."""
    rocketmq_server.create_topic("Forgotten", queues=1)
    messages = (new_message("Forgotten", str(number)) for number in range(COUNT))
    with rocketmq_server.producer("fills") as producer:
        for batch in split_batches(messages):
            producer.send_batch(batch)
    return rocketmq_server.namesrv_addr


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (PRODUCER, "Producer"),
        (PUSH, "PushConsumer"),
        (ORDERLY, "PushConsumer"),
        (AIO, "PushConsumer"),
        (LITE, "LitePullConsumer"),
        (POP, "PopConsumer"),
        (TWISTED, "Producer"),
    ],
    ids=["producer", "push", "orderly", "asyncio", "lite", "pop", "twisted"],
)
def test_a_forgotten_shutdown_is_said_and_the_program_ends(
    rocketmq_server: Server, where: str, program: str, kind: str, request: pytest.FixtureRequest
) -> None:
    group = f"forgetful-{request.node.callspec.id}"
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, where, group],
        capture_output=True, text=True, check=False, timeout=ENDS_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"txrocketmq: {kind} of group {group} was not shut down: call shutdown(), or use it in a"
        " with statement\n"
    )
    assert time.monotonic() - begun < ENDS_S
    if kind == "Producer":
        return
    until = time.monotonic() + ENDS_S  # a broker notes a little later what was popped
    while rocketmq_server.lag(group, "Forgotten") == COUNT:
        assert time.monotonic() < until, "nothing was committed"
        time.sleep(0.05)
    assert COUNT / 2 < rocketmq_server.lag(group, "Forgotten") < COUNT
    if kind == "PopConsumer":
        return
    # What was not consumed is there for others, and was not sent back.
    first = COUNT - rocketmq_server.lag(group, "Forgotten")
    seen: list[int] = []
    with LitePullConsumer(group, {"Forgotten": "*"}, namesrv_addr=where) as consumer:
        for message in consumer:
            assert message.reconsume_times == 0
            seen.append(int(message.body))
            if len(seen) == COUNT - first:
                break
    assert seen == list(range(first, COUNT))
