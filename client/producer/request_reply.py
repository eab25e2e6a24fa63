# SPDX-License-Identifier: Apache-2.0
"""Requests and their replies are messages with certain properties.

Counterpart of prepareSendRequest in DefaultMQProducerImpl and of MessageUtil.
"""

from __future__ import annotations

import uuid

from txrocketmq.client.base.errors import NotARequest
from txrocketmq.client.producer.send.parcel import REPLY
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.topics import REPLY_SUFFIX


def as_request(message: Message, client_id: str, timeout_ms: int) -> str:
    """Marks a message as a request; returns the correlation id, which its reply will have."""
    correlation_id = str(uuid.uuid4())
    message.properties[names.CORRELATION_ID] = correlation_id
    message.properties[names.REPLY_TO_CLIENT] = client_id
    message.properties[names.TTL] = str(timeout_ms)
    return correlation_id


def reply_to(request: Message, body: bytes) -> Message:
    """Makes the message that replies to a request. Raises NotARequest."""
    asked = request.properties
    wanted = (names.CLUSTER, names.CORRELATION_ID, names.REPLY_TO_CLIENT)
    missing = [name for name in wanted if not asked.get(name)]
    if missing:
        raise NotARequest(
            f"a message of topic {request.topic} cannot be answered, since it is no request: it has"
            f" no property {missing[0]}"
        )
    properties = {
        names.MSG_TYPE: REPLY,
        names.CORRELATION_ID: asked[names.CORRELATION_ID],
        names.REPLY_TO_CLIENT: asked[names.REPLY_TO_CLIENT],
    }
    if names.TTL in asked:
        properties[names.TTL] = asked[names.TTL]
    return Message(asked[names.CLUSTER] + REPLY_SUFFIX, body, properties=properties)
