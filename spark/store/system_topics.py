# SPDX-License-Identifier: Apache-2.0
"""Which topics belong to the system, for sources and reports alike.

This module does not need numpy.

Java: TopicValidator, but for two of its topics: users may well send to TBW102 and BenchmarkTest.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.message.topics import (
    BENCHMARK_TOPIC,
    DEFAULT_TOPIC,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
)

HIDDEN_TOPICS: Final = SYSTEM_TOPICS - {DEFAULT_TOPIC, BENCHMARK_TOPIC}
"""Topics that brokers write to for themselves, besides those that start with SYSTEM_PREFIX."""


def is_system_topic(topic: str) -> bool:
    """Returns whether the messages of the topic are the system's own."""
    return topic in HIDDEN_TOPICS or topic.startswith(SYSTEM_PREFIX)
