# SPDX-License-Identifier: Apache-2.0
"""Batches that are one record, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from txrocketmq.broker.store.message_store import PutMessage
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.message.properties import encode_properties

HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
FLAGS = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP


def kind_of(topic: str) -> bool:
    """Returns whether a topic has queues of batches: in tests, if its name begins in this way."""
    return topic.startswith("Batches")


def batched(message: PutMessage, bodies: Sequence[bytes]) -> PutMessage:
    """Returns the message as a batch of these bodies."""
    text = message.properties + encode_properties({"INNER_NUM": str(len(bodies))}).encode()
    return message._replace(
        body=encode_batch([Message(message.topic, body) for body in bodies]),
        properties=text,
        sys_flag=FLAGS,
    )


def plain(topic: str, body: bytes = b"body") -> PutMessage:
    """Returns a message with nothing special."""
    return PutMessage(topic, 0, body, b"", 0, 1, HOST, HOST, None, None, None)
