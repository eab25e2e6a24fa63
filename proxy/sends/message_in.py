# SPDX-License-Identifier: Apache-2.0
"""A message of gRPC as brokers take it: checked, with its properties under RocketMQ's names.

Java: SendMessageActivity.buildMessage, in the order of its checks.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from txrocketmq.proxy.base.names import has_controls
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import Encoding, MessageType
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import DEFAULT_MAX_BYTES
from txrocketmq.remoting.message.flags import MessageSysFlag

_GZIP: Final = b"\x1f\x8b"
_GZIP_BITS: Final = 31
_LEAST_YEAR_S: Final = -62_135_596_800
_LAST_YEAR_S: Final = 253_402_300_799


class MessageIn:
    """A message: what is sent of it, and what type its properties say it has."""

    __slots__ = ("body", "group", "message_id", "properties", "sys_flag", "type")

    def __init__(
        self, message: Any, topic: str, peer: str, now_ms: int, config: MessagingConfig
    ) -> None:
        """Takes a message of a topic from the address of a peer. Raises Refused."""
        system = message.system_properties
        self.body: bytes = message.body
        _check_body(self.body, config)
        properties = _user_properties(message.user_properties, system, config)
        self.message_id: str = system.message_id
        if not self.message_id.strip() or has_controls(self.message_id):
            raise Refused(
                Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty, nor contain control character"
            )
        properties[names.UNIQ_KEY] = self.message_id
        self.type = MessageType.NORMAL
        self.group: str = system.message_group
        if self.group:
            _check_group(self.group, config)
            properties[names.SHARDING_KEY] = self.group
            self.type = MessageType.FIFO
        elif system.HasField("priority"):
            properties[names.PRIORITY] = str(system.priority)
            self.type = MessageType.PRIORITY
        if system.HasField("delivery_timestamp"):
            properties[names.TIMER_DELIVER_MS] = str(_delivery_ms(system, now_ms, config))
            self.type = MessageType.DELAY
        self.sys_flag = 0
        if system.message_type == MessageType.TRANSACTION:
            _set_transaction(properties, system, config)
            self.sys_flag = MessageSysFlag.TRANSACTION_PREPARED_TYPE
            self.type = MessageType.TRANSACTION
        if system.lite_topic:
            raise Refused(
                Code.UNSUPPORTED, "lite topics are not served: send to an ordinary topic instead"
            )
        properties[names.RECONSUME_TIME] = str(system.delivery_attempt)
        properties[names.PGROUP] = topic
        if system.trace_context:
            _check_controls("trace context", system.trace_context)
            properties[names.TRACE_CONTEXT] = system.trace_context
        _check_controls("born host", system.born_host)
        properties[names.BORN_HOST] = system.born_host if system.born_host.strip() else peer
        if system.HasField("born_timestamp"):
            properties[names.BORN_TIMESTAMP] = str(_ms(system.born_timestamp))
        self.properties = properties
        if system.body_encoding == Encoding.GZIP:
            self._take_compressed(most_plain_bytes(config))

    def _take_compressed(self, most_bytes: int) -> None:
        """Bodies that are called GZIP are of zlib, as brokers and other clients expect them.

        What is of gzip itself, some clients send that, is stored as it was before.
        """
        if not self.body.startswith(_GZIP):
            self.sys_flag |= MessageSysFlag.COMPRESSED
            return
        plain = gunzipped(self.body, most_bytes)
        if plain is None:
            raise Refused(
                Code.MESSAGE_CORRUPTED, f"the body is no whole gzip of at most {most_bytes} bytes"
            )
        self.body = plain


def most_plain_bytes(config: MessagingConfig) -> int:
    """Returns how many bytes the bodies of a request may have that were gzip."""
    most = config.max_message_size
    return min(most, DEFAULT_MAX_BYTES) if most > 0 else DEFAULT_MAX_BYTES


def gunzipped(body: bytes, most_bytes: int = DEFAULT_MAX_BYTES) -> bytes | None:
    """Returns what a gzip contains, or None if it is none, or of too much."""
    stream = zlib.decompressobj(_GZIP_BITS)
    try:
        plain = stream.decompress(body, most_bytes)
    except zlib.error:
        return None
    return plain if stream.eof else None


def check_type(message: MessageIn, topic: str, types: tuple[MessageType, ...]) -> None:
    """Raises Refused if a topic does not take the type of a message."""
    if message.type in types or topic.startswith("%"):
        return
    expected = types[0].name if len(types) == 1 else "MIXED"
    raise Refused(
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"TopicMessageType validate failed, the expected type is {expected}, but actual type is"
        f" {message.type.name}: topic {topic} takes"
        f" {', '.join(each.name for each in types)}",
    )


def _check_body(body: bytes, config: MessagingConfig) -> None:
    if not body and config.enable_message_body_empty_check:
        raise Refused(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    most = config.max_message_size
    if 0 < most < len(body):
        raise Refused(
            Code.MESSAGE_BODY_TOO_LARGE,
            f"message body cannot exceed the max {most}: it has {len(body)} bytes",
        )


def _user_properties(user: Any, system: Any, config: MessagingConfig) -> dict[str, str]:
    properties: dict[str, str] = {}
    count = len(user)
    if count > config.user_property_max_num:
        raise Refused(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"too many user properties, max is {config.user_property_max_num}",
        )
    size = 0
    for name, value in user.items() if count else ():
        if name in names.SYSTEM_PROPERTIES:
            raise Refused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {name}")
        if has_controls(name) or has_controls(value):
            raise Refused(
                Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
                f"the key and the value of property cannot contain control character: {name!r:.80}",
            )
        if name and value:  # what is empty cannot be stored, there or here
            properties[name] = value
        size += len(name.encode()) + len(value.encode())
    tag = system.tag
    if tag:
        _check_tag(tag)
        properties[names.TAGS] = tag
        size += len(tag.encode())
    keys = system.keys
    if keys:
        for key in keys:
            _check_key(key)
            size += len(key.encode())
        properties[names.KEYS] = names.KEY_SEPARATOR.join(keys)
    if 0 < config.max_user_property_size < size:
        raise Refused(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            "the total size of user property is too large, max is"
            f" {config.max_user_property_size}: it is {size}",
        )
    return properties


def _check_tag(tag: str) -> None:
    if not tag.strip() or "|" in tag or has_controls(tag):
        raise Refused(
            Code.ILLEGAL_MESSAGE_TAG,
            f"tag cannot be blank, nor contain '|' or a control character: {tag!r:.80}",
        )


def _check_key(key: str) -> None:
    if key and (not key.strip() or has_controls(key)):
        raise Refused(
            Code.ILLEGAL_MESSAGE_KEY,
            f"key cannot be blank, nor contain a control character: {key!r:.80}",
        )


def _check_group(group: str, config: MessagingConfig) -> None:
    most = config.max_message_group_size
    if not group.strip() or has_controls(group):
        raise Refused(
            Code.ILLEGAL_MESSAGE_GROUP,
            f"message group cannot be blank, nor contain a control character: {group!r:.80}",
        )
    if 0 < most <= len(group.encode()):
        raise Refused(Code.ILLEGAL_MESSAGE_GROUP, f"message group exceed the max size {most}")


def _check_controls(what: str, text: str) -> None:
    """A separator in it would add properties that nobody has checked."""
    if has_controls(text):
        raise Refused(Code.BAD_REQUEST, f"{what} cannot contain control character")


def _ms(timestamp: Any) -> int:
    seconds: int = timestamp.seconds
    if not _LEAST_YEAR_S <= seconds <= _LAST_YEAR_S:
        raise Refused(Code.BAD_REQUEST, f"there is no time {seconds} s after 1970")
    nanos: int = timestamp.nanos
    return seconds * 1_000 + nanos // 1_000_000


def _delivery_ms(system: Any, now_ms: int, config: MessagingConfig) -> int:
    deliver_ms = _ms(system.delivery_timestamp)
    most_ms = config.max_delay_time_mills
    if 0 < most_ms < deliver_ms - now_ms:
        raise Refused(
            Code.ILLEGAL_DELIVERY_TIME,
            f"the max delay time of message is too large, max is {most_ms} ms",
        )
    return deliver_ms


def _set_transaction(properties: dict[str, str], system: Any, config: MessagingConfig) -> None:
    properties[names.TRAN_MSG] = "true"
    if not system.HasField("orphaned_transaction_recovery_duration"):
        return
    recovery_s = system.orphaned_transaction_recovery_duration.seconds
    most_s = config.max_transaction_recovery_second
    if 0 < most_s < recovery_s:
        raise Refused(
            Code.BAD_REQUEST,
            f"the max transaction recovery time of message is too large, max is {most_s} s",
        )
    properties[names.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(recovery_s)
