# SPDX-License-Identifier: Apache-2.0
"""Decides which messages of a queue a consumer gets, for the store and for waiting pulls.

A filter looks at the queue's unit first, which has the hash of the tag, and at the unit of the ext
file, where there is one, which has the bitmap of SQL92 filters; only where that is not enough does
it look at the record. Counterpart of MessageFilter, DefaultMessageFilter, ExpressionMessageFilter
and ExpressionForRetryMessageFilter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from txrocketmq.broker.filter.consumer_filters import ConsumerFilterData, ConsumerFilters
from txrocketmq.broker.filter.expression import Expression
from txrocketmq.broker.store.get.get_result import PropertiesFilter
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.store.queues.consume_queue_ext import ExtUnit
from txrocketmq.remoting.message.properties import RETRY_TOPIC, decode_properties
from txrocketmq.remoting.message.tags import SUB_ALL, SubscriptionData
from txrocketmq.remoting.message.topics import RETRY_PREFIX


class MessageFilter(NamedTuple):
    """`tag_codes` are the hashes of the wanted tags (None for all); `wants_ext` looks at units of
    ext files; finally `by_properties` looks at the properties of the message.
    """

    tag_codes: frozenset[int] | None = None
    by_properties: PropertiesFilter | None = None
    wants_ext: Callable[[ExtUnit], bool] | None = None

    def wants(self, unit: Unit) -> bool:
        """Whether a unit may be one of a message that is wanted (isMatchedByConsumeQueue)."""
        return self.tag_codes is None or unit.tags_code in self.tag_codes


ALL = MessageFilter()


def filter_of(subscription: SubscriptionData) -> MessageFilter:
    """The filter of a subscription by tags."""
    if subscription.sub_string == SUB_ALL or subscription.class_filter_mode:
        return ALL
    return MessageFilter(subscription.code_set)


def filter_by(expression: Expression, data: ConsumerFilterData | None = None) -> MessageFilter:
    """The filter of a subscription by an expression.

    `data` are those of a group, whose bits are in the bitmaps of messages that were stored since
    the data were made.
    """
    bloom = None if data is None else data.bloom
    if data is None or bloom is None:
        return MessageFilter(by_properties=expression)
    born_ms, bitmap_bytes, is_hit = data.born_time, bloom.bit_num // 8, bloom.is_hit

    def wants_ext(unit: ExtUnit) -> bool:
        return (
            unit.store_timestamp_ms <= born_ms
            or len(unit.bitmap) != bitmap_bytes
            or is_hit(unit.bitmap)
        )

    return MessageFilter(by_properties=expression, wants_ext=wants_ext)


class _OfRetries:
    """Filters the messages of a retry topic as those of the topics that they came from."""

    def __init__(self, filters: ConsumerFilters, group: str) -> None:
        self._filters = filters
        self._group = group
        self.terms = 1
        """How many comparisons the last message needed at most."""

    def wants(self, text: str) -> bool:
        """Whether the group selects the message; may raise what ConsumerFilters.compiled raises."""
        properties = decode_properties(text)
        data = self._filters.get(properties.get(RETRY_TOPIC, ""), self._group)
        expression = None if data is None else self._filters.compiled(data)
        self.terms = 1 if expression is None else expression.terms
        return expression is None or expression.matches(properties)


def filter_of_retries(filters: ConsumerFilters, topic: str) -> MessageFilter:
    """The filter of a retry topic: the group's filters for the messages' own topics."""
    return MessageFilter(by_properties=_OfRetries(filters, topic.removeprefix(RETRY_PREFIX)))
