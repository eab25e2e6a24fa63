# SPDX-License-Identifier: Apache-2.0
"""HEART_BEAT, UNREGISTER_CLIENT, GET_CONSUMER_LIST_BY_GROUP, CHECK_CLIENT_CONFIG.

A heartbeat makes the groups it names, where that is allowed, and their retry topics: at once, since
consumers ask for the route of their retry topic next. When there are too many retry topics, it
makes no new group either, and groups that exist go on without one. One that names many is taken in
turns with everything else, and what a client has named by the time that it goes is all it has. Its
answer says that heartbeats without subscriptions are understood (v2), and whether these are
wanted again. A group nobody is in is SYSTEM_ERROR (1) to those who ask for its members. SQL92
expressions are refused (1) without enablePropertyFilter, and (23) when they are none; a heartbeat
that brings such a one is taken all the same, and pulls hear of it. A heartbeat with an expression
that takes long to compile is taken, and answered, when that is done. What a connection sends
behind such a heartbeat, another one or that its client leaves, counts after it. Java:
ClientManageProcessor, ConsumerManageProcessor.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from txrocketmq.broker.filter.consumer_filters import ConsumerFilters
from txrocketmq.broker.filter.expression import ExpressionError
from txrocketmq.broker.tables.clients import (
    CLUSTERING,
    CONSUME_PASSIVELY,
    Client,
    ConsumerGroup,
    Consumers,
    Producers,
)
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.in_order import InOrder
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.flags import TopicSysFlag
from txrocketmq.remoting.message.tags import SQL92, TAG, SubscriptionData
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol import heartbeat as calls
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    ConsumerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
)
from txrocketmq.remoting.protocol.heartbeat import (
    GetConsumerListByGroupRequestHeader,
    HeartbeatRequestHeader,
    UnregisterClientRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_body

IS_SUPPORT_HEART_BEAT_V2 = "IS_SUPPORT_HEART_BEAT_V2"
IS_SUB_CHANGE = "IS_SUB_CHANGE"
_MEMBERS_A_STEP = 16


class HeartbeatProcessor:
    """Keeps the tables of clients."""

    def __init__(
        self,
        topics: Topics,
        groups: SubscriptionGroups,
        consumers: Consumers,
        producers: Producers,
        filters: ConsumerFilters,
        walks: Walks,
        in_order: InOrder,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._producers = producers
        self._filters = filters
        self._walks = walks
        self._in_order = in_order
        self._fingerprints: dict[str, int] = {}

    @serves(calls.HEART_BEAT)
    def heartbeat(self, request: Request[HeartbeatRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Takes a heartbeat of a client, with all its producers and consumers."""
        return self._in_order.answer(
            request.peer, lambda: self._walks.soon(self._heartbeat(request))
        )

    def _heartbeat(self, request: Request[HeartbeatRequestHeader]) -> Walk:
        """Reads a heartbeat, compiles the expressions in it, and takes it."""
        data = yield from HeartbeatData.reading(request.body)
        told = [(each.group_name, each.subscription_data_set) for each in data.consumer_data_set]
        texts = deque(self._filters.new_texts(told))
        if not texts:
            return (yield from self._take(request, data))
        is_first = True

        def take() -> Reply[NoHeader] | PendingReply:
            nonlocal is_first
            while texts:
                with suppress(ExpressionError):
                    self._filters.compile(texts.popleft(), SQL92, at_once=is_first)
                is_first = False
            return self._walks.soon(self._take(request, data))

        return self._walks.patience.answer(request.peer, take)

    def _take(self, request: Request[HeartbeatRequestHeader], data: HeartbeatData) -> Walk:
        """Registers consumers, their filters and producers, while their client is there."""
        command = request.command
        client = Client(
            request.peer,
            data.client_id,
            command.language or "OTHER",
            command.version,
            request.steady_ms,
            request.now_ms,
        )
        fingerprint = data.heartbeat_fingerprint
        bare = fingerprint != 0 and data.without_sub
        changed = fingerprint == 0
        for consumer in data.consumer_data_set:
            yield
            if not request.peer.connected:
                return Reply()
            known = self._fingerprints.get(consumer.group_name)
            changed |= fingerprint != 0 and known is not None and known != fingerprint
            if not self._register(client, consumer, without_subscriptions=bare):
                continue
            self._fingerprints[consumer.group_name] = fingerprint
            yield
            if not request.peer.connected:
                return Reply()
            if bare:
                changed |= self._misses_subscriptions(consumer.group_name)
            else:
                changed |= not self._filters.register(
                    consumer.group_name, consumer.subscription_data_set, only_kept=True
                )
        for producer in data.producer_data_set:
            yield
            if not request.peer.connected:
                return Reply()
            self._producers.register(producer.group_name, client)
        return Reply(
            ext_fields={
                IS_SUPPORT_HEART_BEAT_V2: "true",
                IS_SUB_CHANGE: "true" if changed else "false",
            }
        )

    def _register(
        self, client: Client, consumer: ConsumerData, *, without_subscriptions: bool
    ) -> bool:
        """Registers a consumer; returns False when its group must not consume."""
        name = consumer.group_name
        retry_topic = RETRY_PREFIX + name
        is_full = self._topics.why_full(retry_topic)
        group = self._groups.get(name) if is_full else self._groups.find(name)
        if group is None:
            return False
        if not is_full:
            self._topics.create_in_heartbeat(
                retry_topic,
                group.retry_queue_nums,
                sys_flag=TopicSysFlag.UNIT_SUB if consumer.unit_mode else 0,
            )
        self._consumers.register(
            client,
            consumer.group_name,
            consumer.consume_type or CONSUME_PASSIVELY,
            consumer.message_model or CLUSTERING,
            consumer.consume_from_where or "CONSUME_FROM_LAST_OFFSET",
            None if without_subscriptions else consumer.subscription_data_set,
        )
        return True

    def _misses_subscriptions(self, group_name: str) -> bool:
        """Whether the group has no subscriptions: the broker was started after its clients.

        The original asks for subscriptions only when a fingerprint changes, so it never gets them.
        """
        group = self._consumers.group(group_name)
        return group is not None and not group.subscriptions

    @serves(calls.UNREGISTER_CLIENT)
    def unregister(
        self, request: Request[UnregisterClientRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Removes a client from a group, after the heartbeats that it has sent before."""
        return self._in_order.answer(request.peer, lambda: self._unregister(request))

    def _unregister(self, request: Request[UnregisterClientRequestHeader]) -> Reply[NoHeader]:
        header = request.header
        if header.producer_group:
            self._producers.unregister(header.producer_group, request.peer)
        if header.consumer_group:
            self._consumers.unregister(header.consumer_group, header.client_id, request.peer)
        return Reply()

    @serves(calls.GET_CONSUMER_LIST_BY_GROUP)
    def members(
        self, request: Request[GetConsumerListByGroupRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the client ids of the consumers of a group."""
        name = request.header.consumer_group
        group = self._consumers.group(name)
        if group is None or not group.members:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {name}")
        return self._walks.answer(_ids(group))

    @serves(calls.CHECK_CLIENT_CONFIG)
    def check(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Checks whether an expression can be served."""
        return self._walks.soon(self._check_one(request))

    def _check_one(self, request: Request[NoHeader]) -> Walk:
        if not request.body:
            return Reply()
        body = yield from CheckClientRequestBody.reading(request.body)
        wanted = body.subscription_data
        if wanted is None or wanted.expression_type in (TAG, ""):
            return Reply()
        return self._walks.patience.answer(request.peer, lambda: self._check(wanted))

    def _check(self, wanted: SubscriptionData) -> Reply[NoHeader]:
        if not self._filters.is_enabled:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "The broker does not support consumer to filter message by"
                f" {wanted.expression_type}",
            )
        try:
            self._filters.compile(wanted.sub_string, wanted.expression_type)
        except ExpressionError as error:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Invalid MessageSelector. {error}"
            ) from None
        return Reply()


def _ids(group: ConsumerGroup) -> Walk:
    """Collects the ids of the members of a group, sorted and without duplicates."""
    ids: set[str] = set()
    for count, client in enumerate(list(group.members.values()), 1):
        ids.add(client.client_id)
        if count % _MEMBERS_A_STEP == 0:
            yield
    body = BodyPieces(
        {**GetConsumerListByGroupResponseBody().to_json(), "consumerIdList": HOLE}, "[]"
    )
    for count, client_id in enumerate(sorted(ids), 1):
        body.add(encode_body(client_id))
        if count % _MEMBERS_A_STEP == 0:
            yield
    return Reply(body=body.end())
