# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq lag` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.client.admin.fake_cluster import CONNECTIONS, QUEUE, refused
from tests.client.fakes import BROKER_A, a_route
from txrocketmq.cli.admin.lag import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, OffsetWrapper
from txrocketmq.remoting.protocol.operations import admin


@pytest.fixture
def lag(administered: Administered) -> Administered:
    """The group g is 3 behind and has a consumer; the group idle has nothing."""
    cluster = administered.cluster
    cluster.know("g")
    cluster.know("idle")
    for name in ("T", "%RETRY%g", "%RETRY%idle"):
        cluster.routes[name] = a_route({"broker-a": 1})

    def stats(_: str, header: Any, __: bytes) -> Reply[Any]:
        its = OffsetWrapper(broker_offset=10, consumer_offset=7, pull_offset=9)
        table = {QUEUE: its} if header.consumer_group == "g" else {}
        return Reply(body=ConsumeStats(offset_table=table).encode())

    def connections(_: str, header: Any, __: bytes) -> Reply[Any]:
        if header.consumer_group == "g":
            return Reply(body=CONNECTIONS)
        return refused(ResponseCode.CONSUMER_NOT_ONLINE)

    cluster.connections.on(BROKER_A, admin.GET_CONSUME_STATS, stats)
    cluster.connections.on(BROKER_A, admin.GET_CONSUMER_CONNECTION_LIST, connections)
    return administered


def test_all_groups_but_those_that_do_nothing(lag: Administered) -> None:
    assert lag.run(main) == 0
    assert lag.lines[1:] == [["g", "1", "CLUSTERING", "0.0", "3", "2"]]


@pytest.mark.parametrize("words", [["g"], ["g", "--topic", "T"]])
def test_the_queues_of_a_group(lag: Administered, words: list[str]) -> None:
    assert lag.run(main, *words) == 0
    assert lag.lines[1] == ["T", "broker-a", "0", "10", "7", "3", "2", "-"]
    lag.run(main, *words, "--json")
    assert json.loads(lag.out)["lag"] == 3


def test_a_topic_of_no_group(lag: Administered) -> None:
    assert lag.run(main, "--topic", "T") == 2
    assert "--topic needs a GROUP" in lag.err


def test_a_group_that_nobody_knows(lag: Administered) -> None:
    lag.cluster.routes["%RETRY%x"] = a_route({"broker-a": 1})
    assert lag.run(main, "x") == 1
    assert "no broker has the group x" in lag.out
