# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from twisted.internet.task import Clock as ReactorClock

from tests.proxy.scene import a_route
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.cluster import TopicRoute
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.sends.send_places import PENALTY_MS, SendPlaces
from txrocketmq.remoting.host.clock import Clock

ROUTE = TopicRoute("T", a_route({"broker-b": 2, "broker-a": 2}))


def places() -> tuple[SendPlaces, ReactorClock]:
    time = ReactorClock()
    return SendPlaces(Clock(time)), time


def test_a_group_has_one_queue_and_the_others_take_turns() -> None:
    its, _ = places()
    assert len({its.queue(ROUTE, "order-2") for _ in range(10)}) == 1
    assert len({its.queue(ROUTE, "") for _ in range(4)}) == 4


def test_groups_are_spread_over_sorted_queues() -> None:
    its, _ = places()
    assert [(each.broker_name, each.queue_id) for each in ROUTE.writable] == [
        ("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1),
    ]  # fmt: skip
    assert its.queue(ROUTE, "漢字") == ROUTE.writable[1]


def test_a_broker_that_failed_is_passed_over_for_a_while() -> None:
    its, time = places()
    its.failed("broker-a")
    assert {its.queue(ROUTE, "").broker_name for _ in range(8)} == {"broker-b"}
    assert its.queue(ROUTE, "漢字").broker_name == "broker-a"
    time.advance(PENALTY_MS / 1_000)
    assert len({its.queue(ROUTE, "").broker_name for _ in range(8)}) == 2
    its.failed("broker-a")
    its.took("broker-a")
    assert len({its.queue(ROUTE, "").broker_name for _ in range(8)}) == 2


def test_a_topic_that_takes_nothing_is_forbidden() -> None:
    its, _ = places()
    with pytest.raises(Refused, match="no writable queue") as refused:
        its.queue(TopicRoute("T", a_route({"broker-a": 2}, perm=4)), "")
    assert refused.value.code is Code.FORBIDDEN
