# SPDX-License-Identifier: Apache-2.0
"""The fixtures of the pytest plugin with a real server, and the server within a reactor."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.process.conftest import Run
from txrocketmq.client import MessageExt, SendFailed, SendStatus, new_message
from txrocketmq.testing.server import Server, running

SEND_DELAYED = """
import sys
from txrocketmq.cli import session
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.message.message import Message

async def main(client):
    await Producer(client, "g").send(Message("Delayed", b"later", properties={"DELAY": "5"}))
    return 0

sys.exit(session.run("test", ClientConfig(namesrv_addr=sys.argv[1]), main))
"""

IN_PROCESS = """
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.consumer.pull import PullLoop
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.message.message import Message
from txrocketmq.testing.in_process import InProcessServer

async def test(reactor):
    server = InProcessServer()
    await server.start()
    client = ClientInstance(ClientConfig(namesrv_addr=server.namesrv_addr))
    client.start()
    await Producer(client, "g").send(Message("Delayed", b"later", properties={"DELAY": "18"}))
    got = Deferred()
    await client.refresh("Delayed")
    loop = PullLoop(client, "Delayed", lambda _, messages: got.callback(messages), start="first")
    await loop.start()
    server.advance(2 * 3600 * 1000)
    (message,) = await got
    print(message.body.decode())
    loop.stop()
    await client.stop()
    await server.stop()

