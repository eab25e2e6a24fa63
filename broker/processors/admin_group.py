# SPDX-License-Identifier: Apache-2.0
"""Consumer groups for administrators: 200, 225, 201, 352, 207, 353, 300, 343, 345.

A name that is not good is INVALID_PARAMETER (29; 4.9 says 1), bad attributes SYSTEM_ERROR (1), a
group that is not there SUBSCRIPTION_GROUP_NOT_EXIST (26). Asking for one makes it, where heartbeats
may. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from txrocketmq.broker.attributes import AttributeChangeError
from txrocketmq.broker.clients import Consumers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.offset import ConsumerOffsets
from txrocketmq.broker.paging import Page
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import validate_group
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import topic
from txrocketmq.remoting.protocol.body.topic import (
    GroupForbidden,
    GroupList,
    QuerySubscriptionResponseBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    TopicList,
)
from txrocketmq.remoting.protocol.topic import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupResponseHeader,
    GetSubscriptionGroupConfigRequestHeader,
    QuerySubscriptionByConsumerRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    QueryTopicsByConsumerRequestHeader,
    UpdateGroupForbiddenRequestHeader,
)


class AdminGroupProcessor:
    """Makes, changes, deletes and shows groups. `broker_address` is the one that clients know."""

    def __init__(
        self,
        config: BrokerConfig,
        groups: SubscriptionGroups,
        consumers: Consumers,
        offsets: ConsumerOffsets,
        broker_address: str,
    ) -> None:
        self._config = config
        self._groups = groups
        self._consumers = consumers
        self._offsets = offsets
        self._broker_address = broker_address

    # ---------------------------------------------------------------- changes

    @serves(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
    def update(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Makes a group or changes it."""
        if request.body:
            self._update([SubscriptionGroupConfig.decode(request.body)])
        return Reply()

    @serves(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
    def update_list(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """The same for several; all names are looked at before the first is made."""
        self._update(list(SubscriptionGroupList.decode(request.body).group_config_list))
        return Reply()

    def _update(self, wanted: list[SubscriptionGroupConfig]) -> None:
        for each in wanted:
            wrong = validate_group(each.group_name or "")
            if wrong is not None:
                raise ResponseError(ResponseCode.INVALID_PARAMETER, wrong)
        try:
            for each in wanted:
                self._groups.update(each)
        except AttributeChangeError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None

    @serves(topic.DELETE_SUBSCRIPTIONGROUP)
    def delete(self, request: Request[DeleteSubscriptionGroupRequestHeader]) -> Reply[NoHeader]:
        """Forgets a group, and its offsets when told so; one that is not there is no error."""
        header = request.header
        self._groups.delete(header.group_name)
        if header.clean_offset or header.remove_offset:
            self._offsets.remove_group(header.group_name)
        return Reply()

    @serves(topic.UPDATE_AND_GET_GROUP_FORBIDDEN)
    def forbid(self, request: Request[UpdateGroupForbiddenRequestHeader]) -> Reply[NoHeader]:
        """Whether a group may read a topic; changed first, when the caller says how."""
        header = request.header
        if header.readable is not None:
            self._groups.set_readable(header.group, header.topic, readable=header.readable)
        readable = not self._groups.is_read_forbidden(header.group, header.topic)
        return Reply(
            body=GroupForbidden(topic=header.topic, group=header.group, readable=readable).encode(),
            remark="",
        )

    # ---------------------------------------------------------------- queries

    @serves(topic.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    def all_groups(
        self, request: Request[GetAllSubscriptionGroupRequestHeader]
    ) -> Reply[GetAllSubscriptionGroupResponseHeader]:
        """Every group, or a page of them."""
        header = request.header
        groups = self._groups
        table = page = groups.all()
        if self._config.enable_split_metadata:
            wanted = Page(header.group_seq, header.max_group_num, header.data_version)
            page = wanted.of(table, groups.data_version, self._config.split_metadata_size)
        return Reply(
            GetAllSubscriptionGroupResponseHeader(total_group_num=len(table)),
            SubscriptionGroupWrapper(
                subscription_group_table=page,
                forbidden_table={
                    group: bits for group, bits in groups.forbidden().items() if group in page
                },
                data_version=groups.data_version,
            ).encode(),
        )

    @serves(topic.GET_SUBSCRIPTIONGROUP_CONFIG)
    def group_config(
        self, request: Request[GetSubscriptionGroupConfigRequestHeader]
    ) -> Reply[NoHeader]:
        """One group."""
        found = self._groups.find(request.header.group)
        if found is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker"
            )
        return Reply(body=found.encode())

    @serves(topic.QUERY_TOPIC_CONSUME_BY_WHO)
    def groups_of_topic(
        self, request: Request[QueryTopicConsumeByWhoRequestHeader]
    ) -> Reply[NoHeader]:
        """Groups that subscribe to a topic now, and those that have offsets of it."""
        name = request.header.topic
        groups = {*self._consumers.groups_subscribing(name), *self._offsets.groups_of(name)}
        return Reply(body=GroupList(group_list=sorted(groups)).encode())

    @serves(topic.QUERY_TOPICS_BY_CONSUMER)
    def topics_of_group(
        self, request: Request[QueryTopicsByConsumerRequestHeader]
    ) -> Reply[NoHeader]:
        """Topics that a group has offsets of."""
        topics = sorted(self._offsets.topics_of(request.header.group))
        return Reply(body=TopicList(topic_list=topics, broker_addr=self._broker_address).encode())

    @serves(topic.QUERY_SUBSCRIPTION_BY_CONSUMER)
    def subscription(
        self, request: Request[QuerySubscriptionByConsumerRequestHeader]
    ) -> Reply[NoHeader]:
        """What a group's consumers want of a topic; nothing when they are not there."""
        header = request.header
        group = self._consumers.group(header.group)
        wanted = group.subscriptions.get(header.topic or "") if group is not None else None
        return Reply(
            body=QuerySubscriptionResponseBody(
                subscription_data=wanted, group=header.group, topic=header.topic
            ).encode()
        )
