# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused, reply_of, request
from txrocketmq.broker.processors.admin.admin_progress import AdminProgressProcessor
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.offset import QueryConsumeTimeSpanBody, QueueTimeSpan
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, ConsumeStatsList, OffsetWrapper
from txrocketmq.remoting.protocol.operations.admin import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)


@pytest.fixture
def admin(parts: Parts) -> AdminProgressProcessor:
    """With a topic of one queue to write and two to read, three messages, one of them consumed."""
    parts.topics.update(TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=1))
    for number in range(3):
        parts.put("T", 0, stored_ms=parts.now_ms + 10 * number)
    parts.offsets.commit("g", "T", 0, 1)
    return AdminProgressProcessor(
        parts.config,
        parts.topics,
        parts.groups,
        parts.consumers,
        parts.offsets,
        parts.store,
        parts.stats,
        "127.0.0.1:10911",
        parts.walks,
    )


def queue(topic: str, queue_id: int) -> MessageQueue:
    return MessageQueue(topic, "DEFAULT_BROKER", queue_id)


def stats(admin: AdminProgressProcessor, **fields: Any) -> ConsumeStats:
    header = GetConsumeStatsRequestHeader(consumer_group="g", **fields)
    return ConsumeStats.decode(reply_of(admin.group(request(header))).body_bytes)


def topics_in(found: ConsumeStats) -> set[str]:
    return {each.topic for each in found.offset_table}


def test_how_far_a_group_has_come(parts: Parts, admin: AdminProgressProcessor) -> None:
    for second in range(61):
        parts.stats.got("g", "T", 2, 1)
        finished(parts.stats.tick(parts.now_ms + second * 1000, 1))
    found = stats(admin)
    assert found.offset_table == {
        queue("T", 0): OffsetWrapper(
            broker_offset=3, consumer_offset=1, pull_offset=1, last_timestamp=parts.now_ms
        ),
        queue("T", 1): OffsetWrapper(),
    }
    assert found.consume_tps == 2.0


def test_what_is_in_flight(parts: Parts, admin: AdminProgressProcessor) -> None:
    """Messages that were pulled and are not committed yet; less pulled than committed is none."""
    parts.groups.find("g")
    parts.offsets.pulled("g", "T", 0, 3)
    its = stats(admin).offset_table[queue("T", 0)]
    assert (its.broker_offset, its.consumer_offset, its.pull_offset) == (3, 1, 3)
    (of_g,) = (groups["g"] for groups in everything(admin).consume_stats_list if "g" in groups)
    assert of_g[0].offset_table[queue("T", 0)].pull_offset == 3
    parts.offsets.pulled("g", "T", 0, 0)
    assert stats(admin).offset_table[queue("T", 0)].pull_offset == 1


def test_only_topics_that_its_consumers_want(parts: Parts, admin: AdminProgressProcessor) -> None:
    parts.topic("U")
    parts.offsets.commit("g", "U", 0, 0)
    parts.offsets.commit("g", "deleted", 0, 0)
    assert topics_in(stats(admin)) == {"T", "U"}
    parts.consumer("g", "c", "U")
    assert topics_in(stats(admin)) == {"U"}
    assert topics_in(stats(admin, topic="T")) == set()
    assert topics_in(stats(admin, topic_list="T;U;none;")) == {"T", "U"}


def everything(admin: AdminProgressProcessor, *, is_order: bool = False) -> ConsumeStatsList:
    header = GetConsumeStatsInBrokerHeader(is_order=is_order)
    return ConsumeStatsList.decode(reply_of(admin.everything(request(header))).body_bytes)


def test_how_far_all_groups_have_come(parts: Parts, admin: AdminProgressProcessor) -> None:
    parts.groups.find("g")
    found = everything(admin)
    (of_g,) = (groups["g"] for groups in found.consume_stats_list if "g" in groups)
    assert [set(each.offset_table) for each in of_g] == [{queue("T", 0)}]
    assert (found.total_diff, found.total_inflight_diff) == (2, 0)
    assert found.broker_addr == "127.0.0.1:10911"
    assert len(found.consume_stats_list) == len(parts.groups.all())


def test_only_order_topics(parts: Parts, admin: AdminProgressProcessor) -> None:
    parts.groups.find("g")
    assert everything(admin, is_order=True).total_diff == 0
    parts.topics.set_order_topics({"T"})
    assert everything(admin, is_order=True).total_diff == 2


def span(parts: Parts, admin: AdminProgressProcessor, group: str) -> QueueTimeSpan:
    header = QueryConsumeTimeSpanRequestHeader(topic="T", group=group)
    reply = reply_of(admin.time_span(request(header, now_ms=parts.now_ms + 100)))
    (found,) = QueryConsumeTimeSpanBody.decode(reply.body_bytes).consume_time_span_set
    return found


def test_times_that_a_group_is_at(parts: Parts, admin: AdminProgressProcessor) -> None:
    at = parts.now_ms
    assert span(parts, admin, "g") == QueueTimeSpan(
        message_queue=queue("T", 0),
        min_time_stamp=at,
        max_time_stamp=at + 20,
        consume_time_stamp=at,
        delay_time=90,
    )
    new = span(parts, admin, "new")
    assert (new.consume_time_stamp, new.delay_time) == (at, 100)
    parts.offsets.commit("done", "T", 0, 3)
    done = span(parts, admin, "done")
    assert (done.consume_time_stamp, done.delay_time) == (at + 20, 0)


def test_times_of_a_topic_that_is_not_there(admin: AdminProgressProcessor) -> None:
    with refused(ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"):
        admin.time_span(request(QueryConsumeTimeSpanRequestHeader(topic="U", group="g")))
