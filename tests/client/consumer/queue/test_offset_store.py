# SPDX-License-Identifier: Apache-2.0
"""Offsets of a group: noted here, told to the brokers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.consumer.queue.offset_store import BrokerOffsets, NotedOffsets
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import QueryConsumerOffsetResponseHeader

QUEUE, OTHER = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


@pytest.fixture
def offsets(scene: Scene) -> BrokerOffsets:
    """Of a group in a scene with one broker."""
    scene.routes["T"] = a_route({"broker-a": 2})
    return BrokerOffsets(scene.client, "g")


def told(scene: Scene) -> list[Any]:
    """Queue ids and offsets that the broker was told."""
    return [(header.queue_id, header.commit_offset) for _, _, header, _ in scene.connections.told]


def test_an_offset_goes_on_and_not_back(offsets: BrokerOffsets) -> None:
    assert offsets.noted(QUEUE) is None
    offsets.note(QUEUE, 5)
    offsets.note(QUEUE, 3)
    assert offsets.noted(QUEUE) == 5
    offsets.set(QUEUE, 3)
    assert offsets.noted(QUEUE) == 3


def test_brokers_are_told_of_the_queues_that_are_asked_for(
    scene: Scene, offsets: BrokerOffsets
) -> None:
    offsets.note(QUEUE, 5)
    offsets.note(OTHER, 7)
    result_of(offsets.persist([QUEUE, MessageQueue("T", "broker-a", 9)]))
    assert told(scene) == [(0, 5)]
    result_of(offsets.persist([QUEUE]))
    assert told(scene) == [(0, 5), (0, 5)]
    (_, call, header, _) = scene.connections.told[0]
    assert call is offset.UPDATE_CONSUMER_OFFSET
    assert (header.consumer_group, header.topic, header.bname) == ("g", "T", "broker-a")


def test_a_broker_that_is_gone_is_told_nothing(scene: Scene, offsets: BrokerOffsets) -> None:
    lost = MessageQueue("T", "broker-x", 0)
    offsets.note(lost, 5)
    result_of(offsets.persist([lost]))
    assert told(scene) == []


def test_what_a_queue_had_is_forgotten(scene: Scene, offsets: BrokerOffsets) -> None:
    offsets.note(QUEUE, 5)
    offsets.forget(QUEUE)
    result_of(offsets.persist([QUEUE]))
    assert told(scene) == []


def test_the_broker_says_where_the_group_is_or_that_it_does_not_know(
    scene: Scene, offsets: BrokerOffsets
) -> None:
    known = Reply(QueryConsumerOffsetResponseHeader(offset=8))
    scene.connections.on(BROKER_A, offset.QUERY_CONSUMER_OFFSET, known)
    assert result_of(offsets.read(QUEUE)) == 8
    unknown = refusal(ResponseCode.QUERY_NOT_FOUND)
    scene.connections.on(BROKER_A, offset.QUERY_CONSUMER_OFFSET, unknown)
    assert result_of(offsets.read(QUEUE)) is None
    busy = refusal(ResponseCode.SYSTEM_BUSY)
    scene.connections.on(BROKER_A, offset.QUERY_CONSUMER_OFFSET, busy)
    with pytest.raises(MQBrokerError):
        result_of(offsets.read(QUEUE))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["note", "set", "forget"]),
        st.sampled_from([QUEUE, OTHER, MessageQueue("U", "broker-a", 0)]),
        st.integers(0, 20),
    )
)


@given(STEPS)
def test_whatever_happens_the_table_has_what_holds(
    steps: list[tuple[str, MessageQueue, int]],
) -> None:
    """Notes go forward only, settings go anywhere, and what is forgotten begins anew."""
    store, held = NotedOffsets(), dict[MessageQueue, int]()
    for kind, queue, at in steps:
        if kind == "note":
            store.note(queue, at)
            held[queue] = max(held.get(queue, at), at)
        elif kind == "set":
            store.set(queue, at)
            held[queue] = at
        else:
            store.forget(queue)
            held.pop(queue, None)
        assert store.noted(queue) == held.get(queue)
    for topic in "TU":
        assert store.table(topic) == {each: at for each, at in held.items() if each.topic == topic}
