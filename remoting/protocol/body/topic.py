# SPDX-License-Identifier: Apache-2.0
"""Topics and subscription groups: lists and configurations.

Java: remoting.protocol.body.TopicList, GroupList and others, remoting.protocol.subscription.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.base import Body, body, member
from txrocketmq.remoting.protocol.body.route import DataVersion, TopicConfig

MASTER_ID = 0
DEFAULT_RETRY_DELAYS_MS = tuple(
    1000 * seconds
    for seconds in (
        1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
    )
)  # fmt: skip


@body("org.apache.rocketmq.remoting.protocol.body.TopicList")
class TopicList(Body):
    """Names of topics; `broker_addr` is a broker that can be asked for more."""

    topic_list: Sequence[str] = ()
    broker_addr: str | None = None


@body("org.apache.rocketmq.remoting.protocol.body.CreateTopicListRequestBody")
class CreateTopicListRequestBody(Body):
    """Topics to be created (5.3 and later)."""

    topic_config_list: Sequence[TopicConfig] = ()


@body("org.apache.rocketmq.remoting.protocol.body.GroupList")
class GroupList(Body):
    """Names of groups."""

    group_list: Sequence[str] = ()


@body("org.apache.rocketmq.remoting.protocol.subscription.ExponentialRetryPolicy")
class ExponentialRetryPolicy(Body):
    """Delays that grow by a factor; `initial` and `max` are in ms."""

    initial: int = 5_000
    max: int = 7_200_000
    multiplier: int = 2


@body("org.apache.rocketmq.remoting.protocol.subscription.CustomizedRetryPolicy")
class CustomizedRetryPolicy(Body):
    """A list of delays in ms, one for each attempt."""

    next: Sequence[int] = DEFAULT_RETRY_DELAYS_MS


@body("org.apache.rocketmq.remoting.protocol.subscription.GroupRetryPolicy")
class GroupRetryPolicy(Body):
    """How long a message that could not be consumed waits for the next attempt (5.x)."""

    type: str = member(names=("EXPONENTIAL", "CUSTOMIZED"), default="CUSTOMIZED")
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


@body("org.apache.rocketmq.remoting.protocol.subscription.SimpleSubscriptionData")
class SimpleSubscriptionData(Body):
    """A subscription that is part of a group's configuration (5.x)."""

    topic: str | None = None
    expression_type: str | None = None
    expression: str | None = None
    version: int = 0


@body("org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig")
class SubscriptionGroupConfig(Body):
    """The configuration of a group of consumers; settings that 4.9 lacks have defaults."""

    group_name: str | None = None
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: GroupRetryPolicy = GroupRetryPolicy()
    broker_id: int = MASTER_ID
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: Sequence[SimpleSubscriptionData] | None = None
    attributes: Mapping[str, str] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupList")
class SubscriptionGroupList(Body):
    """Groups to be created (5.3 and later)."""

    group_config_list: Sequence[SubscriptionGroupConfig] = ()


@body("org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupWrapper")
class SubscriptionGroupWrapper(Body):
    """All groups of a broker.

    `forbidden_table` leads from a group and a topic to the bits of what is forbidden.
    """

    subscription_group_table: Mapping[str, SubscriptionGroupConfig] = member(default_factory=dict)
    forbidden_table: Mapping[str, Mapping[str, int]] = member(default_factory=dict)
    data_version: DataVersion = DataVersion()


@body("org.apache.rocketmq.remoting.protocol.subscription.GroupForbidden")
class GroupForbidden(Body):
    """Whether a group may read a topic (5.x)."""

    topic: str | None = None
    group: str | None = None
    readable: bool | None = None


@body("org.apache.rocketmq.remoting.protocol.body.QuerySubscriptionResponseBody")
class QuerySubscriptionResponseBody(Body):
    """The subscription of a group to a topic (5.x)."""

    subscription_data: SubscriptionData | None = None
    group: str | None = None
    topic: str | None = None
