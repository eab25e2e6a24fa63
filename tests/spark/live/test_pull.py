# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spark.live.fakes import FakeBroker, World, lost_connection, queue
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE, PullMessageResponseHeader
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.pull import Gone, QueueRange, RangePull
from txrocketmq.spark.live.wire.rpc import Refused, Unreachable

MakeWorld = Callable[..., World]
QUEUE = queue("t", "a", 0)
MASTER, SLAVE = "10.0.1.1:10911", "10.0.1.1:10921"


def one_queue(world: MakeWorld, count: int, *, first: int = 0, **more: Any) -> World:
    broker = FakeBroker("a", addresses={0: MASTER, 1: SLAVE}, **more)
    broker.fill("t", [count], first=first)
    return world(broker)


def pulled(made: World, start: int, end: int, **more: Any) -> list[int | tuple[int, int]]:
    """Offsets of the messages in their order, and pairs for what is gone."""
    cluster = made.cluster()
    cluster.read_queues("t")
    found: list[int | tuple[int, int]] = []
    for each in RangePull(cluster, QueueRange(QUEUE, start, end), **more):
        if isinstance(each, Gone):
            found.append((each.start, each.end))
        else:
            found += (message.queue_offset for message in decode_messages(each))
    return found


def answer(next_offset: int, code: int, remark: str, low: int = 0, high: int = 9) -> Reply[Any]:
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0,
        next_begin_offset=next_offset,
        min_offset=low,
        max_offset=high,
    )
    return Reply(header, b"", code, remark)


