# SPDX-License-Identifier: Apache-2.0
"""Taking a delayed message back: what a handle says, and the request.

Counterpart of RecallMessageHandle and DefaultMQProducerImpl.recallMessage.
"""

from __future__ import annotations

import base64
from typing import Final, NamedTuple

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.base.validators import check_topic
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX
from txrocketmq.remoting.protocol.send import RecallMessageRequestHeader

VERSION: Final = "v1"


class RecallHandle(NamedTuple):
    """The fields of a recall handle."""

    topic: str
    broker_name: str
    timestamp: str
    msg_id: str


def decode_handle(text: str) -> RecallHandle:
    """Decodes a recall handle. Raises MessageIllegal when the text is none."""
    try:
        padded = text + "=" * (-len(text) % 4)
        version, *fields = base64.urlsafe_b64decode(padded.encode("ascii")).decode().split(" ")
    except ValueError:
        version, fields = "", []
    if version != VERSION or len(fields) < 4:
        raise MessageIllegal(
            f"{text!r:.80} is no recall handle: take the one of the SendResult, which brokers since"
            " 5.3.1 give for messages with a time of delivery"
        )
    return RecallHandle(*fields[:4])


async def recall_message(
    instance: ClientInstance, group: str, topic: str, handle: str, timeout_ms: int
) -> str:
    """Recalls a message and returns its id. `group` is the producer's, as brokers have it."""
    check_topic(topic)
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        raise MessageIllegal(f"messages of topic {topic} cannot be taken back")
    its = decode_handle(handle)
    name = instance.with_namespace(topic)
    address = await instance.address_to_publish(MessageQueue(name, its.broker_name, 0))
    header = RecallMessageRequestHeader(
        producer_group=group, topic=name, recall_handle=handle, bname=its.broker_name
    )
    return await instance.api.recall(address, header, timeout_ms)
