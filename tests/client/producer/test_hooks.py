# SPDX-License-Identifier: Apache-2.0
"""Functions that see messages before and after they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.producer.hooks import SendContext
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send import attempt
from txrocketmq.client.producer.send_result import SendStatus
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader


class Seen:
    def __init__(self) -> None:
        self.contexts: list[SendContext] = []
        self.fails = False

    def before_send(self, context: SendContext) -> None:
        assert context.result is None
        if self.fails:
            raise RuntimeError("a hook's own mistake")

    def after_send(self, context: SendContext) -> None:
        self.contexts.append(context)


@pytest.fixture
def one(scene: Scene) -> Scene:
    scene.routes["T"] = a_route({"broker-a": 1})
    stored = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, stored)
    return scene


def test_a_hook_sees_what_became_of_a_message(one: Scene) -> None:
    producer, seen = Producer(one.client, "g"), Seen()
    producer.add_send_hook(seen)
    result_of(producer.send(Message("T", b"x")))
    one.connections.on(BROKER_A, send.SEND_MESSAGE_V2, refusal(13))
    with pytest.raises(MQBrokerError):
        result_of(producer.send(Message("T", b"x")))
    good, bad = seen.contexts
    assert good.result is not None
    assert good.result.status is SendStatus.SEND_OK
    assert (good.group, good.broker_address) == ("g", BROKER_A)
    assert isinstance(bad.error, MQBrokerError)


def test_a_hook_sees_what_nobody_answers(one: Scene) -> None:
    producer, seen = Producer(one.client, "g"), Seen()
    producer.add_send_hook(seen)
    result_of(producer.send_oneway(Message("T", b"x")))
    (context,) = seen.contexts
    assert (context.broker_address, context.result, context.error) == (BROKER_A, None, None)


def test_a_hook_that_fails_loses_no_message(one: Scene) -> None:
    producer, seen = Producer(one.client, "g"), Seen()
    seen.fails = True
    producer.add_send_hook(seen)
    assert result_of(producer.send(Message("T", b"x"))).queue_offset == 7


def test_a_message_can_be_forbidden(one: Scene) -> None:
    producer = Producer(one.client, "g")

    def forbid(context: SendContext) -> None:
        raise PermissionError("not on Sundays")

    producer.add_check_forbidden_hook(forbid)
    with pytest.raises(PermissionError):
        result_of(producer.send(Message("T", b"x")))
    assert one.connections.questions(send.SEND_MESSAGE_V2) == []


def test_without_hooks_nothing_is_made_for_them(
    one: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def context(*fields: Any) -> SendContext:
        made.append(fields)
        return SendContext(*fields)

    monkeypatch.setattr(attempt, "SendContext", context)
    producer = Producer(one.client, "g")
    result_of(producer.send(Message("T", b"x")))
    result_of(producer.send_oneway(Message("T", b"x")))
    assert made == []
    producer.add_send_hook(Seen())
    result_of(producer.send(Message("T", b"x")))
    result_of(producer.send_oneway(Message("T", b"x")))
    assert len(made) == 2