react(lambda reactor: Deferred.fromCoroutine(test(reactor)))
"""


def python(
    program: str, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )


def test_a_delay_is_over_when_the_clock_says_so(rocketmq: Server, txrocketmq: Run) -> None:
    sent = python(SEND_DELAYED, rocketmq.namesrv_addr)
    assert sent.returncode == 0, sent.stderr
    flags = ("--from", "first", "--json", "--count", "1")
    tail = txrocketmq("tail", "Delayed", *flags, "--timeout", "1", namesrv=rocketmq.namesrv_addr)
    assert tail.end()[:2] == (1, "")
    rocketmq.advance(60_000)
    tail = txrocketmq("tail", "Delayed", *flags, "--timeout", "20", namesrv=rocketmq.namesrv_addr)
    code, out, _ = tail.end()
    assert (code, json.loads(out)["body"]) == (0, "later")


@pytest.mark.rocketmq(autoCreateTopicEnable=False)
def test_the_broker_has_the_settings_of_the_marker(rocketmq: Server, txrocketmq: Run) -> None:
    code, _, err = txrocketmq("send", "T", "x", namesrv=rocketmq.namesrv_addr).end()
    assert code == 1
    assert "topic T has no route" in err
    assert len(err.splitlines()) == 1
    assert rocketmq.log_path.read_text().count("listens on") == 2


def test_the_same_within_a_reactor(tmp_path: Path) -> None:
    done = python(IN_PROCESS, env={"TMPDIR": str(tmp_path), "PATH": ""})
    assert (done.returncode, done.stdout, done.stderr) == (0, "later\n", "")
    assert list(tmp_path.iterdir()) == []


def test_what_is_sent_is_seen_and_consumed(rocketmq: Server) -> None:
    rocketmq.create_topic("Orders", queues=1)
    assert rocketmq.topics() == ["Orders"]
    for body in ("one", "two"):
        assert rocketmq.send("Orders", body, tags="new").status is SendStatus.SEND_OK
    assert [message.body for message in rocketmq.messages("Orders")] == [b"one", b"two"]
    with pytest.raises(TimeoutError, match="group stock consumes no topic yet"):
        rocketmq.wait_consumed("stock", timeout_s=0)
    pulled = rocketmq.consumer("Orders", group="shop")
    first = next(iter(pulled))
    assert (first.body, first.tags) == (b"one", "new")
    got: list[bytes] = []
    rocketmq.consumer(
        "Orders", lambda messages, _: got.extend(each.body for each in messages), group="stock"
    )
    rocketmq.wait_consumed("stock", timeout_s=30)
    assert (got, rocketmq.lag("stock"), rocketmq.lag("shop", "Orders")) == ([b"one", b"two"], 0, 2)
    assert rocketmq.groups() == ["shop", "stock"]


def test_faults_are_the_clients_to_bear(rocketmq: Server) -> None:
    rocketmq.create_topic("Orders")
    with rocketmq.refuse("SYSTEM_BUSY", times=2) as busy:
        assert rocketmq.send("Orders", "after two retries").status is SendStatus.SEND_OK
        assert busy.count == 2
    with (
        rocketmq.refuse("NO_PERMISSION", topic="Orders"),
        pytest.raises(SendFailed, match="refused by the test"),
    ):
        rocketmq.send("Orders", "never")
    with rocketmq.delay_ms(300):
        began = time.monotonic()
        rocketmq.send("Orders", "late")
        assert time.monotonic() - began >= 0.3
    assert rocketmq.drop_connections() >= 1
    rocketmq.send("Orders", "by a new connection")
    bodies = [message.body for message in rocketmq.messages("Orders")]
    assert bodies == [b"after two retries", b"late", b"by a new connection"]


def test_a_server_is_paused_killed_and_started_again(rocketmq: Server) -> None:
    rocketmq.create_topic("Orders")
    producer = rocketmq.producer()
    producer.send(new_message("Orders", "before"))
    with rocketmq.pause(), pytest.raises(SendFailed):
        producer.send(new_message("Orders", "to nobody"), timeout_ms=200)
    where = rocketmq.namesrv_addr, rocketmq.broker_addr
    rocketmq.kill()
    with pytest.raises(SendFailed):
        producer.send(new_message("Orders", "to nobody"))
    rocketmq.restart()
    assert where == (rocketmq.namesrv_addr, rocketmq.broker_addr)
    producer.send(new_message("Orders", "after"))
    bodies = [message.body for message in rocketmq.messages("Orders")]
    assert bodies[0] == b"before"
    assert bodies[-1] == b"after"


def test_a_reset_leaves_nothing(rocketmq: Server) -> None:
    rocketmq.send("Orders", "one")
    rocketmq.consumer("Orders", lambda *_: None, group="stock")
    rocketmq.refuse("NO_PERMISSION")
    rocketmq.advance(3_600_000)
    rocketmq.reset()
    assert (rocketmq.topics(), rocketmq.groups()) == ([], [])
    result = rocketmq.send("Orders", "two")
    assert result.queue_offset == 0
    (message,) = rocketmq.messages("Orders")
    assert abs(message.store_timestamp / 1000 - time.time()) < 600


def test_the_same_for_asyncio(rocketmq: Server) -> None:
    async def test() -> None:
        server = rocketmq.aio
        await server.create_topic("Orders", queues=1)
        async with server.producer() as producer:
            await producer.send(new_message("Orders", "one"))
        async with await server.consumer("Orders", group="shop") as consumer:
            async for message in consumer:
                assert message.body == b"one"
                break
        got: list[bytes] = []

        async def listener(messages: list[MessageExt], _: object) -> None:
            got.extend(each.body for each in messages)

        async with await server.consumer("Orders", listener, group="stock"):
            await server.wait_consumed("stock", timeout_s=30)
        assert got == [b"one"]

    asyncio.run(test())


@pytest.mark.parametrize("is_aio", [False, True])
def test_an_error_of_a_listener_fails_the_test_that_waits(rocketmq: Server, is_aio: bool) -> None:
    def listener(messages: list[MessageExt], _: object) -> None:
        assert messages[0].body == b"two"

    async def aio_test() -> None:
        async with await rocketmq.aio.consumer("Orders", listener, group="stock"):
            await rocketmq.aio.wait_consumed("stock", timeout_s=30)

    rocketmq.send("Orders", "one")
    if not is_aio:
        rocketmq.consumer("Orders", listener, group="stock")
    with pytest.raises(AssertionError, match="b'two'"):
        asyncio.run(aio_test()) if is_aio else rocketmq.wait_consumed("stock", timeout_s=30)


def test_accounts() -> None:
    with running(accounts=True) as server:
        server.create_topic("Orders")
        server.send("Orders", "by the first account")
        shop = server.create_account("shop", "shop-secret", {"Topic:Orders": ["Pub"]})
        server.producer("shop", **shop).send(new_message("Orders", "by the shop"))
        with pytest.raises(SendFailed, match="has no policy for this"):
            server.producer("elsewhere", **shop).send(new_message("Other", "x"))
        with pytest.raises(SendFailed, match="the secret key of the account is not"):
            server.producer("wrong", **{**shop, "secret_key": "another"}).send(
                new_message("Orders", "x")
            )
        with pytest.raises(ValueError, match="The user is existed"):
            server.create_account("shop", "again")
        bodies = [message.body for message in server.messages("Orders")]
        assert bodies == [b"by the first account", b"by the shop"]
