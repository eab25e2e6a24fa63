# SPDX-License-Identifier: Apache-2.0
"""Consumer groups as brokers configure them.

Java: remoting.protocol.subscription.SubscriptionGroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txrocketmq.remoting.protocol.body.base import Body, body, member


@body("org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig")
class SubscriptionGroupConfig(Body):
    """A group: whether and how it may consume, how often a message is tried again."""

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: Any = member(default_factory=lambda: {"type": "CUSTOMIZED"})
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: Any = None
    attributes: Mapping[str, str] = member(default_factory=dict)
