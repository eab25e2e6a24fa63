# SPDX-License-Identifier: Apache-2.0
"""Queries for messages by key and by id, and for the units of a consume queue.

Java: QueryMessageProcessor; AdminBrokerProcessor for the consume queue.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, field, header
from txrocketmq.remoting.protocol.base import TopicRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.QueryMessageRequestHeader")
class QueryMessageRequestHeader(TopicRequestHeader):
    """Asks for messages by key that were stored between two times in ms.

    `index_type` is "K" for a key, "U" for a unique key, or "T" for a tag. `unique_key_query` is
    sent although it is no field of the original's class.
    """

    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    index_type: str | None = None
    last_key: str | None = None
    unique_key_query: bool | None = field(wire="_UNIQUE_KEY_QUERY", default=None)


@header("org.apache.rocketmq.remoting.protocol.header.QueryMessageResponseHeader")
class QueryMessageResponseHeader(Header):
    """The last message in the index: its store time in ms, and its offset in the commit log."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


@header("org.apache.rocketmq.remoting.protocol.header.ViewMessageRequestHeader")
class ViewMessageRequestHeader(Header):
    """Asks for one message by its offset in the commit log."""

    topic: str | None = None
    offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.QueryConsumeQueueRequestHeader")
class QueryConsumeQueueRequestHeader(TopicRequestHeader):
    """Asks for `count` units of a consume queue from `index` on.

    With `consumer_group`, the answer says which of them the group's filter accepts.
    """

    topic: str | None = None
    queue_id: Int = 0
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None


QUERY_MESSAGE = define(
    RequestCode.QUERY_MESSAGE, QueryMessageRequestHeader, QueryMessageResponseHeader
)
VIEW_MESSAGE_BY_ID = define(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader, NoHeader)
QUERY_CONSUME_QUEUE = define(
    RequestCode.QUERY_CONSUME_QUEUE, QueryConsumeQueueRequestHeader, NoHeader
)
