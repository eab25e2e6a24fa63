# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq offsets` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.client.admin.fake_cluster import QUEUE, refused
from tests.client.fakes import BROKER_A, a_route
from txrocketmq.cli.admin.offsets import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.body.offset import ResetOffsetBody
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, OffsetWrapper
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.operations import admin


@pytest.fixture
def offsets(administered: Administered) -> Administered:
    cluster = administered.cluster
    cluster.know("g")
    cluster.routes["T"] = cluster.routes["%RETRY%g"] = a_route({"broker-a": 1})
    body = ResetOffsetBody(offset_table={QUEUE: 4}).encode()
    on = cluster.connections.on
    on(BROKER_A, offset.INVOKE_BROKER_TO_RESET_OFFSET, Reply(body=body))
    on(BROKER_A, offset.UPDATE_CONSUMER_OFFSET, Reply())
    on(BROKER_A, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=0)))
    on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=9)))
    cluster.on_both(admin.GET_CONSUMER_CONNECTION_LIST, refused(ResponseCode.CONSUMER_NOT_ONLINE))
    stats = ConsumeStats(offset_table={QUEUE: OffsetWrapper(broker_offset=9, consumer_offset=6)})
    on(BROKER_A, admin.GET_CONSUME_STATS, Reply(body=stats.encode()))
    return administered


@pytest.mark.parametrize(
    ("to", "timestamp_ms"), [("first", 0), ("last", -1), ("1795248930123", 1_795_248_930_123)]
)
def test_a_reset(offsets: Administered, to: str, timestamp_ms: int) -> None:
    assert offsets.run(main, "reset", "g", "T", "--to", to, "--yes") == 0
    assert offsets.lines[1] == ["T", "broker-a", "0", "4"]
    calls = offsets.cluster.connections.questions(offset.INVOKE_BROKER_TO_RESET_OFFSET)
    header: Any = calls[0][1]
    assert (header.timestamp, header.is_force) == (timestamp_ms, True)


def test_a_reset_is_asked_for(offsets: Administered) -> None:
    assert offsets.run(main, "reset", "g", "T", "--to", "first") == 1
    assert offsets.cluster.asked(offset.INVOKE_BROKER_TO_RESET_OFFSET) == []
    assert offsets.run(main, "reset", "g", "T", "--to", "lst", "-y") == 2
    assert "'lst' is neither first, last, nor a time" in offsets.err


def test_back_only(offsets: Administered) -> None:
    offsets.run(main, "reset", "g", "T", "--to", "last", "--back-only", "-y", "--json")
    assert json.loads(offsets.out)["offset"] == 4
    calls = offsets.cluster.connections.questions(offset.INVOKE_BROKER_TO_RESET_OFFSET)
    header: Any = calls[0][1]
    assert not header.is_force


def test_one_offset(offsets: Administered) -> None:
    assert offsets.run(main, "set", "g", "T", "broker-a", "0", "5") == 0
    assert offsets.lines[1] == ["T", "broker-a", "0", "5"]
    assert offsets.cluster.asked(offset.UPDATE_CONSUMER_OFFSET) == [BROKER_A]
    assert offsets.run(main, "set", "g", "T", "broker-a", "0", "10") == 1


def test_show_and_clone(offsets: Administered) -> None:
    assert offsets.run(main, "show", "g") == 0
    assert offsets.lines[1][4:6] == ["6", "3"]
    assert offsets.run(main, "clone", "g", "h", "--topic", "T") == 0
    assert offsets.lines[1] == ["T", "broker-a", "0", "6"]
