# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.spark.live.fakes import Outcome, lost_connection
from tests.spark.sink.conftest import SENDS, StoringWorld
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.rpc import Refused
from txrocketmq.spark.live.wire.send import message_parcel
from txrocketmq.spark.sink import sender as module
from txrocketmq.spark.sink.parcels import Packed
from txrocketmq.spark.sink.sender import IN_FLIGHT, Sender
from txrocketmq.spark.sink.targets import Lane, Targets


def sender(world: StoringWorld, *, retries: int = 2, first: int = 0) -> Sender:
    cluster = world.cluster(attempts=1)
    targets = Targets(cluster)
    return Sender(cluster, targets, group="g", timeout_ms=100, retries=retries, first=first)


def packed(body: bytes, lane: Lane = Lane("T")) -> Packed:  # noqa: B008 - immutable
    return Packed(lane, message_parcel(Message(lane.topic, body, 0, {"UNIQ_KEY": "K"})), 1)


def refuse_first(world: StoringWorld, *outcomes: Outcome) -> None:
    """So many of the sends meet these outcomes instead of an answer."""
    waiting = list(outcomes)

    def fail(address: str, call: Call[Any, Any], header: Any) -> Outcome | None:
        return waiting.pop(0) if call in SENDS and waiting else None

    world.fail = fail


def test_messages_are_spread_over_the_queues(world: StoringWorld) -> None:
    ours = sender(world, first=3)
    for number in range(16):
        ours.send(packed(b"%d" % number))
    ours.finish()
    assert sorted((name, queue) for name, queue, *_ in world.requests) == sorted(
        [(name, queue) for name in "ab" for queue in range(4)] * 2
    )
    assert world.requests[0][:2] == ("b", 0)


def test_no_more_than_some_are_under_way_and_one_to_a_queue(
    world: StoringWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    unanswered: list[tuple[str, int]] = []
    most: list[int] = []

    class Slow:
        def __init__(self, queue: Any) -> None:
            self.place = queue.broker_name, queue.queue_id
            unanswered.append(self.place)
            most.append(len(unanswered))

        def wait(self, accepted: Any) -> None:
            unanswered.remove(self.place)

    monkeypatch.setattr(module, "start_send", lambda cluster, queue, *_, **__: Slow(queue))
    ours = sender(world)
    for _ in range(20):
        ours.send(packed(b"x"))
    assert max(most) == IN_FLIGHT
    ours.finish()
    assert not unanswered
    most.clear()
    for _ in range(3):
        ours.send(packed(b"x", Lane("T", "b", 2)))
        ours.send(packed(b"x", Lane("T", "a", 1)))
    assert max(most) == 2, "queues that are named keep the order"


@pytest.mark.parametrize(
    "outcome",
    [
        lost_connection(),
        Reply(code=ResponseCode.SYSTEM_BUSY),
        Reply(code=ResponseCode.NO_PERMISSION),
    ],
)
def test_what_failed_is_tried_at_the_other_broker(world: StoringWorld, outcome: Outcome) -> None:
    refuse_first(world, outcome)
    ours = sender(world)
    ours.send(packed(b"x"))
    (first,) = [place for place, name in world.asked if name.startswith("SEND")]
    ours.finish()
    assert world.bodies == [b"x"]
    assert world.brokers[world.requests[0][0]].addresses[0] != first
    assert world.pauses == [0.5]


def test_a_message_with_a_queue_of_its_own_is_tried_there(world: StoringWorld) -> None:
    refuse_first(world, lost_connection(), Reply(code=ResponseCode.SYSTEM_ERROR))
    ours = sender(world)
    ours.send(packed(b"x", Lane("T", "b", 2)))
    ours.finish()
    assert [request[:2] for request in world.requests] == [("b", 2)]
    assert world.pauses == [0.5, 1.0]


def test_when_all_attempts_failed_all_reasons_are_told(world: StoringWorld) -> None:
    world.down = {"10.0.1.1:10911", "10.0.1.2:10911"}
    ours = sender(world, retries=1)
    ours.send(packed(b"x"))
    with pytest.raises(ClusterError, match="1 messages of topic T .* in 2 attempts") as raised:
        ours.finish()
    assert "no connection to 10.0.1.1:10911" in str(raised.value)
    assert "no connection to 10.0.1.2:10911" in str(raised.value)


def test_what_no_broker_would_take_is_not_tried_again(world: StoringWorld) -> None:
    refuse_first(world, Reply(code=ResponseCode.MESSAGE_ILLEGAL, remark="the message is illegal"))
    ours = sender(world)
    ours.send(packed(b"x"))
    with pytest.raises(Refused, match="the message is illegal"):
        ours.finish()
    assert not world.requests


def test_a_message_that_is_stored_but_not_yet_safe_is_not_sent_again(world: StoringWorld) -> None:
    refuse_first(world, Reply(code=ResponseCode.FLUSH_DISK_TIMEOUT))
    ours = sender(world)
    ours.send(packed(b"x"))
    ours.finish()
    assert sum(count for (_, name), count in world.asked.items() if name.startswith("SEND")) == 1
