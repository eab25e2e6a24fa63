# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.conftest import Parts
from tests.broker.delays.scene import deliver
from tests.fakes import refused, reply_of, request
from txrocketmq.broker.processors.pull.offset import OffsetProcessor
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)


@pytest.fixture
def processor(parts: Parts) -> OffsetProcessor:
    parts.topic("T")
    parts.groups.find("g")
    return OffsetProcessor(
        parts.offsets,
        parts.groups,
        parts.topics,
        parts.store,
        parts.schedule,
        parts.walks,
        parts.patience,
    )


def query(processor: OffsetProcessor, *, zero: bool | None = None) -> int:
    header = QueryConsumerOffsetRequestHeader(
        consumer_group="g", topic="T", queue_id=0, set_zero_if_not_found=zero
    )
    reply = processor.query(request(header))
    assert isinstance(reply, Reply)
    assert reply.header is not None
    return reply.header.offset


def update(processor: OffsetProcessor, offset: int, group: str = "g", topic: str = "T") -> None:
    processor.update(
        request(
            UpdateConsumerOffsetRequestHeader(
                consumer_group=group, topic=topic, queue_id=0, commit_offset=offset
            )
        )
    )


def test_a_group_goes_on_where_it_was(parts: Parts, processor: OffsetProcessor) -> None:
    update(processor, 7)
    assert query(processor) == 7
    update(processor, 3)
    assert query(processor) == 3


def test_a_new_group_misses_nothing_of_a_young_queue(
    parts: Parts, processor: OffsetProcessor
) -> None:
    parts.put("T", 0)
    assert query(processor) == query(processor, zero=True) == 0
    with refused(ResponseCode.QUERY_NOT_FOUND):
        query(processor, zero=False)


def test_a_new_group_misses_nothing_of_a_queue_that_never_had_a_message(
    parts: Parts, processor: OffsetProcessor
) -> None:
    assert query(processor) == query(processor, zero=True) == 0
    with refused(ResponseCode.QUERY_NOT_FOUND, "maybe this group consumer boot first"):
        query(processor, zero=False)
    parts.put("T", 1)
    assert query(processor) == 0


def test_a_queue_that_lost_all_its_messages_has_no_first_offset(
    parts: Parts, processor: OffsetProcessor
) -> None:
    parts.put("T", 0, body=bytes(40_000))
    parts.put("U", 0, body=bytes(40_000))
    parts.put("U", 0, body=bytes(40_000))
    parts.store.flush.flush_all()
    parts.store.delete_expired(parts.now_ms + 20 * 365 * 86_400_000)
    steps = parts.store.follow_log()
    assert steps is not None
    finished(steps)
    assert parts.store.min_offset("T", 0) == parts.store.max_offset("T", 0) == 1
    with refused(ResponseCode.QUERY_NOT_FOUND):
        query(processor)


def test_a_queue_whose_first_message_is_old_has_no_first_offset(
    parts: Parts, processor: OffsetProcessor
) -> None:
    parts.put("T", 0)
    parts.set(access_message_in_memory_max_ratio=0)
    parts.put("U", 0)
    with refused(ResponseCode.QUERY_NOT_FOUND):
        query(processor)


def test_commits_of_what_is_not_there(parts: Parts, processor: OffsetProcessor) -> None:
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "Group h not exist!"):
        update(processor, 1, group="h")
    with refused(ResponseCode.TOPIC_NOT_EXIST, "Topic U not exist!"):
        update(processor, 1, topic="U")
    assert parts.groups.get("h") is None
    assert dict(parts.offsets.entries()) == {}


def test_commits_wait_for_a_reset(parts: Parts, processor: OffsetProcessor) -> None:
    parts.offsets.reset("g", "T", 0, 2)
    update(processor, 9)
    assert query(processor) == 2


def test_tables_for_slaves(parts: Parts, processor: OffsetProcessor) -> None:
    update(processor, 7)
    parts.put(SCHEDULE_TOPIC, 0)
    deliver(parts.schedule, parts.now_ms)
    offsets = reply_of(processor.all_offsets(request(NoHeader()))).body_bytes
    assert b'"T@g":{0:7}' in offsets
    delays = processor.delay_offsets(request(NoHeader())).body_bytes
    assert b'"offsetTable":{1:1}' in delays


def test_an_empty_queue_of_batches_begins_nowhere(parts: Parts, processor: OffsetProcessor) -> None:
    """As in the original, whose tools show it."""
    parts.topic("B")
    parts.topics._topics["B"] = replace(
        parts.topics.all()["B"], attributes={"queue.type": "BatchCQ"}
    )
    for topic, least in (("B", -1), ("T", 0)):
        answer = processor.min_offset(request(GetMinOffsetRequestHeader(topic=topic, queue_id=0)))
        assert answer.header is not None
        assert answer.header.offset == least


def test_bounds_of_a_queue(parts: Parts, processor: OffsetProcessor) -> None:
    def bounds(topic: str, queue_id: int) -> tuple[int, int]:
        low = processor.min_offset(
            request(GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id))
        )
        high = processor.max_offset(
            request(GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id))
        )
        assert low.header is not None
        assert high.header is not None
        return low.header.offset, high.header.offset

    parts.put("T", 0)
    parts.put("T", 0)
    assert bounds("T", 0) == (0, 2)
    assert bounds("T", 3) == bounds("unknown", 99) == bounds("T", -1) == (0, 0)


def test_offsets_by_time(parts: Parts, processor: OffsetProcessor) -> None:
    for step in (0, 10, 10, 20):
        parts.put("T", 0, stored_ms=parts.now_ms + step)

    def search(step: int, boundary: str | None = None) -> int:
        header = SearchOffsetRequestHeader(
            topic="T", queue_id=0, timestamp=parts.now_ms + step, boundary_type=boundary
        )
        reply = reply_of(processor.search(request(header)))
        assert isinstance(reply.header, SearchOffsetResponseHeader)
        return reply.header.offset

    assert [search(step) for step in (-5, 0, 5, 10, 20, 30)] == [0, 0, 1, 1, 3, 4]
    assert search(10, "upper") == search(10, "UPPER") == 2
    assert search(10, "lower") == 1


def test_lite_topics_are_not_searched(processor: OffsetProcessor) -> None:
    header = SearchOffsetRequestHeader(topic="T", queue_id=0, timestamp=0, lite_topic="l")
    with refused(ResponseCode.INVALID_PARAMETER, "about the lite topic l"):
        processor.search(request(header))


def test_when_the_oldest_message_was_stored(parts: Parts, processor: OffsetProcessor) -> None:
    def earliest(queue_id: int) -> int:
        header = GetEarliestMsgStoretimeRequestHeader(topic="T", queue_id=queue_id)
        reply = processor.earliest(request(header))
        assert isinstance(reply, Reply)
        assert reply.header is not None
        return reply.header.timestamp

    parts.put("T", 0)
    parts.put("T", 0, stored_ms=parts.now_ms + 5)
    assert earliest(0) == parts.now_ms
    assert earliest(1) == -1
