# SPDX-License-Identifier: Apache-2.0
"""Connections of clients, and what a consumer reports about itself.

Java: Connection, ConsumerConnection, ConsumerRunningInfo and others in remoting.protocol.body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from txrocketmq.remoting.codes import LanguageCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.base import Body, body, member
from txrocketmq.remoting.protocol.body.heartbeat import (
    CONSUME_FROM_WHERE,
    CONSUME_TYPES,
    MESSAGE_MODELS,
)

CONSUME_RESULTS: Final = (
    "CR_SUCCESS",
    "CR_LATER",
    "CR_ROLLBACK",
    "CR_COMMIT",
    "CR_THROW_EXCEPTION",
    "CR_RETURN_NULL",
)
_LANGUAGES: Final = tuple(language.name for language in LanguageCode)


@body("org.apache.rocketmq.remoting.protocol.body.Connection")
class ClientConnection(Body):
    """A client's connection; `version` is the number of an MQVersion."""

    client_id: str | None = None
    client_addr: str | None = None
    language: str | None = member(names=_LANGUAGES, default=None)
    version: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ConsumerConnection")
class ConsumerConnection(Body):
    """The connections of a group of consumers, and its subscriptions by topic."""

    connection_set: Sequence[ClientConnection] = ()
    subscription_table: Mapping[str, SubscriptionData] = member(default_factory=dict)
    consume_type: str | None = member(names=CONSUME_TYPES, default=None)
    message_model: str | None = member(names=MESSAGE_MODELS, default=None)
    consume_from_where: str | None = member(names=CONSUME_FROM_WHERE, default=None)


@body("org.apache.rocketmq.remoting.protocol.body.ProducerConnection")
class ProducerConnection(Body):
    """The connections of a group of producers."""

    connection_set: Sequence[ClientConnection] = ()


@body("org.apache.rocketmq.remoting.protocol.body.ProducerInfo")
class ProducerInfo(Body):
    """A producer's connection; `last_update_timestamp` is the time of its last heartbeat in ms."""

    client_id: str | None = None
    remote_ip: str | None = member(wire="remoteIP", default=None)
    language: str | None = member(names=_LANGUAGES, default=None)
    version: int = 0
    last_update_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ProducerTableInfo")
class ProducerTableInfo(Body):
    """All producers of a broker, by group."""

    data: Mapping[str, Sequence[ProducerInfo]] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.ProcessQueueInfo")
class ProcessQueueInfo(Body):
    """What a consumer says about a queue that it pulls from; times are in ms."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = member(wire="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.PopProcessQueueInfo")
class PopProcessQueueInfo(Body):
    """What a consumer says about a queue that it pops from; the time is in ms."""

    wait_ack_count: int = 0
    droped: bool = False
    last_pop_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ConsumeStatus")
class ConsumeStatus(Body):
    """How fast a consumer is in a topic: times (`_rt`) in ms, and messages per second (`_tps`)."""

    pull_rt: float = member(wire="pullRT", default=0.0)
    pull_tps: float = member(wire="pullTPS", default=0.0)
    consume_rt: float = member(wire="consumeRT", default=0.0)
    consume_ok_tps: float = member(wire="consumeOKTPS", default=0.0)
    consume_failed_tps: float = member(wire="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo")
class ConsumerRunningInfo(Body):
    """What a consumer is doing; the keys of `status_table` are topics."""

    properties: Mapping[str, str] = member(default_factory=dict)
    subscription_set: Sequence[SubscriptionData] = ()
    mq_table: Mapping[MessageQueue, ProcessQueueInfo] = member(default_factory=dict)
    mq_pop_table: Mapping[MessageQueue, PopProcessQueueInfo] = member(default_factory=dict)
    status_table: Mapping[str, ConsumeStatus] = member(default_factory=dict)
    user_consumer_info: Mapping[str, str] = member(default_factory=dict)
    jstack: str | None = None


@body("org.apache.rocketmq.remoting.protocol.body.ConsumeMessageDirectlyResult")
class ConsumeMessageDirectlyResult(Body):
    """The result of CONSUME_MESSAGE_DIRECTLY.

    `spent_time_mills` is how long the consumer took, in ms.
    """

    order: bool = False
    auto_commit: bool = True
    consume_result: str | None = member(names=CONSUME_RESULTS, default=None)
    remark: str | None = None
    spent_time_mills: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ConsumeByWho")
class ConsumeByWho(Body):
    """Which groups have consumed a message, and which have not."""

    consumed_group: Sequence[str] = ()
    not_consumed_group: Sequence[str] = ()
    topic: str | None = None
    queue_id: int = 0
    offset: int = 0
