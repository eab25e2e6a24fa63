# SPDX-License-Identifier: Apache-2.0
"""Offsets of queues and of consumers: query, commit, search, reset, clone.

Java: ConsumerManageProcessor, AdminBrokerProcessor; ClientRemotingProcessor for what a broker asks.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader, TopicRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader")
class QueryConsumerOffsetRequestHeader(TopicRequestHeader):
    """Asks how far a group has consumed a queue.

    `set_zero_if_not_found` says whether the answer may be 0 if the broker has no offset.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None


@header("org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetResponseHeader")
class QueryConsumerOffsetResponseHeader(Header):
    """The offset of the next message that the group is to consume."""

    offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader")
class UpdateConsumerOffsetRequestHeader(TopicRequestHeader):
    """Reports that a group has consumed a queue up to, but not including, `commit_offset`."""

    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.SearchOffsetRequestHeader")
class SearchOffsetRequestHeader(TopicRequestHeader):
    """Asks for the offset in a queue by store time in ms.

    `boundary_type` is "lower" (the default) or "upper", in upper or lower case. `lite_topic`
    names a lite topic (5.5).
    """

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: str | None = None
    lite_topic: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.SearchOffsetResponseHeader")
class SearchOffsetResponseHeader(Header):
    """The offset that was found."""

    offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.GetMaxOffsetRequestHeader")
class GetMaxOffsetRequestHeader(TopicRequestHeader):
    """Asks for the offset after the last message of a queue."""

    topic: str
    queue_id: Int
    committed: bool = True


@header("org.apache.rocketmq.remoting.protocol.header.GetMaxOffsetResponseHeader")
class GetMaxOffsetResponseHeader(Header):
    """The offset after the last message of the queue."""

    offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.GetMinOffsetRequestHeader")
class GetMinOffsetRequestHeader(TopicRequestHeader):
    """Asks for the offset of the first message of a queue."""

    topic: str
    queue_id: Int


@header("org.apache.rocketmq.remoting.protocol.header.GetMinOffsetResponseHeader")
class GetMinOffsetResponseHeader(Header):
    """The offset of the first message of the queue."""

    offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.GetEarliestMsgStoretimeRequestHeader")
class GetEarliestMsgStoretimeRequestHeader(TopicRequestHeader):
    """Asks for the store time of the first message of a queue."""

    topic: str
    queue_id: Int


@header("org.apache.rocketmq.remoting.protocol.header.GetEarliestMsgStoretimeResponseHeader")
class GetEarliestMsgStoretimeResponseHeader(Header):
    """The store time in ms; -1 if the queue is empty."""

    timestamp: Long


@header("org.apache.rocketmq.remoting.protocol.header.ResetOffsetRequestHeader")
class ResetOffsetRequestHeader(TopicRequestHeader):
    """Moves a group back or forth in a topic, to a time in ms (-1: the end) or to an offset.

    Where the broker tells clients the new offsets, these only go back unless `is_force` is set.
    """

    group: str
    topic: str
    queue_id: Int = -1
    offset: Long | None = None
    timestamp: Long
    is_force: bool


@header("org.apache.rocketmq.remoting.protocol.header.GetConsumerStatusRequestHeader")
class GetConsumerStatusRequestHeader(TopicRequestHeader):
    """Asks how far each client of a group has come in the queues of a topic."""

    topic: str
    group: str
    client_addr: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.QueryCorrectionOffsetHeader")
class QueryCorrectionOffsetHeader(TopicRequestHeader):
    """Asks for the smallest offset in each queue of all groups but `filter_groups`.

    The names in `filter_groups` are separated by commas. Where `compare_group` is behind the
    smallest offset, the answer is the largest number there is.
    """

    filter_groups: str | None = None
    compare_group: str
    topic: str


@header("org.apache.rocketmq.remoting.protocol.header.CloneGroupOffsetRequestHeader")
class CloneGroupOffsetRequestHeader(RpcRequestHeader):
    """Gives `dest_group` the offsets of `src_group`, in one topic or in all."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


QUERY_BROKER_OFFSET = define(RequestCode.QUERY_BROKER_OFFSET, NoHeader, NoHeader)
QUERY_CONSUMER_OFFSET = define(
    RequestCode.QUERY_CONSUMER_OFFSET,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
)
UPDATE_CONSUMER_OFFSET = define(
    RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader, NoHeader
)
SEARCH_OFFSET_BY_TIMESTAMP = define(
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetRequestHeader, SearchOffsetResponseHeader
)
GET_MAX_OFFSET = define(
    RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
)
GET_MIN_OFFSET = define(
    RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader, GetMinOffsetResponseHeader
)
GET_EARLIEST_MSG_STORETIME = define(
    RequestCode.GET_EARLIEST_MSG_STORETIME,
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
)
GET_ALL_CONSUMER_OFFSET = define(RequestCode.GET_ALL_CONSUMER_OFFSET, NoHeader, NoHeader)
GET_ALL_DELAY_OFFSET = define(RequestCode.GET_ALL_DELAY_OFFSET, NoHeader, NoHeader)
RESET_CONSUMER_OFFSET_IN_CONSUMER = define(
    RequestCode.RESET_CONSUMER_OFFSET_IN_CONSUMER, NoHeader, NoHeader
)
RESET_CONSUMER_OFFSET_IN_BROKER = define(
    RequestCode.RESET_CONSUMER_OFFSET_IN_BROKER, NoHeader, NoHeader
)
RESET_CONSUMER_CLIENT_OFFSET = define(
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ResetOffsetRequestHeader, NoHeader
)
GET_CONSUMER_STATUS_FROM_CLIENT = define(
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, GetConsumerStatusRequestHeader, NoHeader
)
INVOKE_BROKER_TO_RESET_OFFSET = define(
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
    ResetOffsetRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
INVOKE_BROKER_TO_GET_CONSUMER_STATUS = define(
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, GetConsumerStatusRequestHeader, NoHeader
)
QUERY_CORRECTION_OFFSET = define(
    RequestCode.QUERY_CORRECTION_OFFSET, QueryCorrectionOffsetHeader, NoHeader
)
CLONE_GROUP_OFFSET = define(RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetRequestHeader, NoHeader)
