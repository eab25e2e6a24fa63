# SPDX-License-Identifier: Apache-2.0
"""A message that an administrator gives to a listener."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import succeed
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import result_of
from txrocketmq.client.consumer.listening.direct_consumption import consume_directly
from txrocketmq.client.consumer.listening.listener import Calls, ConsumeOrderlyStatus, ConsumeStatus
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt


def consumed(listener: Any, *, is_orderly: bool = False) -> Any:
    clock = Clock(ReactorClock())
    message = MessageExt("%RETRY%g", b"x", properties={names.RETRY_TOPIC: "T"})
    message.broker_name = "b"
    calls = Calls(clock, listener, 0)
    return result_of(consume_directly(calls, clock, message, is_orderly=is_orderly))


@pytest.mark.parametrize(
    ("answer", "is_orderly", "result"),
    [
        (None, False, "CR_SUCCESS"),
        (ConsumeStatus.CONSUME_SUCCESS, False, "CR_SUCCESS"),
        (ConsumeStatus.RECONSUME_LATER, False, "CR_LATER"),
        (ConsumeOrderlyStatus.SUCCESS, True, "CR_SUCCESS"),
        (ConsumeOrderlyStatus.COMMIT, True, "CR_COMMIT"),
        (ConsumeOrderlyStatus.ROLLBACK, True, "CR_ROLLBACK"),
        (ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, True, "CR_LATER"),
        (succeed(None), False, "CR_SUCCESS"),
    ],
)
def test_what_the_listener_says_is_told(answer: Any, is_orderly: bool, result: str) -> None:
    told = consumed(lambda *_: answer, is_orderly=is_orderly)
    assert (told.consume_result, told.order, told.auto_commit) == (result, is_orderly, True)


def test_what_is_no_status_is_told() -> None:
    told = consumed(lambda *_: ["done"])
    assert (told.consume_result, told.remark) == (
        "CR_RETURN_NULL", "the listener returned ['done'], no status",
    )  # fmt: skip


def test_an_error_of_the_listener_is_told() -> None:
    def fail(*_: Any) -> None:
        raise OSError("no disk")

    told = consumed(fail)
    assert (told.consume_result, told.remark) == ("CR_THROW_EXCEPTION", "OSError: no disk")


def test_the_listener_sees_the_topic_that_it_was_sent_to() -> None:
    seen: list[Any] = []
    consumed(lambda messages, context: seen.append((messages[0].topic, context.queue.topic)))
    assert seen == [("T", "T")]
