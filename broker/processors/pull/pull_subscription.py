# SPDX-License-Identifier: Apache-2.0
"""The subscription of a pull: from its header, or from the heartbeats of its group.

An invalid SQL92 expression in the header is refused with 23. The original means to do so, but gives
all messages, since it asserts what it should check.

Java: PullMessageProcessor, the middle of processRequest.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.filter.consumer_filters import ConsumerFilters
from txrocketmq.broker.filter.expression import ExpressionError
from txrocketmq.broker.pulls.message_filter import (
    ALL,
    MessageFilter,
    filter_by,
    filter_of,
    filter_of_retries,
)
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.tables.clients import Consumers
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.tags import (
    TAG,
    SubscriptionData,
    SubscriptionError,
    build_subscription_data,
)
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
_BY_TAG = (TAG, "")
_SUBSCRIPTION = PullSysFlag.SUBSCRIPTION
GROUP_FORBIDDEN = 2
BROADCASTING_FORBIDDEN = 4
SUBSCRIPTION_FORBIDDEN = 5


class PullSubscriptions:
    """Finds the subscription of a pull."""

    def __init__(
        self,
        config: BrokerConfig,
        groups: SubscriptionGroups,
        consumers: Consumers,
        filters: ConsumerFilters,
    ) -> None:
        self._config = config
        self._groups = groups
        self.make_group: Callable[[str], object] = groups.find
        """Creates the group of a pull if there is none."""
        self._consumers = consumers
        self._filters = filters

    def group(self, header: PullMessageRequestHeader) -> SubscriptionGroupConfig:
        """Returns the group of a pull; raises ResponseError when it may not consume.

        One that is missing is created with `make_group`, when the pull is not refused.
        """
        group = self._groups.expected(header.consumer_group)
        if group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist,"
                f" {self._groups.why_full or FAQ}",
            )
        if not group.consume_enable:
            raise forbidden(
                GROUP_FORBIDDEN, f"subscription group no permission, {header.consumer_group}"
            )
        return group

    def wanted(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> MessageFilter:
        """Returns the filter for the messages of a pull; or raises ResponseError."""
        is_registered = not header.sys_flag & _SUBSCRIPTION
        if is_registered:
            subscription = self._registered_subscription(header, group)
        else:
            try:
                subscription = build_subscription_data(
                    header.topic, header.subscription, header.expression_type or TAG
                )
            except SubscriptionError:
                raise _not_parsed() from None
        if subscription.expression_type in _BY_TAG:
            return filter_of(subscription)
        return self._wanted_by_expression(header, subscription, is_registered=is_registered)

    def _wanted_by_expression(
        self,
        header: PullMessageRequestHeader,
        subscription: SubscriptionData,
        *,
        is_registered: bool,
    ) -> MessageFilter:
        filters, topic = self._filters, header.topic
        data = filters.get(topic, header.consumer_group) if is_registered else None
        if is_registered and data is None:
            raise _no_filter_data()
        if data is not None and data.client_version < header.sub_version:
            raise ResponseError(
                ResponseCode.FILTER_DATA_NOT_LATEST,
                "the consumer's consumer filter data not latest",
            )
        if not self._config.enable_property_filter:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "The broker does not support consumer to filter message by"
                f" {subscription.expression_type}",
            )
        if subscription.class_filter_mode:
            return ALL
        if self._config.filter_support_retry and topic.startswith(RETRY_PREFIX):
            return filter_of_retries(filters, topic)
        text, kind = subscription.sub_string, subscription.expression_type
        if data is not None:
            text, kind = data.expression, data.expression_type
        try:
            return filter_by(filters.compile(text, kind), data)
        except ExpressionError:
            raise (_not_parsed() if data is None else _no_filter_data()) from None

    def _registered_subscription(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        consumer_group = self._consumers.group(header.consumer_group)
        if consumer_group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{FAQ}"
            )
        if not group.consume_broadcast_enable and consumer_group.message_model == "BROADCASTING":
            raise forbidden(
                BROADCASTING_FORBIDDEN,
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
            )
        if self._groups.is_read_forbidden(header.consumer_group, header.topic):
            raise forbidden(
                SUBSCRIPTION_FORBIDDEN,
                f"the consumer group[{header.consumer_group}] is forbidden for"
                f" topic[{header.topic}]",
            )
        subscription = consumer_group.subscriptions.get(header.topic)
        if subscription is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist{FAQ}"
            )
        if subscription.sub_version < header.sub_version:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
            )
        return subscription


def _not_parsed() -> ResponseError:
    return ResponseError(
        ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
    )


def _no_filter_data() -> ResponseError:
    return ResponseError(
        ResponseCode.FILTER_DATA_NOT_EXIST,
        "The broker's consumer filter data is not exist!Your expression may be wrong!",
    )


def forbidden(kind: int, remark: str) -> ResponseError:
    """Makes a NO_PERMISSION error, with the kind in the header as in 5.x."""
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0,
        next_begin_offset=0,
        min_offset=0,
        max_offset=0,
        forbidden_type=kind,
    )
    return ResponseError(ResponseCode.NO_PERMISSION, remark, header)
