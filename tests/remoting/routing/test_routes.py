# SPDX-License-Identifier: Apache-2.0
"""Queues of routes, and the choice among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.fakes import BROKER_A, a_route
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.routing.routes import (
    PublishInfo,
    default_route,
    is_changed,
    publish_queues,
    subscribe_queues,
    why_not_writable,
)


def queue(broker: str, queue_id: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, broker, queue_id)


def test_producers_get_the_writable_queues_of_masters_by_broker() -> None:
    route = a_route({"broker-b": 1, "broker-a": 2})
    assert publish_queues("T", route) == [
        queue("broker-a", 0),
        queue("broker-a", 1),
        queue("broker-b", 0),
    ]


def test_a_slave_alone_takes_no_messages_but_gives_them() -> None:
    route = a_route({"broker-a": 1}, addresses={"broker-a": {1: BROKER_A}})
    assert publish_queues("T", route) == []
    assert subscribe_queues("T", route) == [queue("broker-a", 0)]


def test_why_nothing_can_be_sent_is_told() -> None:
    slave = a_route({"broker-a": 1}, addresses={"broker-a": {1: BROKER_A}})
    assert why_not_writable(slave) == (
        "no master is registered for broker-a; a slave takes no messages"
    )
    closed = a_route({"broker-a": 1}, perm=4)
    assert why_not_writable(closed) == "its brokers allow no writing"
    (broker,) = closed.broker_datas
    acting = replace(closed, broker_datas=[replace(broker, enable_acting_master=True)])
    assert why_not_writable(acting) == (
        "its brokers allow no writing; if the master of broker-a is away, a slave acts for it"
        " meanwhile"
    )
    assert subscribe_queues("T", acting) == [queue("broker-a", 0)]
    assert why_not_writable(a_route({})) == "its route names no queues"


@pytest.mark.parametrize(("perm", "writes", "reads"), [(6, 1, 1), (4, 0, 1), (2, 1, 0), (0, 0, 0)])
def test_permissions(perm: int, writes: int, reads: int) -> None:
    route = a_route({"broker-a": 1}, perm=perm)
    assert len(publish_queues("T", route)) == writes
    assert len(subscribe_queues("T", route)) == reads


def test_an_ordered_topic_has_the_queues_that_were_configured() -> None:
    route = a_route({"broker-a": 8}, order="broker-b:2;broker-c:x;broker-a:1;")
    assert publish_queues("T", route) == [
        queue("broker-b", 0),
        queue("broker-b", 1),
        queue("broker-a", 0),
    ]


def test_a_route_cannot_ask_for_a_million_queues() -> None:
    route = a_route({"broker-a": 2**31 - 1})
    assert len(publish_queues("T", route)) == len(subscribe_queues("T", route)) == MAX_QUEUES
    assert len(publish_queues("T", a_route({"broker-a": 1}, order="a:999999999"))) == MAX_QUEUES


def test_a_new_topic_has_no_more_queues_than_wanted() -> None:
    route = default_route(a_route({"broker-a": 8, "broker-b": 2}), 4)
    assert [(q.read_queue_nums, q.write_queue_nums) for q in route.queue_datas] == [(4, 4), (2, 2)]


def test_order_is_no_change() -> None:
    one, other = a_route({"broker-a": 1, "broker-b": 2}), a_route({"broker-b": 2, "broker-a": 1})
    assert not is_changed(one, other)
    assert is_changed(one, a_route({"broker-a": 1, "broker-b": 3}))
    assert is_changed(None, one)


def test_queues_are_taken_in_turn() -> None:
    info = PublishInfo([queue("a", 0), queue("a", 1), queue("b", 0)], start=0)
    assert [info.select().queue_id for _ in range(4)] == [0, 1, 0, 0]


def test_the_turn_does_not_break_at_the_end_of_the_counter() -> None:
    info = PublishInfo([queue("a", 0), queue("a", 1)], start=0x7FFFFFFF)
    assert [info.select().queue_id for _ in range(3)] == [1, 0, 1]


def test_another_broker_than_the_last_is_taken_where_there_is_one() -> None:
    info = PublishInfo([queue("a", 0), queue("a", 1), queue("b", 0)], start=0)
    assert info.select("a").broker_name == "b"
    assert PublishInfo([queue("a", 0)], start=0).select("a") == queue("a", 0)


@given(st.lists(st.sampled_from("abc"), min_size=1), st.integers(0, 2**31 - 1))
def test_selection_ends_with_a_queue_of_the_topic(brokers: list[str], start: int) -> None:
    queues = [queue(broker, n) for n, broker in enumerate(brokers)]
    info = PublishInfo(queues, start=start)
    chosen = info.select("a")
    assert chosen in queues
    assert chosen.broker_name != "a" or set(brokers) == {"a"}