def failing(made: World, *outcomes: Any) -> None:
    """The first pulls meet these; None is a good answer."""
    waiting = list(outcomes)

    def fail(_address: str, call: Call[Any, Any], _header: Any) -> Any:
        return waiting.pop(0) if call is PULL_MESSAGE and waiting else None

    made.fail = fail


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(1, 60),
    first=st.integers(0, 5),
    most=st.integers(1, 9),
    asked=st.integers(1, 9),
    depth=st.integers(1, 4),
    data=st.data(),
)
def test_each_message_once_and_in_order(
    world: MakeWorld, count: int, first: int, most: int, asked: int, depth: int, data: st.DataObject
) -> None:
    made = one_queue(world, count, first=first, most_messages=most)
    start = data.draw(st.integers(first, first + count))
    end = data.draw(st.integers(start, first + count))
    found = pulled(made, start, end, max_messages=asked, pulls_at_once=depth)
    assert found == list(range(start, end))
    pulls = made.asked[MASTER, "PULL_MESSAGE"]
    parts = -(-(end - start) // asked)
    assert pulls <= parts * -(-asked // min(most, asked))


def test_several_pulls_are_under_way(world: MakeWorld) -> None:
    made = one_queue(world, 100)
    seen: list[int] = []
    made.fail = lambda _, call, header: (
        seen.append(header.queue_offset) if call is PULL_MESSAGE else None
    )
    cluster = made.cluster()
    cluster.read_queues("t")
    pulls = iter(RangePull(cluster, QueueRange(QUEUE, 0, 100), max_messages=10, pulls_at_once=3))
    next(pulls)
    assert seen == [0, 10, 20]
    assert len(list(pulls)) == 9
    assert seen == list(range(0, 100, 10))


def test_with_tags_one_after_the_other_and_perhaps_beyond(world: MakeWorld) -> None:
    made = one_queue(world, 0)
    for at in range(50):
        made.brokers["a"].add("t", 0, tags="B" if at % 5 == 4 else "A")
    found = pulled(made, 0, 30, max_messages=4, expression="B")
    assert found == [4, 9, 14, 19, 24, 29, 34, 39], "the caller looks at the offsets"
    assert made.asked[MASTER, "PULL_MESSAGE"] == 2


def test_what_retention_has_deleted(world: MakeWorld) -> None:
    made = one_queue(world, 10, first=100)
    assert pulled(made, 90, 105) == [(90, 100), 100, 101, 102, 103, 104]
    assert pulled(made, 10, 20) == [(10, 20)]


def test_a_log_that_has_lost_its_beginning(world: MakeWorld) -> None:
    made = one_queue(world, 10)
    failing(made, answer(4, ResponseCode.PULL_RETRY_IMMEDIATELY, "MESSAGE_WAS_REMOVING"))
    assert pulled(made, 0, 10) == [(0, 4), 4, 5, 6, 7, 8, 9]


def test_a_queue_with_a_hole(world: MakeWorld) -> None:
    made = one_queue(world, 10)
    failing(made, answer(7, ResponseCode.PULL_NOT_FOUND, "OFFSET_FOUND_NULL"))
    assert pulled(made, 0, 10, max_messages=3) == [(0, 7), 7, 8, 9]


def test_a_queue_that_ends_too_early_is_waited_for(world: MakeWorld) -> None:
    made = one_queue(world, 5)
    assert pulled(made, 3, 8) == [3, 4, (5, 8)]
    assert made.pauses == [0.5, 1]
    assert pulled(made, 9, 11) == [(9, 11)]
    made.pauses.clear()

    def pause(seconds: float) -> None:
        made.pauses.append(seconds)
        made.brokers["a"].add("t", 0, 3)

    cluster = made.cluster()
    cluster._pause = pause
    cluster.read_queues("t")
    found = list(RangePull(cluster, QueueRange(QUEUE, 3, 8)))
    assert not any(isinstance(each, Gone) for each in found)
    assert made.pauses == [0.5]


def test_a_slave_that_is_behind_is_no_loss(world: MakeWorld) -> None:
    made = one_queue(world, 5)
    made.down = {MASTER}
    with pytest.raises(ClusterError, match="the master of a cannot be reached, and its slave has"):
        pulled(made, 3, 8)


def test_a_slave_stands_in(world: MakeWorld) -> None:
    made = one_queue(world, 5)
    made.down = {MASTER}
    assert pulled(made, 0, 5, max_messages=2) == [0, 1, 2, 3, 4]
    assert made.pauses == [0.5]


def test_lost_connections_and_busy_brokers(world: MakeWorld) -> None:
    made = one_queue(world, 50)
    busy: Reply[Any] = Reply(code=ResponseCode.SYSTEM_BUSY, remark="busy")
    failing(made, None, lost_connection(), None, None, busy)
    assert pulled(made, 0, 50, max_messages=5, pulls_at_once=4) == list(range(50))
    assert set(made.pauses) == {0.5}


def test_a_broker_that_stays_away(world: MakeWorld) -> None:
    made = one_queue(world, 50)
    made.down = {MASTER, SLAVE}
    with pytest.raises(Unreachable, match="no connection to"):
        pulled(made, 0, 50)
    assert made.pauses == [0.5, 1, 2, 4]


def test_a_refusal(world: MakeWorld) -> None:
    made = one_queue(world, 50)
    failing(made, Reply(code=ResponseCode.NO_PERMISSION, remark="the topic is forbidden"))
    with pytest.raises(Refused, match="the topic is forbidden"):
        pulled(made, 0, 50)


def test_an_offset_that_an_administrator_has_reset_is_pulled_again(world: MakeWorld) -> None:
    made = one_queue(world, 5)
    failing(made, answer(0, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", high=5))
    assert pulled(made, 2, 5) == [2, 3, 4]
    failing(made, *3 * [answer(0, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", high=5)])
    with pytest.raises(ClusterError, match="of group g are reset again and again"):
        pulled(made, 2, 5, group="g", pulls_at_once=1)


def test_messages_that_do_not_match_are_passed(world: MakeWorld) -> None:
    made = one_queue(world, 5)
    failing(made, answer(3, ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE"))
    assert pulled(made, 0, 5) == [3, 4]


def test_what_is_gone_in_words() -> None:
    text = str(Gone(QUEUE, 3, 8, "the queue begins at 8"))
    assert text == ("messages 3 to 7 of queue 0 of topic t on a are gone: the queue begins at 8")
