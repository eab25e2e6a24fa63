# SPDX-License-Identifier: Apache-2.0
"""The settings that a client is told: its own, with what the proxy and the group decide.

Java: GrpcClientSettingsManager.
"""

from __future__ import annotations

from typing import Any

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.protocol.body.topic import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    SubscriptionGroupConfig,
)

MOST_PROPERTIES = 32
MOST_KEY = 64
MOST_VALUE = 256
MOST_PROPERTIES_BYTES = 4_096


def check_client_properties(settings: Any) -> None:
    """Raises Refused if a client says too much about itself."""
    properties = settings.client_properties
    size = 0
    for name, value in properties.items():
        size += len(name) + len(value)
        if len(name) > MOST_KEY or len(value) > MOST_VALUE:
            raise Refused(
                Code.INVALID_CLIENT_PROPERTIES,
                f"a client property has at most {MOST_KEY} characters and its value {MOST_VALUE}:"
                f" {name:.70}",
            )
    if len(properties) > MOST_PROPERTIES or size > MOST_PROPERTIES_BYTES:
        raise Refused(
            Code.INVALID_CLIENT_PROPERTIES,
            f"a client has at most {MOST_PROPERTIES} properties of {MOST_PROPERTIES_BYTES} bytes",
        )


def for_producer(settings: Any, config: MessagingConfig) -> Any:
    """Sets what the proxy decides in the settings of a producer, and returns them."""
    policy = settings.backoff_policy
    policy.max_attempts = config.grpc_client_producer_max_attempts
    backoff = policy.exponential_backoff
    backoff.initial.FromMilliseconds(config.grpc_client_producer_backoff_initial_millis)
    backoff.max.FromMilliseconds(config.grpc_client_producer_backoff_max_millis)
    backoff.multiplier = config.grpc_client_producer_backoff_multiplier
    settings.publishing.validate_message_type = config.enable_topic_message_type_check
    settings.publishing.max_body_size = config.max_message_size
    settings.metric.SetInParent()
    settings.metric.on = False
    return settings


def for_consumer(settings: Any, config: MessagingConfig, group: SubscriptionGroupConfig) -> Any:
    """Sets what the proxy and the group decide in the settings of a consumer, and returns them."""
    subscription = settings.subscription
    subscription.receive_batch_size = config.grpc_client_consumer_long_polling_batch_size
    subscription.long_polling_timeout.FromMilliseconds(
        config.grpc_client_consumer_max_long_polling_timeout_millis
    )
    subscription.fifo = group.consume_message_orderly
    policy = settings.backoff_policy
    policy.max_attempts = max_attempts(group)
    its = group.group_retry_policy
    if its.type == "EXPONENTIAL":
        growing = its.exponential_retry_policy or ExponentialRetryPolicy()
        backoff = policy.exponential_backoff
        backoff.initial.FromMilliseconds(growing.initial)
        backoff.max.FromMilliseconds(growing.max)
        backoff.multiplier = growing.multiplier
    else:
        listed = its.customized_retry_policy or CustomizedRetryPolicy()
        del policy.customized_backoff.next[:]
        for delay_ms in listed.next:
            policy.customized_backoff.next.add().FromMilliseconds(delay_ms)
    settings.metric.SetInParent()
    settings.metric.on = False
    return settings


def max_attempts(group: SubscriptionGroupConfig) -> int:
    """Returns how often a message is delivered before it is dead: once at least."""
    return max(group.retry_max_times + 1, 1)
