# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.client.fakes import result_of
from tests.proxy.scene import CLUSTER, ProxyScene
from txrocketmq.proxy.cluster.groups import DEFAULTS, Groups
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.protocol import topic
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig


def test_settings_are_those_of_a_broker(scene: ProxyScene) -> None:
    groups = Groups(scene.messaging.cluster, CLUSTER)
    scene.groups["G"] = SubscriptionGroupConfig(group_name="G", retry_max_times=3)
    assert groups.known("G") is None
    assert result_of(groups.config("G")).retry_max_times == 3
    known = groups.known("G")
    assert known is not None
    assert known.retry_max_times == 3
    assert len(scene.asked(topic.GET_SUBSCRIPTIONGROUP_CONFIG)) == 1


def test_a_group_that_is_not_there_or_cannot_be_asked_for_has_defaults(scene: ProxyScene) -> None:
    groups = Groups(scene.messaging.cluster, CLUSTER)
    assert result_of(groups.config("unknown")) is DEFAULTS
    scene.on(topic.GET_SUBSCRIPTIONGROUP_CONFIG, RequestTimeout("late"))
    assert result_of(groups.config("G")) is DEFAULTS
    assert result_of(Groups(ProxyScene().messaging.cluster, "other").config("G")) is DEFAULTS
