# SPDX-License-Identifier: Apache-2.0
"""A stored message as clients of gRPC get it.

Its body is whole: what remoting clients have compressed, with zlib, LZ4 or Zstandard, is plain
here (popped.py), whereas the original passes it on and calls all of it GZIP. The topic is named
whole, so that what a client was given fits what it sends.

Java: GrpcConverter.
"""

from __future__ import annotations

import contextlib
from functools import lru_cache
from hashlib import md5
from typing import Any, Final

from txrocketmq.proxy.schema.enums import DigestType, Encoding, MessageType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, integer, long

_RECEIVED: Final = message_type("ReceiveMessageResponse")
_MESSAGE: Final = message_type("Message")
_HIDDEN: Final = names.SYSTEM_PROPERTIES | {names.SHARDING_KEY, names.TRACE_CONTEXT}
_LAST_MS: Final = 253_402_300_799_000


def received_message(
    stored: MessageExt, topic: str, now_ms: int, plain: bytes | None = None
) -> Any:
    """Returns the answer of a receive with a message; `plain` is its body without compression."""
    answer = _RECEIVED()
    fill_message(answer.message, stored, topic, now_ms, plain)
    return answer


def plain_message(stored: MessageExt, topic: str, now_ms: int) -> Any:
    """Returns a message alone."""
    message = _MESSAGE()
    fill_message(message, stored, topic, now_ms)
    return message


def fill_message(
    message: Any, stored: MessageExt, topic: str, now_ms: int, plain: bytes | None = None
) -> None:
    """Fills a message of gRPC with a stored one.

    Without a `plain` body, one that is still compressed is passed on so.
    """
    own = stored.properties
    message.topic.name = topic
    user = message.user_properties
    for name, value in own.items():
        if name not in _HIDDEN:
            user[name] = value
    body = stored.body if plain is None else plain
    system = message.system_properties
    is_plain = plain is not None or not stored.sys_flag & MessageSysFlag.COMPRESSED
    system.body_encoding = Encoding.IDENTITY if is_plain else Encoding.GZIP
    message.body = body
    system.body_digest.type = DigestType.MD5
    system.body_digest.checksum = md5(body, usedforsecurity=False).hexdigest().upper()
    if (tag := own.get(names.TAGS)) is not None:
        system.tag = tag
    if keys := own.get(names.KEYS):
        system.keys.extend(keys.split(names.KEY_SEPARATOR))
    system.message_id = stored.msg_id
    system.message_type = _type(own)
    set_ms(system.born_timestamp, stored.born_timestamp)
    system.born_host = own.get(names.BORN_HOST) or _host_text(stored.born_host)
    set_ms(system.store_timestamp, stored.store_timestamp)
    system.store_host = _host_text(stored.store_host)
    _set_delivery(system, own, now_ms)
    system.queue_id = stored.queue_id
    system.queue_offset = stored.queue_offset
    system.delivery_attempt = stored.reconsume_times + 1
    if (group := own.get(names.SHARDING_KEY)) is not None:
        system.message_group = group
    if (handle := own.get(names.POP_CK)) is not None:
        system.receipt_handle = handle
    _set_rare(system, own)


@lru_cache(maxsize=1_024)  # the same few come with every message
def _host_text(host: Host) -> str:
    return str(host)


def _set_rare(system: Any, own: dict[str, str]) -> None:
    if (trace := own.get(names.TRACE_CONTEXT)) is not None:
        system.trace_context = trace
    if (priority := own.get(names.PRIORITY)) is not None:
        with contextlib.suppress(NumberFormatError):
            system.priority = integer(priority)
    origin, origin_id = own.get(names.DLQ_ORIGIN_TOPIC), own.get(names.DLQ_ORIGIN_MESSAGE_ID)
    if origin is not None and origin_id is not None:
        system.dead_letter_queue.topic = origin
        system.dead_letter_queue.message_id = origin_id


def _type(own: dict[str, str]) -> MessageType:
    if own.get(names.TRAN_MSG) == "true":
        return MessageType.TRANSACTION
    if names.DELAY in own or names.TIMER_DELIVER_MS in own or names.TIMER_DELAY_SEC in own:
        return MessageType.DELAY
    if names.SHARDING_KEY in own:
        return MessageType.FIFO
    return MessageType.PRIORITY if names.PRIORITY in own else MessageType.NORMAL


def _set_delivery(system: Any, own: dict[str, str], now_ms: int) -> None:
    try:
        if (delay_s := own.get(names.TIMER_DELAY_SEC)) is not None:
            set_ms(system.delivery_timestamp, now_ms + 1_000 * long(delay_s))
        elif (deliver_ms := own.get(names.TIMER_DELIVER_MS)) is not None:
            set_ms(system.delivery_timestamp, long(deliver_ms))
    except NumberFormatError:  # a stored message may have anything there
        system.ClearField("delivery_timestamp")


def set_ms(timestamp: Any, time_ms: int) -> None:
    """Sets a time of protobuf, or the nearest one that it can have."""
    time_ms = min(max(time_ms, 0), _LAST_MS)
    timestamp.seconds, rest_ms = divmod(time_ms, 1_000)
    timestamp.nanos = rest_ms * 1_000_000
