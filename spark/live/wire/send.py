# SPDX-License-Identifier: Apache-2.0
"""Sends to a cluster, many messages at a time, and asks whether messages are there.

    queues = write_queues(cluster, "orders")
    sending = [start_send(cluster, queue, parcel) for queue, parcel in zip(queues, parcels)]
    replies = [question.wait(STORED) for question in sending]

Nothing is sent again here, since only the caller can tell whether a message may be stored twice.
Counterpart of MQClientAPIImpl.sendMessage and MQAdminImpl.queryMessageByUniqKey.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import (
    Message,
    MessageDecodeError,
    MessageQueue,
    decode_messages,
    encode_batch,
)
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import DEFAULT_TOPIC
from txrocketmq.remoting.protocol.query import (
    QUERY_MESSAGE,
    QueryMessageRequestHeader,
)
from txrocketmq.remoting.protocol.send import (
    SEND_BATCH_MESSAGE,
    SEND_MESSAGE_V2,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)
from txrocketmq.remoting.routing.routes import default_route, publish_queues, why_not_writable
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import ATTEMPTS, Cluster
from txrocketmq.spark.live.wire.rpc import Question

NEW_TOPIC_QUEUES: Final = 4
"""The most queues of a topic that is created by a send (defaultTopicQueueNums)."""
_FOUND: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND})
_KEYS_AT_ONCE: Final = 32
"""Keys asked for at once; a broker with too many such questions refuses more."""
_KEY_MATCHES: Final = 32
_LONG_MAX: Final = (1 << 63) - 1


class Parcel(NamedTuple):
    """A message or a batch in the form in which it is sent."""

    body: bytes
    properties: str
    """The properties in the text form of the wire."""
    flag: int
    sys_flag: int
    """MessageSysFlag; it says whether the body is compressed."""
    is_batch: bool


def message_parcel(message: Message, sys_flag: int = 0) -> Parcel:
    """Makes a parcel of one message; `sys_flag` says whether its body is already compressed."""
    properties = encode_properties({names.WAIT: "true", **message.properties})
    return Parcel(message.body, properties, message.flag, sys_flag, is_batch=False)


def batch_parcel(messages: Sequence[Message]) -> Parcel:
    """Makes a batch of messages for one topic and queue, none of them delayed or compressed.

    Raises MessageEncodeError if something does not fit.
    """
    properties = encode_properties({names.WAIT: "true"})
    return Parcel(encode_batch(messages), properties, 0, 0, is_batch=True)


def write_queues(cluster: Cluster, topic: str) -> list[MessageQueue]:
    """Returns the queues to send to, in order; for a new topic those that a send will create.

    Raises ClusterError when there is none.
    """
    route = cluster.route(topic)
    if route is None:
        pattern = cluster.route(DEFAULT_TOPIC)
        if pattern is None:
            raise ClusterError(
                f"topic {topic} is not known at {cluster}, and brokers do not create topics by"
                " themselves (autoCreateTopicEnable): create it first"
            )
        route = default_route(pattern, NEW_TOPIC_QUEUES)
    queues = publish_queues(topic, route)
    if not queues:
        raise ClusterError(f"topic {topic} cannot be written: {why_not_writable(route)}")
    return queues


def start_send(
    cluster: Cluster,
    queue: MessageQueue,
    parcel: Parcel,
    *,
    producer_group: str,
    timeout_ms: int | None = None,
) -> Question[SendMessageResponseHeader]:
    """Sends; `question.wait(STORED)` returns where the message is stored. Raises Unreachable.

    For a batch it returns where the first message is stored, and the ids of all messages.
    """
    call = SEND_BATCH_MESSAGE if parcel.is_batch else SEND_MESSAGE_V2
    header = SendMessageRequestHeader(
        producer_group=producer_group,
        topic=queue.topic,
        default_topic=DEFAULT_TOPIC,
        default_topic_queue_nums=NEW_TOPIC_QUEUES,
        queue_id=queue.queue_id,
        sys_flag=parcel.sys_flag,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=parcel.flag,
        properties=parcel.properties,
        reconsume_times=0,
        unit_mode=False,
        batch=parcel.is_batch,
        bname=queue.broker_name,
    )
    connection = cluster.connection(cluster.master(queue.broker_name))
    return connection.start(call, header, parcel.body, timeout_ms=timeout_ms or cluster.timeout_ms)


def stored_keys(cluster: Cluster, topic: str, keys: Sequence[str]) -> dict[str, int]:
    """Returns which of these unique keys (UNIQ_KEY) are stored, with the CRC-32 of each body.

    Asks the index of every broker that has the topic; an index lags a moment behind the log. Raises
    Refused, Unreachable.
    """
    found: dict[str, int] = {}
    for broker_name in cluster.masters(topic):
        for begin in range(0, len(keys), _KEYS_AT_ONCE):
            some = [key for key in keys[begin : begin + _KEYS_AT_ONCE] if key not in found]
            headers = {_Key(topic, broker_name, key): _query(topic, key) for key in some}
            replies = cluster.ask_each(
                QUERY_MESSAGE, headers, _FOUND, master_only=True, attempts=ATTEMPTS
            )
            for asked, reply in replies.items():
                its = _unique_keys(reply, broker_name)
                if asked.key in its:
                    found[asked.key] = its[asked.key]
    return found


class _Key(NamedTuple):
    """The subject of a question for a key, in the form of cluster.Asked."""

    topic: str
    broker_name: str
    key: str


def _query(topic: str, key: str) -> QueryMessageRequestHeader:
    return QueryMessageRequestHeader(
        topic=topic,
        key=key,
        max_num=_KEY_MATCHES,
        begin_timestamp=0,
        end_timestamp=_LONG_MAX,
        unique_key_query=True,
    )


def _unique_keys(reply: Reply[Any], broker_name: str) -> dict[str | None, int]:
    """Returns the unique keys of the messages found, with the CRC-32 of their bodies.

    The index knows only hashes of keys, so other messages may be found, too. Messages of one key
    are copies.
    """
    try:
        messages = decode_messages(reply.body_bytes, decompress_body=False)
    except MessageDecodeError as error:
        raise ClusterError(f"a message of {broker_name} cannot be read: {error}") from error
    return {message.unique_key: crc32(message.body) for message in messages}
