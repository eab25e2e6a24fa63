# SPDX-License-Identifier: Apache-2.0
"""What pulls are refused for, and which filter they get; the rest is in test_pull_message.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused
from txrocketmq.broker.processors.pull.pull_subscription import PullSubscriptions
from txrocketmq.broker.pulls.message_filter import ALL, MessageFilter
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.tags import SQL92, SubscriptionData, tags_code
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader

OWN = int(PullSysFlag.SUBSCRIPTION)


@pytest.fixture
def parts(parts: Parts) -> Parts:
    parts.set(enable_property_filter=True)
    return parts


def wanted(parts: Parts, **fields: Any) -> MessageFilter:
    values: dict[str, Any] = {
        "consumer_group": "g",
        "topic": "T",
        "queue_id": 0,
        "queue_offset": 0,
        "max_msg_nums": 32,
        "sys_flag": OWN,
        "commit_offset": 0,
        "suspend_timeout_millis": 0,
        "subscription": "*",
        "sub_version": 0,
    }
    header = PullMessageRequestHeader(**{**values, **fields})
    subscriptions = PullSubscriptions(parts.config, parts.groups, parts.consumers, parts.filters)
    return subscriptions.wanted(header, SubscriptionGroupConfig(group_name="g"))


def subscribe(parts: Parts, **fields: Any) -> SubscriptionData:
    parts.consumer("g", "c1")
    values = {"topic": "T", "sub_string": "a > 5", "sub_version": 1, "expression_type": SQL92}
    data = SubscriptionData(**{**values, **fields})
    parts.consumers.group("g").subscriptions[data.topic] = data  # type: ignore[union-attr]
    parts.filters.register("g", [data])
    return data


def test_tags(parts: Parts) -> None:
    assert wanted(parts) == ALL
    assert wanted(parts, subscription="a", expression_type="TAG").tag_codes == {tags_code("a")}


def test_a_group_uses_its_bitmaps_and_others_do_not(parts: Parts) -> None:
    subscribe(parts)
    registered = wanted(parts, sys_flag=0, subscription=None)
    own = wanted(parts, subscription="a > 5", expression_type=SQL92)
    assert registered.by_properties is not None
    assert registered.wants_ext is not None
    assert own.by_properties == registered.by_properties, "it is compiled once"
    assert own.wants_ext is None


def test_filters_that_are_classes_let_all_through(parts: Parts) -> None:
    subscribe(parts, class_filter_mode=True)
    assert wanted(parts, sys_flag=0, subscription=None) == ALL


def test_an_expression_of_the_file_that_cannot_be_read(parts: Parts) -> None:
    """Another broker, with other filters, has written it."""
    data = subscribe(parts, expression_type="GROOVY", sub_string="true")
    assert parts.filters.get("T", "g") is None
    with refused(ResponseCode.FILTER_DATA_NOT_EXIST, "Your expression may be wrong"):
        wanted(parts, sys_flag=0, subscription=None)
    assert data.expression_type == "GROOVY"


def test_retry_topics(parts: Parts) -> None:
    subscribe(parts, topic="%RETRY%g", sub_string="TRUE")
    plain = wanted(parts, sys_flag=0, subscription=None, topic="%RETRY%g")
    parts.set(filter_support_retry=True)
    filtering = wanted(parts, sys_flag=0, subscription=None, topic="%RETRY%g")
    assert plain.wants_ext is not None
    assert filtering.wants_ext is None, "the bits of the retry topic say nothing of the original"
    assert wanted(parts, topic="%RETRY%g") == ALL, "as push consumers subscribe to it"
