# SPDX-License-Identifier: Apache-2.0
"""Half messages: sent but not seen by consumers, until they are committed or rolled back.

    sent = start_send(cluster, queue, half_parcel(message, "g"), ...).wait(STORED)
    half = half_message(queue, sent, message.unique_key)
    start_end(cluster, half, Decision.COMMIT, producer_group="g").wait()

The original's producer does not wait for the answer to its decision; a broker gives one to whoever
asks for it, and so does this. Java: DefaultMQProducerImpl.sendMessageInTransaction, endTransaction.
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
from txrocketmq.spark.errors import ClusterError
from txrocketmq.spark.live.cluster import Cluster, header_of
from txrocketmq.spark.live.rpc import Question
from txrocketmq.spark.live.send import Parcel, message_parcel


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
    """In the queue of half messages."""
    unique_key: str
    """Also the id of its transaction."""


def half_parcel(message: Message, producer_group: str) -> Parcel:
    """A message, which has its unique key, as a half message."""
    own = {names.TRAN_MSG: "true", names.PGROUP: producer_group}
    prepared = replace(message, properties={**message.properties, **own})
    return message_parcel(prepared, MessageSysFlag.TRANSACTION_PREPARED_TYPE)


def half_message(
    queue: MessageQueue, sent: Reply[SendMessageResponseHeader], unique_key: str
) -> HalfMessage:
    """The half message that was sent to a queue; ClusterError when the answer gives no place."""
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
    """Tells the broker; `wait()` for it. `producer_group` is that of the send. Raises Unreachable.

    A decision that is told twice counts twice: a message that is committed again is there again.
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
