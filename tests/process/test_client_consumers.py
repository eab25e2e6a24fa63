# SPDX-License-Identifier: Apache-2.0
"""Consumers through all faces of the client, against a server: what programs give and get."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from txrocketmq.client import (
    ConsumeFrom,
    LitePullConsumer,
    Producer,
    aio,
    by_hash,
    compat,
    new_message,
    orderly,
)
from txrocketmq.testing.server import Server

ENOUGH_S = 120
COUNT = 8


@pytest.fixture(scope="module")
def where(rocketmq_server: Server) -> str:
    """The name server of a broker with some messages, all in one queue."""
    with Producer("fills", namesrv_addr=rocketmq_server.namesrv_addr) as producer:
        for number in range(COUNT):
            producer.send(new_message("Numbers", str(number)), selector=by_hash, key="k")
    return rocketmq_server.namesrv_addr


def numbers(messages: Sequence[Any]) -> list[int]:
    return [int(message.body) for message in messages]


def test_blocking_calls(where: str) -> None:
    settings: dict[str, Any] = {"namesrv_addr": where, "consume_from": ConsumeFrom.FIRST_OFFSET}
    heard = threading.Event()
    with LitePullConsumer("lite", auto_commit=False, **settings) as consumer:
        consumer.subscribe("Numbers", queues_changed=lambda *_: heard.set())
        assert heard.wait(ENOUGH_S)
        seen = []
        for message in consumer:
            seen.append(message)
            if len(seen) == COUNT:
                break
        consumer.commit()
        assert sum(consumer.committed(queue) or 0 for queue in consumer.assignment) == COUNT
    assert numbers(seen) == list(range(COUNT))
    assert list(consumer) == []


def test_asyncio(where: str) -> None:
    settings: dict[str, Any] = {"namesrv_addr": where, "consume_from": ConsumeFrom.FIRST_OFFSET}

    async def main() -> None:
        seen: list[int] = []
        assigned: list[int] = []
        threads: set[threading.Thread] = set()
        enough, heard = asyncio.Event(), asyncio.Event()

        @orderly
        async def listener(messages: Any, context: Any) -> None:
            assert context.auto_commit
            await asyncio.sleep(0)
            threads.add(threading.current_thread())
            seen.extend(numbers(messages))
            if len(seen) == COUNT:
                enough.set()

        async def changed(topic: str, queues: Any, own: Any) -> None:
            await asyncio.sleep(0)
            assigned.append(len(own))
            heard.set()

        async with aio.PushConsumer(
            "aio-push", {"Numbers": "*"}, listener, queues_changed=changed, **settings
        ) as consumer:
            async with asyncio.timeout(ENOUGH_S):
                await enough.wait()
                await heard.wait()
            assert len(consumer.queues) >= max(assigned) > 0
        assert seen == list(range(COUNT))
        assert threads == {threading.current_thread()}

        async with aio.LitePullConsumer("aio-lite", {"Numbers": "*"}, **settings) as lite:
            found = []
            async for message in lite:
                found.append(message)
                if len(found) == COUNT:
                    break
        assert numbers(found) == seen

    asyncio.run(main())


@pytest.mark.parametrize("model", compat.MessageModel)
def test_the_classes_of_rocketmq_client_python(
    where: str, model: compat.MessageModel, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    seen: list[int] = []
    enough = threading.Event()

    def consume(message: compat.ReceivedMessage) -> compat.ConsumeStatus:
        seen.append(int(message.body))
        if len(seen) == 1:
            return compat.ConsumeStatus.RECONSUME_LATER
        if len(seen) == COUNT + 1:
            enough.set()
        return compat.ConsumeStatus.CONSUME_SUCCESS

    consumer = compat.PushConsumer(f"compat-{model.name}", orderly=True, message_model=model)
    consumer.set_name_server_address(where)
    consumer.set_instance_name("one")
    consumer.subscribe("Numbers", consume)
    consumer._settings["consume_from"] = ConsumeFrom.FIRST_OFFSET
    consumer.start()
    assert enough.wait(ENOUGH_S), seen
    consumer.shutdown()
    assert seen == [0, *range(COUNT)]
    assert bool(list(tmp_path.rglob("offsets.json"))) == (model.name == "BROADCASTING")


@pytest.mark.rocketmq(transactionTimeOut=500, transactionCheckInterval=500)
def test_transactions_of_rocketmq_client_python(rocketmq: Server) -> None:
    """The program of its samples: a local transaction each, and a checker for what is open."""
    status = compat.TransactionStatus
    asked: list[tuple[bytes, bytes]] = []
    executed: list[tuple[bytes, Any]] = []
    ends = {"now": status.COMMIT, "never": status.ROLLBACK, "later": status.UNKNOWN}

    def check(message: compat.ReceivedMessage) -> compat.TransactionStatus:
        asked.append((message.body, message.keys))
        return status.COMMIT

    def execute(message: compat.ReceivedMessage, user_args: Any) -> compat.TransactionStatus:
        executed.append((message.body, user_args))
        return ends[message.body.decode()]

    rocketmq.create_topic("Paid", queues=1)
    producer = compat.TransactionMQProducer("compat-transactions", check)
    producer.set_name_server_address(rocketmq.namesrv_addr)
    producer.start()
    for number, body in enumerate(ends):
        message = compat.Message("Paid")
        message.set_keys(f"key{number}")
        message.set_body(body)
        result = producer.send_message_in_transaction(message, execute, number)
        assert result.status == compat.SendStatus.OK
    deadline = time.monotonic() + ENOUGH_S
    while len(rocketmq.messages("Paid")) < 2:
        assert time.monotonic() < deadline, asked
        time.sleep(0.1)
    producer.shutdown()
    assert executed == [(b"now", 0), (b"never", 1), (b"later", 2)]
    assert set(asked) == {(b"later", b"key2")}
    assert [each.body for each in rocketmq.messages("Paid")] == [b"now", b"later"]
