# SPDX-License-Identifier: Apache-2.0
"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID, QUERY_CONSUME_QUEUE: finds messages by key, id or offset.

A key that finds nothing is QUERY_NOT_FOUND (22), an offset of the log at which no message begins
and a queue that does not exist are SYSTEM_ERROR (1). The index knows hashes only: callers look at
the keys themselves. With accounts, VIEW_MESSAGE_BY_ID needs Get of the topic of the message that is
found. Not done: `lastKey`, with which 5.4 pages through an index in RocksDB. Java:
QueryMessageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

from functools import partial

from txrocketmq.broker.accounts.access import CheckFound
from txrocketmq.broker.store.disk.steps import when_in_memory
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.clients import Consumers
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import Buffer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.protocol import query
from txrocketmq.remoting.protocol.body.query import ConsumeQueueData, QueryConsumeQueueResponseBody
from txrocketmq.remoting.protocol.query import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE

UNIQUE = "U"
KEY = "K"
MAX_UNITS = 10_000
"""How many queue units one answer has at most."""


class QueryMessageProcessor:
    """Finds messages."""

    def __init__(
        self,
        store: MessageStore,
        consumers: Consumers,
        walks: Walks,
        patience: Patience,
        check_seen: CheckFound | None = None,
    ) -> None:
        self._check_seen = check_seen
        self._store = store
        self._consumers = consumers
        self._walks = walks
        self._patience = patience

    @serves(query.QUERY_MESSAGE)
    def by_key(
        self, request: Request[QueryMessageRequestHeader]
    ) -> Reply[QueryMessageResponseHeader] | PendingReply:
        """Returns messages whose key or unique key has the same hash as the given key.

        Where there are accounts, those of other topics among them are left out.
        """
        return self._walks.answer(self._by_key(request.header))

    def _by_key(self, header: QueryMessageRequestHeader) -> Walk:
        max_num, index_type = header.max_num, header.index_type or KEY
        if header.unique_key_query:
            max_num, index_type = self._store.config.default_query_max_num, UNIQUE
        found = yield from self._store.query(
            header.topic,
            header.key,
            max_num,
            header.begin_timestamp,
            header.end_timestamp,
            index_type,
        )
        answer = QueryMessageResponseHeader(
            index_last_update_timestamp=found.last_update_timestamp_ms,
            index_last_update_phyoffset=found.last_update_offset,
        )
        buffers = found.buffers
        if self._check_seen is not None:
            # Whoever may see one topic finds a key of it with the hash of a key of another.
            buffers = []
            for record in found.buffers:
                if _topic_of(record) == header.topic:
                    buffers.append(record)
                yield
        if not buffers:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                "can not find message, maybe time range not correct",
                answer,
            )
        return Reply(answer, buffers)

    @serves(query.VIEW_MESSAGE_BY_ID)
    def by_id(self, request: Request[ViewMessageRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the message at an offset of the log, which its offset id contains."""
        return self._patience.answer(request.peer, partial(self._by_id, request))

    def _by_id(self, request: Request[ViewMessageRequestHeader]) -> Reply[NoHeader]:
        offset = request.header.offset
        record = self._store.message_at(offset)
        if record is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"
            )
        if self._check_seen is not None:
            # The request may name another topic than that of the message, or none.
            self._check_seen(request.peer, request.command, _topic_of(record))
        return Reply(body=record)

    @serves(query.QUERY_CONSUME_QUEUE)
    def queue_units(
        self, request: Request[QueryConsumeQueueRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns units of a queue as they are stored."""
        return self._walks.answer(self._queue_units(request.header))

    def _queue_units(self, header: QueryConsumeQueueRequestHeader) -> Walk:
        topic = header.topic or ""
        if header.queue_id not in self._store.queue_ids(topic):
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"{header.queue_id}@{topic} is not exist!"
            )
        low = self._store.min_offset(topic, header.queue_id)
        high = self._store.max_offset(topic, header.queue_id)
        if not low <= header.index < high:
            return Reply(remark=f"Index {header.index} of {header.queue_id}@{topic} is not exist!")
        count = max(min(header.count, MAX_UNITS), 0)
        subscription = filter_data = None
        if header.consumer_group is not None:
            group = self._consumers.group(header.consumer_group)
            subscription = group.subscriptions.get(topic) if group is not None else None
            # "null" is how fastjson writes the filter, which a tag expression does not have
            filter_data = (
                "null"
                if subscription is not None
                else f"{header.consumer_group}@{topic} is not online!"
            )
        content = QueryConsumeQueueResponseBody(
            subscription_data=subscription,
            filter_data=filter_data,
            max_queue_index=high,
            min_queue_index=low,
        ).to_json()
        body = BodyPieces({**content, "queueData": HOLE}, "[]")
        units = yield from when_in_memory(
            partial(self._store.queue_units, topic, header.queue_id, header.index, count)
        )
        for at, size, code in units:
            unit = ConsumeQueueData(physic_offset=at, physic_size=size, tags_code=code)
            body.add(unit.encode())
            yield
        return Reply(body=body.end())


def _topic_of(record: Buffer) -> str:
    return decode_message(record, decompress_body=False)[0].topic
