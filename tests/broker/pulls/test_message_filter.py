# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.filter.bloom import BloomFilter
from txrocketmq.broker.filter.consumer_filters import ConsumerFilterData
from txrocketmq.broker.filter.expression import Expressions
from txrocketmq.broker.pulls.message_filter import (
    ALL,
    MessageFilter,
    filter_by,
    filter_of,
    filter_of_retries,
)
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.store.queues.consume_queue_ext import ExtUnit
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import (
    SQL92,
    TAG,
    SubscriptionData,
    build_subscription_data,
    tags_code,
)


@pytest.mark.parametrize(
    ("expression", "tags"), [("*", {"a", "b", ""}), ("a", {"a"}), ("a || b", {"a", "b"})]
)
def test_a_subscription_wants_the_units_of_its_tags(expression: str, tags: set[str]) -> None:
    wanted = filter_of(build_subscription_data("T", expression, TAG))
    assert {tag for tag in ("a", "b", "") if wanted.wants(Unit(0, 1, tags_code(tag)))} == tags
    assert wanted.by_properties is None
    assert (wanted == ALL) == (expression == "*")


def test_bitmaps_are_looked_at_for_messages_stored_since() -> None:
    bloom = BloomFilter(20, 32)
    data = ConsumerFilterData("T", "g", "a > 5", "SQL92", 1000, 0, 1, bloom.data_of("g", "T"))
    expression = Expressions().compile("a > 5")
    wants_ext = filter_by(expression, data).wants_ext
    assert wants_ext is not None
    hit, missed = bloom.bitmap([bloom.data_of("g", "T")]), bytes(14)
    assert wants_ext(ExtUnit(0, 1001, hit, 34))
    assert not wants_ext(ExtUnit(0, 1001, missed, 34))
    assert wants_ext(ExtUnit(0, 1000, missed, 34)), "it may have been stored before"
    assert wants_ext(ExtUnit(0, 1001, b"", 20)), "there is no bitmap"
    assert wants_ext(ExtUnit(0, 1001, bytes(28), 48)), "the settings have changed"
    assert filter_by(expression).wants_ext is None
    assert filter_by(expression, replace(data, bloom=None)).wants_ext is None


def test_retried_messages_are_filtered_as_where_they_came_from(parts: Parts) -> None:
    wanted = SubscriptionData("T", "a > 5", sub_version=1, expression_type=SQL92)
    parts.filters.register("g", [wanted])
    by_properties = filter_of_retries(parts.filters, "%RETRY%g").by_properties
    assert by_properties is not None

    def wants(**properties: str) -> bool:
        return by_properties.wants(encode_properties(properties))

    assert wants(RETRY_TOPIC="T", a="6")
    assert not wants(RETRY_TOPIC="T", a="5")
    assert wants(RETRY_TOPIC="U", a="5"), "nothing is said of that topic"
    assert wants(a="5")


def test_filters_that_are_classes_let_all_through() -> None:
    subscription = replace(build_subscription_data("T", "a", TAG), class_filter_mode=True)
    assert filter_of(subscription) == ALL == MessageFilter()
