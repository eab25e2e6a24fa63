# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: tags and SQL92, versions, and whether brokers take them."""

from __future__ import annotations

import pytest

from tests.client.consumer.fake_broker import Broker
from tests.client.fakes import BROKER_A, Scene, refusal, result_of
from txrocketmq.client.base.errors import MessageIllegal, MQBrokerError
from txrocketmq.client.consumer.group.subscription import MessageSelector, Subscriptions
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.tags import SQL92, TAG, SubscriptionError
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.body.heartbeat import CheckClientRequestBody


def test_a_text_is_tags_and_a_selector_what_it_says() -> None:
    subscriptions = Subscriptions(
        {"T": "A || B", "U": MessageSelector.by_sql("a > 1"), "V": MessageSelector.by_tag("C")}, 7
    )
    tags, sql, one = (subscriptions.of(topic) for topic in "TUV")
    assert (tags.tags_set, tags.expression_type, tags.sub_version) == ({"A", "B"}, TAG, 7)
    assert (sql.sub_string, sql.expression_type, sql.tags_set) == ("a > 1", SQL92, frozenset())
    assert one.tags_set == {"C"}


def test_a_newer_version_is_the_same_otherwise() -> None:
    subscriptions = Subscriptions({"T": "A", "U": "*"}, 7)
    subscriptions.renew("T", 9)
    subscriptions.renew("none", 9)
    assert [(each.topic, each.sub_version) for each in subscriptions.all()] == [("T", 9), ("U", 7)]
    assert subscriptions.of("T").sub_string == "A"
    subscriptions.remove("T")
    assert (subscriptions.topics(), "T" in subscriptions) == (["U"], False)


def test_what_cannot_be_is_an_error_at_once() -> None:
    with pytest.raises(MessageIllegal, match="topic"):
        Subscriptions({"no topic": "*"}, 0)
    with pytest.raises(SubscriptionError):
        Subscriptions({"T": "||"}, 0)
    with pytest.raises(SubscriptionError):
        Subscriptions({"T": MessageSelector.by_sql("")}, 0)


def test_brokers_are_asked_whether_they_can_filter_otherwise_than_by_tags(
    scene: Scene, broker: Broker
) -> None:
    subscriptions = Subscriptions({"T": MessageSelector.by_sql("a > 1")}, 7)
    scene.connections.on(BROKER_A, heartbeat.CHECK_CLIENT_CONFIG, Reply())
    result_of(subscriptions.check(scene.client, "g"))
    (body,) = [
        body for _, call, _, body, _ in scene.connections.asked
        if call is heartbeat.CHECK_CLIENT_CONFIG
    ]  # fmt: skip
    request = CheckClientRequestBody.decode(body)
    assert (request.group, request.subscription_data) == ("g", subscriptions.of("T"))
    no = refusal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "no such filter")
    scene.connections.on(BROKER_A, heartbeat.CHECK_CLIENT_CONFIG, no)
    with pytest.raises(MQBrokerError, match="no such filter"):
        result_of(subscriptions.check(scene.client, "g"))


def test_nobody_can_be_asked_about_a_topic_that_is_not_there(scene: Scene, broker: Broker) -> None:
    subscriptions = Subscriptions({"U": MessageSelector.by_sql("a > 1")}, 7)
    result_of(subscriptions.check(scene.client, "g"))
    assert scene.connections.questions(heartbeat.CHECK_CLIENT_CONFIG) == []


def test_tags_need_no_asking(scene: Scene, broker: Broker) -> None:
    result_of(Subscriptions({"T": "A"}, 7).check(scene.client, "g"))
    assert scene.connections.questions(heartbeat.CHECK_CLIENT_CONFIG) == []
