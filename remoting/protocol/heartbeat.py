# SPDX-License-Identifier: Apache-2.0
"""Requests of clients that come, stay and leave; members of groups; locks of queues.

Java: ClientManageProcessor, ConsumerManageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import NoHeader, field, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.HeartbeatRequestHeader")
class HeartbeatRequestHeader(RpcRequestHeader):
    """A client's heartbeat. It has no field of its own; the body is HeartbeatData."""


@header("org.apache.rocketmq.remoting.protocol.header.UnregisterClientRequestHeader")
class UnregisterClientRequestHeader(RpcRequestHeader):
    """A client leaves its group of producers, its group of consumers, or both."""

    client_id: str = field(wire="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetConsumerListByGroupRequestHeader")
class GetConsumerListByGroupRequestHeader(RpcRequestHeader):
    """Asks for the members of a consumer group."""

    consumer_group: str


@header("org.apache.rocketmq.remoting.protocol.header.NotifyConsumerIdsChangedRequestHeader")
class NotifyConsumerIdsChangedRequestHeader(RpcRequestHeader):
    """The broker tells the members of a group that some came or left, so that they rebalance."""

    consumer_group: str


@header("org.apache.rocketmq.remoting.protocol.header.LockBatchMqRequestHeader")
class LockBatchMqRequestHeader(RpcRequestHeader):
    """Locks queues. It has no field of its own; the body is LockBatchRequestBody."""


@header("org.apache.rocketmq.remoting.protocol.header.UnlockBatchMqRequestHeader")
class UnlockBatchMqRequestHeader(RpcRequestHeader):
    """Unlocks queues. It has no field of its own; the body is UnlockBatchRequestBody."""


HEART_BEAT = define(RequestCode.HEART_BEAT, HeartbeatRequestHeader, NoHeader)
UNREGISTER_CLIENT = define(RequestCode.UNREGISTER_CLIENT, UnregisterClientRequestHeader, NoHeader)
GET_CONSUMER_LIST_BY_GROUP = define(
    RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader, NoHeader
)
NOTIFY_CONSUMER_IDS_CHANGED = define(
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, NotifyConsumerIdsChangedRequestHeader, NoHeader
)
LOCK_BATCH_MQ = define(RequestCode.LOCK_BATCH_MQ, LockBatchMqRequestHeader, NoHeader)
UNLOCK_BATCH_MQ = define(RequestCode.UNLOCK_BATCH_MQ, UnlockBatchMqRequestHeader, NoHeader)
CHECK_CLIENT_CONFIG = define(RequestCode.CHECK_CLIENT_CONFIG, NoHeader, NoHeader)
GET_CLIENT_CONFIG = define(RequestCode.GET_CLIENT_CONFIG, NoHeader, NoHeader)
