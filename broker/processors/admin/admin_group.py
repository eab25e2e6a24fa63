# SPDX-License-Identifier: Apache-2.0
"""Consumer groups for administrators: 200, 225, 201, 352, 207, 353, 300, 343, 345.

An invalid name is INVALID_PARAMETER (29; 4.9 says 1), invalid attributes are SYSTEM_ERROR (1), an
unknown group is SUBSCRIPTION_GROUP_NOT_EXIST (26). Asking for one creates it, where heartbeats may
create groups. Changes are answered when they are on disk; changes that come together share one
write. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Sequence

from txrocketmq.broker.processors.admin.paging import Page
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.attributes import AttributeChangeError
from txrocketmq.broker.tables.clients import Consumers
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import validate_group
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
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
from txrocketmq.remoting.serialize.json import HOLE, encode_body, encode_member


class AdminGroupProcessor:
    """Makes, changes, deletes and shows groups. `broker_address` is the one that clients use."""

    def __init__(
        self,
        config: BrokerConfig,
        groups: SubscriptionGroups,
        consumers: Consumers,
        offsets: ConsumerOffsets,
        broker_address: str,
        walks: Walks,
    ) -> None:
        self._config = config
        self._groups = groups
        self._consumers = consumers
        self._offsets = offsets
        self._broker_address = broker_address
        self._walks = walks

    # ---------------------------------------------------------------- changes

    @serves(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
    def update(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Creates or changes a group."""
        return self._walks.soon(self._update_one(request.body))

    def _update_one(self, body: bytes) -> Walk:
        if body:
            wanted = yield from SubscriptionGroupConfig.reading(body)
            yield from self._update([wanted])
        return self._groups.saving.answer(Reply())

    @serves(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
    def update_list(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Creates or changes several groups; all names are checked before the first is made."""
        return self._walks.soon(self._update_list(request.body))

    def _update_list(self, body: bytes) -> Walk:
        wanted = yield from SubscriptionGroupList.reading(body)
        yield from self._update(wanted.group_config_list)
        return self._groups.saving.answer(Reply())

    def _update(self, wanted: Sequence[SubscriptionGroupConfig]) -> Steps[None]:
        for each in wanted:
            wrong = validate_group(each.group_name or "")
            if wrong is not None:
                raise ResponseError(ResponseCode.INVALID_PARAMETER, wrong)
            yield
        try:
            for each in wanted:
                self._groups.update(each)
                yield
        except AttributeChangeError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None

    @serves(topic.DELETE_SUBSCRIPTIONGROUP)
    def delete(
        self, request: Request[DeleteSubscriptionGroupRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Deletes a group, and its offsets if the request says so; an unknown group is no error."""
        return self._walks.answer(self._delete(request.header))

    def _delete(self, header: DeleteSubscriptionGroupRequestHeader) -> Walk:
        self._groups.delete(header.group_name)
        if header.clean_offset or header.remove_offset:
            yield from self._offsets.forget_group(header.group_name)
        return self._groups.saving.answer(Reply())

    @serves(topic.UPDATE_AND_GET_GROUP_FORBIDDEN)
    def forbid(
        self, request: Request[UpdateGroupForbiddenRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Tells whether a group may read a topic, after changing that if the request says so."""
        header = request.header
        if header.readable is not None:
            self._groups.set_readable(header.group, header.topic, readable=header.readable)
        readable = not self._groups.is_read_forbidden(header.group, header.topic)
        state = GroupForbidden(topic=header.topic, group=header.group, readable=readable)
        return self._groups.saving.answer(Reply(body=state.encode(), remark=""))

    # ---------------------------------------------------------------- queries

    @serves(topic.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    def all_groups(
        self, request: Request[GetAllSubscriptionGroupRequestHeader]
    ) -> Reply[GetAllSubscriptionGroupResponseHeader] | PendingReply:
        """Returns every group, or a page of them."""
        return self._walks.answer(self._all_groups(request.header))

    def _all_groups(self, header: GetAllSubscriptionGroupRequestHeader) -> Walk:
        groups = self._groups
        table = page = groups.all()
        if self._config.enable_split_metadata:
            wanted = Page(header.group_seq, header.max_group_num, header.data_version)
            page = wanted.of(table, groups.data_version, self._config.split_metadata_size)
        wrapper = SubscriptionGroupWrapper(
            forbidden_table={
                group: bits for group, bits in groups.forbidden().items() if group in page
            },
            data_version=groups.data_version,
        ).to_json()
        body = BodyPieces({**wrapper, "subscriptionGroupTable": HOLE}, "{}")
        for name, found in page.items():
            body.add(encode_member(name, found.to_json()))
            yield
        return Reply(GetAllSubscriptionGroupResponseHeader(total_group_num=len(table)), body.end())

    @serves(topic.GET_SUBSCRIPTIONGROUP_CONFIG)
    def group_config(
        self, request: Request[GetSubscriptionGroupConfigRequestHeader]
    ) -> Reply[NoHeader]:
        """Returns the configuration of one group."""
        found = self._groups.find(request.header.group)
        if found is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker"
            )
        return Reply(body=found.encode())

    @serves(topic.QUERY_TOPIC_CONSUME_BY_WHO)
    def groups_of_topic(
        self, request: Request[QueryTopicConsumeByWhoRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the groups that subscribe to a topic now, and those that have offsets of it."""
        return self._walks.answer(self._groups_of_topic(request.header.topic))

    def _groups_of_topic(self, name: str) -> Walk:
        found = self._offsets.groups_of(name)
        for group in self._consumers.groups():
            if name in group.subscriptions:
                found.add(group.name)
            yield
        body = BodyPieces({**GroupList().to_json(), "groupList": HOLE}, "[]")
        for group_name in sorted(found):
            body.add(encode_body(group_name))
            yield
        return Reply(body=body.end())

    @serves(topic.QUERY_TOPICS_BY_CONSUMER)
    def topics_of_group(
        self, request: Request[QueryTopicsByConsumerRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the topics that a group has offsets of."""
        return self._walks.answer(self._topics_of_group(request.header.group))

    def _topics_of_group(self, group: str) -> Walk:
        content = TopicList(broker_addr=self._broker_address).to_json()
        body = BodyPieces({**content, "topicList": HOLE}, "[]")
        for name in sorted(self._offsets.topics_of(group)):
            body.add(encode_body(name))
            yield
        return Reply(body=body.end())

    @serves(topic.QUERY_SUBSCRIPTION_BY_CONSUMER)
    def subscription(
        self, request: Request[QuerySubscriptionByConsumerRequestHeader]
    ) -> Reply[NoHeader]:
        """Returns the subscription of a group's consumers to a topic; none without consumers."""
        header = request.header
        group = self._consumers.group(header.group)
        wanted = group.subscriptions.get(header.topic or "") if group is not None else None
        return Reply(
            body=QuerySubscriptionResponseBody(
                subscription_data=wanted, group=header.group, topic=header.topic
            ).encode()
        )
