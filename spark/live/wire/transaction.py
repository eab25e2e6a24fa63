# SPDX-License-Identifier: Apache-2.0
"""Half messages, which consumers do not see until they are committed.

    sent = start_send(cluster, queue, half_parcel(message, "g"), ...).wait(STORED)
    half = half_message(queue, sent, message.unique_key)
    start_end(cluster, half, Decision.COMMIT, producer_group="g").wait()

The original's producer sends its decision as a oneway request. Here it is a request with an answer,
which brokers give, too. Java: DefaultMQProducerImpl.sendMessageInTransaction, endTransaction.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import NamedTuple

from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import MessageIdError, decode_message_id
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader
from txrocketmq.remoting.protocol.transaction import END_TRANSACTION, EndTransactionRequestHeader
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import Cluster, header_of
from txrocketmq.spark.live.wire.rpc import Question
from txrocketmq.spark.live.wire.send import Parcel, message_parcel


class Decision(enum.IntEnum):
    """What becomes of a half message."""

    COMMIT = MessageSysFlag.TRANSACTION_COMMIT_TYPE
    ROLLBACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


class HalfMessage(NamedTuple):
    """What a broker must be told to find a half message."""

    topic: str
    broker_name: str
    commit_log_offset: int
    queue_offset: int
    """The offset in the queue of half messages."""
    unique_key: str
    """The unique key, which is also the id of the transaction."""


def half_parcel(message: Message, producer_group: str) -> Parcel:
    """Makes a half message of a message that has its unique key."""
    own = {names.TRAN_MSG: "true", names.PGROUP: producer_group}
    prepared = replace(message, properties={**message.properties, **own})
    return message_parcel(prepared, MessageSysFlag.TRANSACTION_PREPARED_TYPE)


def half_message(
    queue: MessageQueue, sent: Reply[SendMessageResponseHeader], unique_key: str
) -> HalfMessage:
    """Returns the half message that was sent. Raises ClusterError if the answer gives no place."""
    header = header_of(sent)
    try:
        place = decode_message_id(header.msg_id)
    except MessageIdError as error:
        raise ClusterError(f"the answer to a half message, from {queue}: {error}") from error
    return HalfMessage(
        queue.topic, queue.broker_name, place.commit_log_offset, header.queue_offset, unique_key
    )


def start_end(
    cluster: Cluster, half: HalfMessage, decision: Decision, *, producer_group: str
) -> Question[NoHeader]:
    """Ends a transaction, of a sender in `producer_group`; `wait()` for it. Raises Unreachable.

    A decision counts each time: a message that is committed twice is there twice.
    """
    header = EndTransactionRequestHeader(
        topic=half.topic,
        producer_group=producer_group,
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.commit_log_offset,
        commit_or_rollback=decision,
        msg_id=half.unique_key,
        transaction_id=half.unique_key,
        bname=half.broker_name,
    )
    connection = cluster.connection(cluster.master(half.broker_name))
    return connection.start(END_TRANSACTION, header, timeout_ms=cluster.timeout_ms)
