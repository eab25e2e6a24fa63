# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.client_settings import (
    check_client_properties,
    for_consumer,
    for_producer,
    max_attempts,
)
from txrocketmq.remoting.protocol.body.topic import (
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroupConfig,
)

SETTINGS = message_type("Settings")
CONFIG = MessagingConfig()


def test_a_producer_is_told_what_the_proxy_decides() -> None:
    settings = for_producer(SETTINGS(request_timeout={"seconds": 9}), CONFIG)
    backoff = settings.backoff_policy
    assert backoff.max_attempts == 3
    its = backoff.exponential_backoff
    assert (its.initial.ToMilliseconds(), its.max.ToMilliseconds(), its.multiplier) == (
        10,
        1_000,
        2,
    )
    assert settings.publishing.max_body_size == 4_194_304
    assert settings.publishing.validate_message_type
    assert settings.HasField("metric")
    assert not settings.metric.on
    assert settings.request_timeout.seconds == 9


def test_a_consumer_is_told_what_its_group_decides() -> None:
    given = SETTINGS(subscription={"group": {"name": "G"}, "fifo": True})
    settings = for_consumer(given, CONFIG, SubscriptionGroupConfig(group_name="G"))
    its = settings.subscription
    assert (its.group.name, its.fifo, its.receive_batch_size) == ("G", False, 32)
    assert its.long_polling_timeout.seconds == 20
    policy = settings.backoff_policy
    assert policy.max_attempts == 17
    assert [each.seconds for each in policy.customized_backoff.next][:3] == [1, 5, 10]
    assert len(policy.customized_backoff.next) == 18


def test_delays_of_a_group_may_grow() -> None:
    growing = GroupRetryPolicy(
        type="EXPONENTIAL",
        exponential_retry_policy=ExponentialRetryPolicy(initial=1_000, max=5_000, multiplier=3),
    )
    group = SubscriptionGroupConfig(group_name="G", group_retry_policy=growing)
    backoff = for_consumer(SETTINGS(), CONFIG, group).backoff_policy.exponential_backoff
    assert (backoff.initial.seconds, backoff.max.seconds, backoff.multiplier) == (1, 5, 3)


def test_there_is_one_attempt_at_least() -> None:
    for retries, attempts in ((16, 17), (0, 1), (-1, 1), (-5, 1)):
        assert max_attempts(SubscriptionGroupConfig(retry_max_times=retries)) == attempts


@pytest.mark.parametrize(
    "properties",
    [
        {str(n): "x" for n in range(33)},
        {"k" * 65: "x"},
        {"k": "x" * 257},
        {f"{n:060}": "x" * 256 for n in range(20)},
    ],
)
def test_a_client_says_so_much_about_itself(properties: dict[str, str]) -> None:
    check_client_properties(SETTINGS(client_properties={"k" * 64: "x" * 256}))
    with pytest.raises(Refused) as refused:
        check_client_properties(SETTINGS(client_properties=properties))
    assert refused.value.code is Code.INVALID_CLIENT_PROPERTIES
