# SPDX-License-Identifier: Apache-2.0
"""Refuses names and messages that no broker would accept, before any request is sent.

Counterpart of client.Validators, with its limits.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.remoting.arguments.kinds import Of, refused
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.topics import FORBIDDEN_TO_SEND

MAX_TOPIC_LENGTH: Final = 127
MAX_GROUP_LENGTH: Final = 120
DEFAULT_PRODUCER_GROUP: Final = "DEFAULT_PRODUCER"
DEFAULT_CONSUMER_GROUP: Final = "DEFAULT_CONSUMER"
"""The groups that Java's clients have before the program gives them one; they start with neither.
"""

_TEXT: Final = Of(str)
_LEGAL: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


@lru_cache(maxsize=1024)  # of those that can be: the same few come with every message
def check_topic(topic: str) -> None:
    """Raises MessageIllegal unless this can be the name of a topic."""
    _check_name("topic", topic, MAX_TOPIC_LENGTH)


def check_group(group: str) -> None:
    """Raises MessageIllegal unless this can be the name of a group."""
    _check_name("group", group, MAX_GROUP_LENGTH)


def check_producer_group(group: str) -> None:
    """Raises MessageIllegal unless a producer may have this group."""
    check_group(group)
    if group == DEFAULT_PRODUCER_GROUP:
        raise MessageIllegal(f"the group {group} is reserved: give the producer its own name")


def check_consumer_group(group: str) -> None:
    """Raises MessageIllegal unless a consumer may be a member of this group."""
    check_group(group)
    if group == DEFAULT_CONSUMER_GROUP:
        raise MessageIllegal(f"the group {group} is reserved: give the consumer its own name")


def check_message(message: Message, max_body_bytes: int) -> None:
    """Raises MessageIllegal unless a broker may take the message."""
    _check_topic_to_send(message.topic)
    body = message.body
    if type(body) is not bytes and not isinstance(body, (bytearray, memoryview)):
        raise refused("the body of a message", "bytes (new_message takes str as well)", body)
    if not 0 < len(body) <= max_body_bytes:
        if not body:
            raise MessageIllegal("the message body is empty, which RocketMQ does not allow")
        raise MessageIllegal(
            f"the message body has {len(body)} bytes, but at most {max_body_bytes} are allowed"
        )


@lru_cache(maxsize=1024)
def _check_topic_to_send(topic: str) -> None:
    check_topic(topic)
    if topic in FORBIDDEN_TO_SEND:
        raise MessageIllegal(f"topic {topic} is reserved for the brokers")


def _check_name(kind: str, name: str, max_length: int) -> None:
    _TEXT.take(kind, name)
    if not name.strip():
        raise MessageIllegal(f"the {kind} is blank")
    if not _LEGAL.fullmatch(name):
        raise MessageIllegal(
            f"the {kind} {name!r:.200} is illegal: use letters, digits and the characters % | _ -"
        )
    if len(name) > max_length:
        raise MessageIllegal(
            f"the name of a {kind} can have at most {max_length} characters, not {len(name)}"
        )
