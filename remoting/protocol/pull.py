# SPDX-License-Identifier: Apache-2.0
"""Pulling messages, and rebalancing by the broker.

Java: PullMessageProcessor, QueryAssignmentProcessor.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, field, header
from txrocketmq.remoting.protocol.base import TopicRequestHeader

TOOLS_GROUP: Final = "TOOLS_CONSUMER"
"""The group under which tools read; every broker has it (MixAll.TOOLS_CONSUMER_GROUP)."""


class RequestSource(IntEnum):
    """For whom a proxy pulls. A client that pulls for itself sends SDK or nothing."""

    SDK = -1
    PROXY_FOR_ORDER = 0
    PROXY_FOR_BROADCAST = 1
    PROXY_FOR_STREAM = 2


@header(
    "org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader",
    varying=("queueOffset", "commitOffset"),
)
class PullMessageRequestHeader(TopicRequestHeader):
    """Asks for messages of a queue from `queue_offset` on.

    The bits of `sys_flag` are those of PullSysFlag; `suspend_timeout_millis` and `sub_version` are
    in ms. `lite_topic` names a lite topic (5.5).
    """

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    request_source: Int | None = None
    proxy_forward_client_id: str | None = field(wire="proxyFrowardClientId", default=None)
    lite_topic: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.PullMessageResponseHeader")
class PullMessageResponseHeader(Header):
    """Where the next pull should start, and the bounds of the queue.

    `min_offset` is that of the first message, `max_offset` the one after the last. The header is
    also sent with PULL_NOT_FOUND and similar codes.
    """

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


PULL_MESSAGE = define(RequestCode.PULL_MESSAGE, PullMessageRequestHeader, PullMessageResponseHeader)
LITE_PULL_MESSAGE = define(
    RequestCode.LITE_PULL_MESSAGE, PullMessageRequestHeader, PullMessageResponseHeader
)
QUERY_ASSIGNMENT = define(RequestCode.QUERY_ASSIGNMENT, NoHeader, NoHeader)
SET_MESSAGE_REQUEST_MODE = define(RequestCode.SET_MESSAGE_REQUEST_MODE, NoHeader, NoHeader)
GET_ALL_MESSAGE_REQUEST_MODE = define(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, NoHeader, NoHeader)
