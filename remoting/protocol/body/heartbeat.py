# SPDX-License-Identifier: Apache-2.0
"""Heartbeats, the members of groups, and locks of queues.

Java: remoting.protocol.heartbeat; LockBatchRequestBody and its like in remoting.protocol.body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.base import Body, body, member

CONSUME_TYPES: Final = ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")
MESSAGE_MODELS: Final = ("BROADCASTING", "CLUSTERING")
CONSUME_FROM_WHERE: Final = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)


@body("org.apache.rocketmq.remoting.protocol.heartbeat.ProducerData")
class ProducerData(Body):
    """A producer in a client's heartbeat."""

    group_name: str


@body("org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData")
class ConsumerData(Body):
    """A consumer in a client's heartbeat."""

    group_name: str
    consume_type: str | None = member(names=CONSUME_TYPES, default=None)
    message_model: str | None = member(names=MESSAGE_MODELS, default=None)
    consume_from_where: str | None = member(names=CONSUME_FROM_WHERE, default=None)
    subscription_data_set: Sequence[SubscriptionData] = ()
    unit_mode: bool = False


@body("org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData")
class HeartbeatData(Body):
    """A client's heartbeat, with all its producers and consumers.

    `without_sub` (5.1.3 and later) says that the subscriptions are left out, since they have not
    changed.
    """

    client_id: str = member(wire="clientID")
    producer_data_set: Sequence[ProducerData] = ()
    consumer_data_set: Sequence[ConsumerData] = ()
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


@body("org.apache.rocketmq.remoting.protocol.body.CheckClientRequestBody")
class CheckClientRequestBody(Body):
    """A subscription that the broker is to check."""

    client_id: str | None = None
    group: str | None = None
    subscription_data: SubscriptionData | None = None
    namespace: str | None = None


@body("org.apache.rocketmq.remoting.protocol.header.GetConsumerListByGroupResponseBody")
class GetConsumerListByGroupResponseBody(Body):
    """The ids of the clients in a group of consumers."""

    consumer_id_list: Sequence[str] = ()


@body("org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody")
class LockBatchRequestBody(Body):
    """The queues that a client is to consume alone."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: frozenset[MessageQueue] = frozenset()


@body("org.apache.rocketmq.remoting.protocol.body.LockBatchResponseBody")
class LockBatchResponseBody(Body):
    """The queues that the client has locked."""

    lock_ok_mq_set: frozenset[MessageQueue] = member(wire="lockOKMQSet", default=frozenset())


@body("org.apache.rocketmq.remoting.protocol.body.UnlockBatchRequestBody")
class UnlockBatchRequestBody(Body):
    """The queues that a client no longer locks."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: frozenset[MessageQueue] = frozenset()
