# SPDX-License-Identifier: Apache-2.0
"""Offsets: who is asked to set them, and when they are set from here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import CONNECTIONS, QUEUE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, a_route, result_of
from txrocketmq.client.base.errors import (
    AdminRefused,
    BrokerNotExist,
    GroupNotFound,
    GroupOnline,
    OffsetIllegal,
)
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset as calls
from txrocketmq.remoting.protocol.body.offset import ResetOffsetBody
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, OffsetWrapper
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.operations import admin as admin_calls

OFFLINE = refused(ResponseCode.CONSUMER_NOT_ONLINE)


@pytest.fixture
def cluster() -> Cluster:
    """Queues from 3 to 9, a group at 5 that nobody consumes as; brokers of 4.x."""
    cluster = Cluster()
    cluster.know("g")
    cluster.on_both(calls.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=3)))
    cluster.on_both(calls.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=9)))
    cluster.on_both(calls.SEARCH_OFFSET_BY_TIMESTAMP, Reply(SearchOffsetResponseHeader(offset=7)))
    answer = Reply(QueryConsumerOffsetResponseHeader(offset=5))
    cluster.on_both(calls.QUERY_CONSUMER_OFFSET, answer)
    cluster.on_both(calls.UPDATE_CONSUMER_OFFSET, Reply())
    cluster.on_both(calls.INVOKE_BROKER_TO_RESET_OFFSET, OFFLINE)
    cluster.on_both(admin_calls.GET_CONSUMER_CONNECTION_LIST, OFFLINE)
    return cluster


def committed(cluster: Cluster) -> list[tuple[str, int, int]]:
    return [
        (address, header.queue_id, header.commit_offset)
        for address, header in cluster.connections.questions(calls.UPDATE_CONSUMER_OFFSET)
    ]


def test_the_bounds_of_a_queue(cluster: Cluster) -> None:
    assert result_of(cluster.admin.min_offset(QUEUE)) == 3
    assert result_of(cluster.admin.max_offset(QUEUE)) == 9
    assert result_of(cluster.admin.search_offset(QUEUE, 1)) == 7
    with pytest.raises(BrokerNotExist, match="broker x does not have topic T"):
        result_of(cluster.admin.max_offset(MessageQueue("T", "x", 0)))


def test_a_group_without_an_offset(cluster: Cluster) -> None:
    assert result_of(cluster.admin.consumer_offset("g", QUEUE)) == 5
    cluster.on_both(calls.QUERY_CONSUMER_OFFSET, refused(ResponseCode.QUERY_NOT_FOUND))
    assert result_of(cluster.admin.consumer_offset("g", QUEUE)) is None


def test_a_broker_that_resets_by_itself_is_believed(cluster: Cluster) -> None:
    body = ResetOffsetBody(offset_table={QUEUE: 4}).encode()
    cluster.on_both(calls.INVOKE_BROKER_TO_RESET_OFFSET, Reply(body=body))
    assert result_of(cluster.admin.reset_offsets("g", "T", 1_000)) == {QUEUE: 4}
    header: Any = cluster.connections.questions(calls.INVOKE_BROKER_TO_RESET_OFFSET)[0][1]
    assert (header.timestamp, header.is_force, header.queue_id) == (1_000, True, -1)
    assert committed(cluster) == []


@pytest.mark.parametrize(("to", "target"), [("first", 3), ("last", 9), (1_000, 7)])
def test_offline_groups_are_reset_from_here(cluster: Cluster, to: Any, target: int) -> None:
    done = result_of(cluster.admin.reset_offsets("g", "T", to))
    assert set(done.values()) == {target}
    assert committed(cluster) == [
        (BROKER_A, 0, target), (BROKER_A, 1, target), (BROKER_B, 0, target),
    ]  # fmt: skip


def test_without_force_nothing_goes_forth(cluster: Cluster) -> None:
    done = result_of(cluster.admin.reset_offsets("g", "T", "last", force=False))
    assert set(done.values()) == {5}
    assert committed(cluster) == []


def test_a_group_of_4_that_never_consumed_is_reset_from_here(cluster: Cluster) -> None:
    remark = "THe consumer group <g> not exist"
    cluster.on_both(calls.INVOKE_BROKER_TO_RESET_OFFSET, refused(remark=remark))
    assert set(result_of(cluster.admin.reset_offsets("g", "T", "first")).values()) == {3}
    cluster.on_both(admin_calls.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    cluster.routes["T"] = a_route({"broker-a": 1})
    with pytest.raises(AdminRefused, match="resetting the offsets of group g in topic T"):
        result_of(cluster.admin.reset_offsets("g", "T", "first"))


def test_a_refused_reset_is_no_reset(cluster: Cluster) -> None:
    cluster.routes["T"] = a_route({"broker-a": 1})
    cluster.on_both(calls.INVOKE_BROKER_TO_RESET_OFFSET, refused())
    with pytest.raises(AdminRefused):
        result_of(cluster.admin.reset_offsets("g", "T", "first"))
    assert committed(cluster) == []


@pytest.mark.parametrize("to", ["begin", -1])
def test_a_place_that_is_none(cluster: Cluster, to: Any) -> None:
    with pytest.raises(ValueError, match="first, last or a time"):
        result_of(cluster.admin.reset_offsets("g", "T", to))


def test_a_group_that_nobody_knows(cluster: Cluster) -> None:
    with pytest.raises(GroupNotFound, match="group h"):
        result_of(cluster.admin.reset_offsets("h", "T", "first"))


def test_one_offset_is_committed_and_reset(cluster: Cluster) -> None:
    result_of(cluster.admin.set_offset("g", QUEUE, 4))
    assert committed(cluster) == [(BROKER_A, 0, 4)]
    ((_, header),) = cluster.connections.questions(calls.INVOKE_BROKER_TO_RESET_OFFSET)
    assert (header.queue_id, header.offset) == (0, 4)
    # A broker of 4.x reads neither: it must not do more than keep what there is.
    assert (header.timestamp, header.is_force) == (-1, False)


@pytest.mark.parametrize("remark", ["THe consumer group <g> not exist", "disk full"])
def test_a_broker_of_4_that_knows_no_offset_has_the_commit(cluster: Cluster, remark: str) -> None:
    cluster.on_both(calls.INVOKE_BROKER_TO_RESET_OFFSET, refused(remark=remark))
    asked = cluster.admin.set_offset("g", QUEUE, 4)
    if remark == "disk full":
        with pytest.raises(AdminRefused, match="disk full"):
            result_of(asked)
    else:
        result_of(asked)


def test_an_offset_beyond_the_queue(cluster: Cluster) -> None:
    for beyond in (2, 10):
        with pytest.raises(OffsetIllegal, match="from 3 to 9"):
            result_of(cluster.admin.set_offset("g", QUEUE, beyond))
    assert committed(cluster) == []


def test_connected_consumers_would_commit_over_it(cluster: Cluster) -> None:
    cluster.on_both(admin_calls.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    with pytest.raises(GroupOnline, match="use reset_offsets"):
        result_of(cluster.admin.set_offset("g", QUEUE, 4))
    with pytest.raises(GroupOnline, match="stop them"):
        result_of(cluster.admin.clone_offsets("h", "g"))
    assert committed(cluster) == []


def test_offsets_are_cloned_but_those_of_retries(cluster: Cluster) -> None:
    table = {
        QUEUE: OffsetWrapper(broker_offset=9, consumer_offset=6),
        MessageQueue("%RETRY%h", "broker-a", 0): OffsetWrapper(consumer_offset=1),
    }
    stats: Reply[Any] = Reply(body=ConsumeStats(offset_table=table).encode())
    cluster.connections.on(BROKER_A, admin_calls.GET_CONSUME_STATS, stats)
    cluster.connections.on(
        BROKER_B, admin_calls.GET_CONSUME_STATS, Reply(body=ConsumeStats().encode())
    )
    assert result_of(cluster.admin.clone_offsets("h", "g", "T")) == {QUEUE: 6}
    assert committed(cluster) == [(BROKER_A, 0, 6)]
