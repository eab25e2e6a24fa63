# SPDX-License-Identifier: Apache-2.0
"""Tables of a store's config files: topics, groups, offsets of consumers and of delay levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from txrocketmq.remoting.message.flags import perm_to_string
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.spark.arrow.schema import Column
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.system_topics import is_system_topic
from txrocketmq.spark.tables.table import BROKER_NAME, CHOOSING_QUEUES, CLUSTER, Request, Row, Table


def _topics(request: Request, _: Any) -> Iterator[Row]:
    for topic, config in sorted(request.store.config.topics().items()):
        if request.wanted.wants_topic(topic):
            yield (
                topic,
                perm_to_string(int(config.get("perm", 0))),
                config.get("readQueueNums", 0),
                config.get("writeQueueNums", 0),
                bool(config.get("order", False)),
                config.get("topicSysFlag", 0),
                [(str(k), str(v)) for k, v in (config.get("attributes") or {}).items()],
                is_system_topic(topic),
            )


TOPICS: Final = Table(
    "topics",
    "Topics of the broker.",
    (
        BROKER_NAME,
        Column("topic", "string", "topic"),
        Column("perm", "string", "R, W and X (inherit), - for what is not allowed"),
        Column("readQueues", "int", "queues that consumers read"),
        Column("writeQueues", "int", "queues that producers write"),
        Column("ordered", "boolean", "orderly topic"),
        Column("sysFlag", "int", "TopicSysFlag"),
        Column("attributes", "map<string,string>", "of 5.x, such as message.type"),
        Column("system", "boolean", "whether it is the system's own"),
        CLUSTER,
    ),
    _topics,
    options=CHOOSING_QUEUES,
)

_OF_GROUP: Final = (
    "consumeEnable", "consumeBroadcastEnable", "consumeMessageOrderly", "retryQueueNums",
    "retryMaxTimes", "consumeTimeoutMinute",
)  # fmt: skip
"""Members of SubscriptionGroupConfig, in the order of the columns."""


def _groups(request: Request, _: Any) -> Iterator[Row]:
    for group, config in sorted(request.store.config.groups().items()):
        yield group, *(config.get(name) for name in _OF_GROUP)


GROUPS: Final = Table(
    "groups",
    "Consumer groups of the broker.",
    (
        BROKER_NAME,
        Column("group", "string", "consumer group"),
        Column("consumeEnable", "boolean", "whether it may consume"),
        Column("broadcastEnable", "boolean", "whether it may consume in broadcasting mode"),
        Column("orderly", "boolean", "consumeMessageOrderly of 5.x"),
        Column("retryQueues", "int", "queues of its retry topic"),
        Column("retryMaxTimes", "int", "attempts before a message is given up"),
        Column("consumeTimeoutMinutes", "int", "consumeTimeoutMinute of 5.x"),
        CLUSTER,
    ),
    _groups,
)


def _offsets(request: Request, _: Any) -> Iterator[Row]:
    request.check_queue_files()
    wanted = request.wanted
    for (topic, group), offsets in sorted(request.store.config.consumer_offsets().items()):
        for queue_id, offset in sorted(offsets.items()):
            if wanted.wants_queue(topic, queue_id):
                yield _offset(request, group, topic, queue_id, offset)


def _offset(request: Request, group: str, topic: str, queue_id: int, offset: int) -> Row:
    store = request.store
    queue = store.queue(topic, queue_id)
    if queue is None:  # an offset was committed before the first message came
        return group, topic, queue_id, offset, 0, 0, 0, None
    first, end = queue.min_index(store.min_offset()), queue.max_index()
    oldest = _stored(request, queue, max(offset, first), end)
    return group, topic, queue_id, offset, first, end, max(0, end - offset), oldest


def _stored(request: Request, queue: Queue, index: int, end: int) -> int | None:
    if index >= end:
        return None
    unit = queue.first_unit(index)
    return None if unit is None else request.store.stored_at(int(unit["physical_offset"][0]))


OFFSETS: Final = Table(
    "offsets",
    "Offsets of consumer groups, and their lag.",
    (
        BROKER_NAME,
        Column("group", "string", "consumer group"),
        Column("topic", "string", "topic"),
        Column("queueId", "int", "the queue's number"),
        Column("offset", "bigint", "offset of the message that it consumes next"),
        Column("minOffset", "bigint", "offset of the first message that is still in the log"),
        Column("maxOffset", "bigint", "offset that the next message will get"),
        Column("lag", "bigint", "messages that it has not consumed yet: maxOffset - offset"),
        Column(
            "oldestUnread",
            "timestamp",
            "when the first of these messages that is in the log was stored",
        ),
        CLUSTER,
    ),
    _offsets,
    options=CHOOSING_QUEUES,
)


def _delay_offsets(request: Request, _: Any) -> Iterator[Row]:
    request.check_queue_files()
    offsets = request.store.config.delay_offsets()
    ends = {q.queue_id + 1: q.max_index() for q in request.store.queues_of(SCHEDULE_TOPIC)}
    for level in sorted({*offsets, *ends}):
        offset, end = offsets.get(level, 0), ends.get(level, 0)
        yield level, offset, end, max(0, end - offset)


DELAY_OFFSETS: Final = Table(
    "delayoffsets",
    "How far each delay level is delivered.",
    (
        BROKER_NAME,
        Column("level", "int", "delay level, from 1"),
        Column(
            "offset", "bigint", "offset of the message that is delivered next, in the level's queue"
        ),
        Column("maxOffset", "bigint", "offset that the next message will get"),
        Column("waiting", "bigint", "messages not delivered yet"),
        CLUSTER,
    ),
    _delay_offsets,
)
