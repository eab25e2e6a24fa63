# SPDX-License-Identifier: Apache-2.0
"""Members of a group with different subscriptions are told so by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from twisted.logger import ILogObserver, LogLevel, formatEvent, globalLogPublisher

from tests.client.consumer.fake_broker import Broker, Listener
from tests.client.fakes import BROKER_A, Scene, refusal, result_of
from txrocketmq.client.consumer.group.same_subscriptions import (
    MAX_TOLD,
    MOST_ASKED,
    REST_MS,
    SOON_MS,
    SameSubscriptions,
)
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.tags import build_subscription_data
from txrocketmq.remoting.protocol.body.client import ConsumerRunningInfo
from txrocketmq.remoting.protocol.operations import admin


class Others:
    """Other members of group g, and what they subscribe to."""

    def __init__(self, scene: Scene, broker: Broker) -> None:
        self.scene = scene
        self.topics: dict[str, dict[str, str]] = {}
        self.warnings: list[str] = []
        self.broker = broker
        scene.connections.on(BROKER_A, admin.GET_CONSUMER_RUNNING_INFO, self._info)

    def join(self, client_id: str, **topics: str) -> None:
        self.topics[client_id] = topics
        self.broker.members = [self.scene.client.client_id, *self.topics]

    def _info(self, _: str, header: Any, __: bytes) -> Reply[Any]:
        its = self.topics[header.client_id]
        subscriptions = [
            build_subscription_data(topic, expression) for topic, expression in its.items()
        ]
        subscriptions.append(build_subscription_data("%RETRY%g", "*"))
        return Reply(body=ConsumerRunningInfo(subscription_set=subscriptions).encode())

    def asked(self) -> list[str]:
        questions = self.scene.connections.questions(admin.GET_CONSUMER_RUNNING_INFO)
        return [header.client_id for _, header in questions]

    def note(self, event: Any) -> None:
        if event["log_level"] is LogLevel.warn:
            self.warnings.append(formatEvent(event))


@pytest.fixture
def others(scene: Scene, broker: Broker) -> Iterator[Others]:
    made = Others(scene, broker)
    observer = cast(ILogObserver, made.note)
    globalLogPublisher.addObserver(observer)
    yield made
    globalLogPublisher.removeObserver(observer)


@pytest.mark.parametrize("kind", ["push", "lite"])
def test_both_members_and_their_topics_are_named(scene: Scene, others: Others, kind: str) -> None:
    consumer: Any = (
        PushConsumer(scene.client, "g", {"T": "A || B"}, Listener())
        if kind == "push"
        else LitePullConsumer(scene.client, "g", {"T": "A || B"})
    )
    result_of(consumer.start())
    others.join("10.0.0.7@1#2", U="*", T="A || B")
    scene.client.group_changed("g")
    scene.time.advance(SOON_MS / 1000)
    assert others.warnings == [
        (
            "members of the group g subscribe to different things, so that each of them misses"
            f" messages: {scene.client.client_id} to T (A || B), but 10.0.0.7@1#2 to T (A || B), U"
            " (*); give all members of a group the same subscriptions, or groups of their own"
        )
    ]
    scene.client.group_changed("g")
    scene.time.advance(REST_MS / 1000)
    assert len(others.warnings) == 1, "it is said once"
    result_of(consumer.stop())
    scene.client.group_changed("g")


def checked(scene: Scene, **own: str) -> SameSubscriptions:
    made = SameSubscriptions(scene.client, "g", Subscriptions(own, 7))
    result_of(scene.client.refresh("T"))
    made.check_soon()
    made.check_soon()
    scene.time.advance(SOON_MS / 1000)
    return made


def test_members_that_are_alike_are_not_spoken_of(scene: Scene, others: Others) -> None:
    others.join("a", T="*")
    same = checked(scene, T="*")
    assert (others.asked(), others.warnings) == (["a"], [])
    same.check_soon()
    scene.time.advance(SOON_MS / 1000)
    assert others.asked() == ["a"], "they are not asked all the time"
    scene.time.advance((REST_MS - SOON_MS) / 1000)
    assert others.asked() == ["a", "a"]


def test_only_a_few_of_many_members_are_asked(scene: Scene, others: Others) -> None:
    for number in range(50):
        others.join(f"m{number}", U="*")
    same = checked(scene, T="*")
    assert len(others.asked()) == len(others.warnings) == MOST_ASKED
    for _ in range(50):
        same.check_soon()
        scene.time.advance(REST_MS / 1000)
    assert MAX_TOLD <= len(others.warnings) < MAX_TOLD + MOST_ASKED


@pytest.mark.parametrize("own", [{"T": "*"}, {"unknown": "*"}, {}])
def test_who_cannot_be_asked_is_not_spoken_of(
    scene: Scene, others: Others, own: dict[str, str]
) -> None:
    others.join("a", U="*")
    no = refusal(ResponseCode.NO_PERMISSION)
    scene.connections.on(BROKER_A, admin.GET_CONSUMER_RUNNING_INFO, no)
    checked(scene, **own)
    assert others.warnings == []


def test_a_consumer_that_stops_asks_nobody(scene: Scene, others: Others) -> None:
    others.join("a", U="*")
    same = SameSubscriptions(scene.client, "g", Subscriptions({"T": "*"}, 7))
    same.check_soon()
    same.stop()
    same.stop()
    scene.time.advance(SOON_MS / 1000)
    assert others.asked() == []
