# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.spark.live.fakes import NAME_SERVER, lost_connection
from tests.spark.sink.conftest import StoringWorld
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.live.rpc import Refused
from txrocketmq.spark.sink.replay import SentBefore, rocketmq_batch
from txrocketmq.spark.sink.rows import Outgoing


def row(number: int, **properties: str) -> Outgoing:
    message = Message("T", b"x", 0, {"UNIQ_KEY": f"KEY{number}", **properties})
    return Outgoing(number, message, None, None, None)


def sent_before(world: StoringWorld, sent: list[Outgoing]) -> SentBefore:
    return SentBefore(world.cluster(attempts=2), 2, sent.append)


def queries(world: StoringWorld) -> int:
    return sum(count for (_, name), count in world.asked.items() if name == "QUERY_MESSAGE")


def test_of_a_new_batch_the_first_row_goes_before_all_others_and_only_it_is_asked_for(
    world: StoringWorld,
) -> None:
    sent: list[Outgoing] = []
    ours = sent_before(world, sent)
    assert ours.left([]) == []
    assert ours.left([row(0), row(1)]) == [row(1)]
    assert sent == [row(0)]
    assert ours.left([row(2)]) == [row(2)]
    assert queries(world) == 2, "of each broker"


def test_of_a_replayed_batch_what_is_there_is_left_out(world: StoringWorld) -> None:
    for broker, number in (("a", 0), ("b", 2), ("a", 3)):
        world.brokers[broker].add("T", 1)
        world.brokers[broker].queues["T", 1].messages[-1].properties["UNIQ_KEY"] = f"KEY{number}"
    sent: list[Outgoing] = []
    ours = sent_before(world, sent)
    assert ours.left([row(0), row(1), row(2)]) == [row(1)]
    assert ours.left([row(3), row(4)]) == [row(4)]
    assert not sent


@pytest.mark.parametrize(
    ("properties", "topic"),
    [
        ({"DELAY": "3"}, "SCHEDULE_TOPIC_XXXX"),
        ({"TIMER_DELIVER_MS": "5"}, "rmq_sys_wheel_timer"),
    ],
)
def test_messages_that_are_not_yet_delivered_are_found(
    world: StoringWorld, properties: dict[str, str], topic: str
) -> None:
    world.brokers["b"].add(topic, 2)
    world.brokers["b"].queues[topic, 2].messages[-1].properties["UNIQ_KEY"] = "KEY0"
    ours = sent_before(world, [])
    assert ours.left([row(0, **properties), row(1, **properties)]) == [row(1, **properties)]


def test_a_broker_that_does_not_answer_is_asked_again(world: StoringWorld) -> None:
    failures = [lost_connection()]
    world.fail = lambda at, *_: failures.pop() if at != NAME_SERVER and failures else None
    sent: list[Outgoing] = []
    assert sent_before(world, sent).left([row(0)]) == []
    assert sent == [row(0)]


def test_a_broker_that_refuses_to_tell_is_an_error(world: StoringWorld) -> None:
    refusal: Reply[Any] = Reply(code=ResponseCode.NO_PERMISSION, remark="no")
    world.fail = lambda at, *_: None if at == NAME_SERVER else refusal
    with pytest.raises(Refused, match="NO_PERMISSION"):
        sent_before(world, []).left([row(0)])


def test_options_are_checked_when_the_function_is_made() -> None:
    with pytest.raises(OptionError, match="nameServer is needed"):
        rocketmq_batch("query", {"topic": "T"})
    with pytest.raises(OptionError, match="name of a query"):
        rocketmq_batch(" ", {"nameServer": "localhost:9876"})
