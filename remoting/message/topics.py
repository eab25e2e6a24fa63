# SPDX-License-Identifier: Apache-2.0
"""Names of the topics that servers create for themselves, and prefixes with a meaning.

Java: common.topic.TopicValidator, MixAll.
"""

from __future__ import annotations

from typing import Final

DEFAULT_TOPIC: Final = "TBW102"
"""The topic whose settings new topics get (TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC)."""
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""Contains messages with a delay level until they are due (RMQ_SYS_SCHEDULE_TOPIC). The queue id
is the level minus 1, and the tags code of a queue unit is the time of delivery."""
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
OFFSET_MOVED_EVENT: Final = "OFFSET_MOVED_EVENT"
TRANS_HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
ROCKSDB_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
SYSTEM_PREFIX: Final = "rmq_sys_"
TIMER_TOPIC: Final = SYSTEM_PREFIX + "wheel_timer"
"""Contains messages with a delivery time of their own (TimerMessageStore.TIMER_TOPIC)."""
REPLY_SUFFIX: Final = "_REPLY_TOPIC"
RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
LMQ_PREFIX: Final = "%LMQ%"
"""Prefix of light queues, whose units refer to messages of other topics (MixAll.LMQ_PREFIX)."""
LIGHT_SEPARATOR: Final = ","
"""Separates light queues in INNER_MULTI_DISPATCH, and offsets in INNER_MULTI_QUEUE_OFFSET."""

MAX_QUEUES: Final = 65_536
"""How many queues a topic may have at one broker."""

FORBIDDEN_TO_SEND: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_OP_TOPIC,
    }
)
"""Topics to which no client may send (NOT_ALLOWED_SEND_TOPIC_SET)."""

SYSTEM_TOPICS: Final = FORBIDDEN_TO_SEND | {
    DEFAULT_TOPIC,
    BENCHMARK_TOPIC,
    TRACE_TOPIC,
    "CHECKPOINT_TOPIC",
}
"""Topics that every broker has; a broker adds one of its own name and others (SYSTEM_TOPIC_SET)."""


def is_system_topic(name: str) -> bool:
    """Returns whether a topic belongs to the servers, judged by its name alone."""
    return name in SYSTEM_TOPICS or name.startswith(SYSTEM_PREFIX)


def may_enter_light_queues(topic: str) -> bool:
    """Returns whether messages of this topic may enter light queues (MixAll.topicAllowsLMQ)."""
    return topic != SCHEDULE_TOPIC and not topic.startswith((RETRY_PREFIX, SYSTEM_PREFIX))
