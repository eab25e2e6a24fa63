# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.spark.live.fakes import NAME_SERVER, FakeQueue, lost_connection, message
from tests.spark.sink.conftest import StoringWorld
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.arrow.errors import OptionError, SparkSourceError
from txrocketmq.spark.live.wire.rpc import Refused
from txrocketmq.spark.sink.replay import SentBefore, rocketmq_batch
from txrocketmq.spark.sink.rows import Outgoing


def row(number: int, **properties: str) -> Outgoing:
    message = Message("T", b"body 1/0", 0, {"UNIQ_KEY": f"KEY{number}", **properties})
    return Outgoing(number, message, None, None, None)


def stored(world: StoringWorld, broker: str, topic: str, number: int) -> None:
    """The message of a row."""
    body = row(number).message.body
    kept = message(topic, 1, 0, body=body, properties={"UNIQ_KEY": f"KEY{number}"})
    world.brokers[broker].queues.setdefault((topic, 1), FakeQueue()).messages.append(kept)


def sent_before(world: StoringWorld, sent: list[Outgoing]) -> SentBefore:
    return SentBefore(world.cluster(attempts=2), sent.append)


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
        stored(world, broker, "T", number)
    sent: list[Outgoing] = []
    ours = sent_before(world, sent)
    assert ours.left([row(0), row(1), row(2)]) == [row(1)]
    assert ours.left([row(3), row(4)]) == [row(4)]
    assert not sent


def test_another_message_under_the_key_of_a_row_is_not_taken_for_it(world: StoringWorld) -> None:
    """As when the checkpoint of a stream is deleted: its batches have the old numbers again."""
    for number in range(3):
        stored(world, "a", "T", number)
    other = row(1)._replace(message=replace(row(1).message, body=b"other"))
    with pytest.raises(SparkSourceError, match=r"row 1 .* a new checkpoint needs a new name"):
        sent_before(world, []).left([row(0), other, row(2)])
    sent: list[Outgoing] = []
    with pytest.raises(SparkSourceError, match="another body"):
        sent_before(world, sent).left([other])
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
    stored(world, "b", topic, 0)
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
