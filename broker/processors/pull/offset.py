# SPDX-License-Identifier: Apache-2.0
"""Offsets of groups (14, 15, 43) and of queues (29, 30, 31, 32).

A group without offset is QUERY_NOT_FOUND (22), unless the queue still begins at 0 and its first
message is in memory or has yet to come: then the answer is 0. For a queue that never had a message
5.4 answers NOT_FOUND, unlike 4.9; then a new group that begins at the end loses what is sent
between its question and its first pull. Commits of unknown groups and topics are refused (26, 17).
Asking for the bounds of a queue that does not exist is no error. Java: ConsumerManageProcessor,
AdminBrokerProcessor.
"""

from __future__ import annotations

from functools import partial

from txrocketmq.broker.delays.schedule import Schedule
from txrocketmq.broker.processors.lite_topics import refusal_of_lite_topic
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.offset import NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import offset as calls
from txrocketmq.remoting.protocol.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_body


class OffsetProcessor:
    """The offsets of groups, and the bounds of queues."""

    def __init__(
        self,
        offsets: ConsumerOffsets,
        groups: SubscriptionGroups,
        topics: Topics,
        store: MessageStore,
        schedule: Schedule,
        walks: Walks,
        patience: Patience,
    ) -> None:
        self._offsets = offsets
        self._groups = groups
        self._topics = topics
        self._store = store
        self._schedule = schedule
        self._walks = walks
        self._patience = patience

    @serves(calls.QUERY_CONSUMER_OFFSET)
    def query(
        self, request: Request[QueryConsumerOffsetRequestHeader]
    ) -> Reply[QueryConsumerOffsetResponseHeader] | PendingReply:
        """Returns the offset at which a group goes on."""
        header = request.header
        offset = self._offsets.query(header.consumer_group, header.topic, header.queue_id)
        if offset == NOT_FOUND:
            return self._patience.answer(request.peer, partial(self._first_offset, header))
        return Reply(QueryConsumerOffsetResponseHeader(offset=offset))

    def _first_offset(
        self, header: QueryConsumerOffsetRequestHeader
    ) -> Reply[QueryConsumerOffsetResponseHeader]:
        """Answers 0 if the queue's first message is in memory or yet to come, or refuses."""
        store = self._store
        if (
            header.set_zero_if_not_found is not False
            and store.min_offset(header.topic, header.queue_id) <= 0
            and (
                store.max_offset(header.topic, header.queue_id) == 0
                or store.is_recent(header.topic, header.queue_id, 0)
            )
        ):
            return Reply(QueryConsumerOffsetResponseHeader(offset=0))
        raise ResponseError(
            ResponseCode.QUERY_NOT_FOUND, "Not found, maybe this group consumer boot first"
        )

    @serves(calls.UPDATE_CONSUMER_OFFSET)
    def update(self, request: Request[UpdateConsumerOffsetRequestHeader]) -> Reply[NoHeader]:
        """Commits the offset at which a group goes on."""
        header = request.header
        if self._groups.get(header.consumer_group) is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"Group {header.consumer_group} not exist!",
            )
        if self._topics.get(header.topic) is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} not exist!")
        self._offsets.commit(
            header.consumer_group, header.topic, header.queue_id, header.commit_offset
        )
        return Reply()

    @serves(calls.GET_ALL_CONSUMER_OFFSET)
    def all_offsets(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the whole table of offsets, for slaves and exports."""
        return self._walks.answer(self._all_offsets())

    def _all_offsets(self) -> Walk:
        data_version = self._offsets.data_version.to_json()
        body = BodyPieces({"dataVersion": data_version, "offsetTable": HOLE}, "{}")
        for key, queues in self._offsets.entries():
            offsets = ",".join([f"{queue_id}:{at}" for queue_id, at in queues.items()])
            body.add(encode_body(key) + f":{{{offsets}}}".encode())
            yield
        return Reply(body=body.end())

    @serves(calls.GET_ALL_DELAY_OFFSET)
    def delay_offsets(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Returns how far each delay level is delivered."""
        return Reply(body=encode_body(self._schedule.offsets.table()))

    @serves(calls.GET_MAX_OFFSET)
    def max_offset(
        self, request: Request[GetMaxOffsetRequestHeader]
    ) -> Reply[GetMaxOffsetResponseHeader]:
        """Returns the offset that the next message of a queue will get."""
        header = request.header
        return Reply(
            GetMaxOffsetResponseHeader(offset=self._store.max_offset(header.topic, header.queue_id))
        )

    @serves(calls.GET_MIN_OFFSET)
    def min_offset(
        self, request: Request[GetMinOffsetRequestHeader]
    ) -> Reply[GetMinOffsetResponseHeader]:
        """Returns the offset of the oldest message of a queue.

        It is -1 in a queue of batches that never had a message, as by BatchConsumeQueue.
        """
        topic, queue_id = request.header.topic, request.header.queue_id
        offset = self._store.min_offset(topic, queue_id)
        if not self._store.max_offset(topic, queue_id) and self._topics.has_batches(topic):
            offset = -1
        return Reply(GetMinOffsetResponseHeader(offset=offset))

    @serves(calls.SEARCH_OFFSET_BY_TIMESTAMP)
    def search(
        self, request: Request[SearchOffsetRequestHeader]
    ) -> Reply[SearchOffsetResponseHeader] | PendingReply:
        """Returns the offset of the first message stored at a time or later, or of the last."""
        header = request.header
        if header.lite_topic:
            raise refusal_of_lite_topic(header.lite_topic)

        def found() -> Reply[SearchOffsetResponseHeader]:
            offset = self._store.offset_by_time(
                header.topic,
                header.queue_id,
                header.timestamp,
                upper=(header.boundary_type or "").lower() == "upper",
            )
            return Reply(SearchOffsetResponseHeader(offset=offset))

        return self._patience.answer(request.peer, found)

    @serves(calls.GET_EARLIEST_MSG_STORETIME)
    def earliest(
        self, request: Request[GetEarliestMsgStoretimeRequestHeader]
    ) -> Reply[GetEarliestMsgStoretimeResponseHeader] | PendingReply:
        """Returns when the oldest message of a queue was stored; -1 if there is none."""
        header = request.header

        def found() -> Reply[GetEarliestMsgStoretimeResponseHeader]:
            stored_ms = self._store.earliest_store_time(header.topic, header.queue_id)
            return Reply(GetEarliestMsgStoretimeResponseHeader(timestamp=stored_ms))

        return self._patience.answer(request.peer, found)
