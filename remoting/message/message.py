# SPDX-License-Identifier: Apache-2.0
"""Messages, and the fast codecs of their bytes: records and batches.

A record is what the commit log holds and a pull response carries; its layout is declared in
`remoting.message.record`, and the structs here are derived from that. The decoders check every
length before they use it: whatever the bytes are, they return messages or raise
MessageDecodeError.

Java: common.message.Message, MessageExt, MessageClientExt, MessageQueue, MessageDecoder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.compression import (
    DEFAULT_MAX_BYTES,
    CompressionError,
    decompress,
)
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host, encode_message_id, host_of
from txrocketmq.remoting.message.properties import decode_properties, encode_properties
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.java_numbers import integer
from txrocketmq.remoting.primitives.packing import fixed

RecordBytes: TypeAlias = bytes | bytearray | memoryview
"""Unsigned bytes. A memoryview of a mapped file will do: only what a message keeps is copied."""

MAX_TOPIC_BYTES_V1: Final = 0x7F
MAX_TOPIC_BYTES_V2: Final = 0x7FFF
NO_HOST: Final = Host("0.0.0.0", 0)

_IPV6_HOSTS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_FIXED: Final = fixed(record.RECORD_FIXED).struct
_FIXED_BY_IPV6_HOSTS: Final = {
    0: _FIXED,
    MessageSysFlag.BORN_HOST_V6: fixed(record.RECORD_FIXED_BORN_IPV6).struct,
    MessageSysFlag.STORE_HOST_V6: fixed(record.RECORD_FIXED_STORE_IPV6).struct,
    _IPV6_HOSTS: fixed(record.RECORD_FIXED_BOTH_IPV6).struct,
}
_FIXED_BYTES: Final = _FIXED.size
_SYS_FLAG_INDEX: Final = fixed(record.RECORD_FIXED).names.index("sys_flag")
_TOPIC_LENGTH_V1: Final = fixed(record.TOPIC_LENGTH_V1).struct
_TOPIC_LENGTH_V2: Final = fixed(record.TOPIC_LENGTH_V2).struct
_PROPERTIES_LENGTH: Final = fixed(record.PROPERTIES_LENGTH).struct
_PROPERTIES_LENGTH_BYTES: Final = _PROPERTIES_LENGTH.size
_BATCH_HEAD: Final = fixed(record.BATCH_ENTRY_HEAD).struct
_BODY_LENGTH: Final = fixed(record.RECORD_FIXED).codec_of("body_length")
_BODY_LENGTH_AT: Final = fixed(record.RECORD_FIXED).offset_of("body_length")
_SYS_FLAG_LAST_BYTE: Final = fixed(record.RECORD_FIXED).offset_of("sys_flag") + 3
_MAGIC_LAST_BYTE: Final = fixed(record.RECORD_FIXED).offset_of("magic") + 3
_MAGIC_V1: Final = record.MAGIC_V1
_MAGIC_V1_LAST_BYTE: Final = record.MAGIC_V1 & 0xFF


class MessageDecodeError(RemotingError, ValueError):
    """The bytes at `offset`, where a message should start, are no message.

    `reason` says what is wrong with them.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"no message at offset {offset}: {reason}")
        self.offset = offset
        self.reason = reason


class MessageEncodeError(RemotingError, ValueError):
    """A message does not fit into its format; the text says why."""


@dataclass(slots=True)
class Message:
    """A message to send.

    The bits of `flag` are the user's own; `properties` contain tags, keys and everything else that
    is known of the message.
    """

    topic: str
    body: bytes = b""
    flag: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    transaction_id: str | None = None

    @property
    def tags(self) -> str | None:
        """The message's tag, by which subscriptions filter, or None. There is only one."""
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys under which the broker's index finds the message."""
        return self.properties.get(names.KEYS, "").split()

    @property
    def delay_level(self) -> int:
        """The delay level, 0 if there is none. Raises ValueError if it is not a number."""
        return integer(self.properties.get(names.DELAY, "0"))

    @property
    def waits_for_store(self) -> bool:
        """Whether the broker answers only after flush and replication.

        The broker's configuration says what it waits for.
        """
        return self.properties.get(names.WAIT, "true").lower() == "true"

    @property
    def unique_key(self) -> str | None:
        """The id that the producer gave to the message, or None."""
        return self.properties.get(names.UNIQ_KEY)

    def set_user_property(self, name: str, value: str) -> None:
        """Sets a property of the user's own. Raises ValueError if name or value is not allowed."""
        names.check_user_property(name, value)
        self.properties[name] = value


@dataclass(slots=True)
class MessageExt(Message):
    """A stored message, with its offsets in the queue and in the commit log (in bytes).

    Times are in milliseconds. `body_crc` and `store_size` (in bytes) describe the record, and so
    the body as it was stored. If the body was decompressed, `sys_flag` no longer has its COMPRESSED
    bit. The properties of a record are decoded when they are first used: to decode them
    takes about as long as to decode all the rest.
    """

    queue_id: int = 0
    queue_offset: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: Host = NO_HOST
    store_timestamp: int = 0
    store_host: Host = NO_HOST
    commit_log_offset: int = 0
    store_size: int = 0
    body_crc: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    broker_name: str | None = None

    @property
    def offset_msg_id(self) -> str:
        """The id by which VIEW_MESSAGE_BY_ID finds the message."""
        return encode_message_id(self.store_host, self.commit_log_offset)

    @property
    def msg_id(self) -> str:
        """The id that users see (MessageClientExt).

        It is the producer's id, or the broker's if there is none.
        """
        return self.unique_key or self.offset_msg_id


_PROPERTIES: Final[Any] = vars(Message)["properties"]
"""The slot of a message for its properties; that of a MessageExt may contain their text."""


def _properties_of(message: MessageExt) -> dict[str, str]:
    found: str | dict[str, str] = _PROPERTIES.__get__(message)
    if isinstance(found, str):
        found = decode_properties(found)
        _PROPERTIES.__set__(message, found)
    return found


# The class itself cannot contain it: a dataclass with slots drops what has the name of a field.
MessageExt.properties = property(_properties_of, _PROPERTIES.__set__)  # type: ignore[assignment,misc]


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """A queue of a topic on a broker.

    Queues sort by topic, broker name and id as in the original, since all members of a group must
    see them in the same order to rebalance.
    """

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        # The original's consistent hashing uses the hash of this text.
        return (
            f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, "
            f"queueId={self.queue_id}]"
        )


def body_crc(body: RecordBytes) -> int:
    """Returns the checksum of a body that its record contains (UtilAll.crc32).

    It is the CRC-32 without the sign bit.
    """
    return crc32(body) & 0x7FFFFFFF


def decode_message(
    buffer: RecordBytes,
    offset: int = 0,
    *,
    decompress_body: bool = True,
    max_body_bytes: int = DEFAULT_MAX_BYTES,
) -> tuple[MessageExt, int]:
    """Returns the message whose record starts at `offset`, and the offset where the record ends.

    `max_body_bytes` limits the size of a decompressed body. Bytes of a text that are not UTF-8 are
    read as U+FFFD, as in Java. The CRC is not checked: see `body_crc`.

    Raises MessageDecodeError for an unknown magic, lengths that do not add up, a record that is cut
    short, or a body that cannot be decompressed.
    """
    try:
        fields, body_at = _FIXED.unpack_from(buffer, offset), offset + _FIXED_BYTES
    except struct.error:
        raise _cut_short(buffer, offset) from None
    if fields[_SYS_FLAG_INDEX] & _IPV6_HOSTS:
        fields, body_at = _fixed_part_of_ipv6(buffer, offset, fields[_SYS_FLAG_INDEX])
    (
        total_size, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag,
        born_timestamp, born_ip, born_port, store_timestamp, store_ip, store_port,
        reconsume_times, prepared_transaction_offset, body_length,
    ) = fields  # fmt: skip
    topic_length_at = body_at + body_length
    end = offset + total_size
    if body_length < 0 or topic_length_at >= end or end > len(buffer):
        raise MessageDecodeError(offset, _why_cut_short(buffer, offset, total_size, body_length))
    if magic == _MAGIC_V1:  # as nearly all are: the topic's length is one byte
        topic_at = topic_length_at + 1
        length = buffer[topic_length_at]
        topic_end = topic_at + length if length <= MAX_TOPIC_BYTES_V1 else end
    else:
        topic_at, topic_end = _topic_range(buffer, offset, magic, topic_length_at, end)
    properties_at = topic_end + _PROPERTIES_LENGTH_BYTES
    if properties_at > end:
        raise MessageDecodeError(offset, "the topic does not fit in the record")
    (properties_length,) = _PROPERTIES_LENGTH.unpack_from(buffer, topic_end)
    if properties_at + properties_length != end:
        raise MessageDecodeError(
            offset, f"{properties_length} bytes of properties do not end a record of {total_size}"
        )
    body = bytes(buffer[body_at:topic_length_at])
    if sys_flag & MessageSysFlag.COMPRESSED and decompress_body and body:
        body = _decompressed(body, sys_flag, max_body_bytes, offset)
        sys_flag &= ~MessageSysFlag.COMPRESSED
    message = MessageExt(
        str(buffer[topic_at:topic_end], "utf-8", "replace"), body, flag,
        str(buffer[properties_at:end], "utf-8", "replace"), None,  # type: ignore[arg-type]
        queue_id, queue_offset, sys_flag,
        born_timestamp, host_of(born_ip, born_port), store_timestamp, host_of(store_ip, store_port),
        physical_offset, total_size, crc, reconsume_times, prepared_transaction_offset,
    )  # fmt: skip
    return message, end


def record_properties(record: RecordBytes) -> str:
    """Returns the properties of one record as text (see properties.py), and nothing else.

    The caller has taken the record from the log and checked it. If its lengths do not add up, it
    has no properties.
    """
    view = memoryview(record)
    at = _BODY_LENGTH_AT
    try:
        ipv6_hosts = view[_SYS_FLAG_LAST_BYTE] & _IPV6_HOSTS
        if ipv6_hosts:
            at = _FIXED_BY_IPV6_HOSTS[ipv6_hosts].size - _BODY_LENGTH.size
        at += _BODY_LENGTH.size + _BODY_LENGTH.unpack_from(view, at)[0]
        if view[_MAGIC_LAST_BYTE] == _MAGIC_V1_LAST_BYTE:
            at += _TOPIC_LENGTH_V1.size + view[at]
        else:
            at += _TOPIC_LENGTH_V2.size + _TOPIC_LENGTH_V2.unpack_from(view, at)[0]
    except (struct.error, IndexError):
        return ""
    return str(view[at + _PROPERTIES_LENGTH.size :], "utf-8", "replace")


def _fixed_part_of_ipv6(
    buffer: RecordBytes, offset: int, sys_flag: int
) -> tuple[tuple[Any, ...], int]:
    """Returns the fields before the body when a host is IPv6, and the offset of the body."""
    layout = _FIXED_BY_IPV6_HOSTS[sys_flag & _IPV6_HOSTS]
    try:
        return layout.unpack_from(buffer, offset), offset + layout.size
    except struct.error:
        raise _cut_short(buffer, offset) from None


def _cut_short(buffer: RecordBytes, offset: int) -> MessageDecodeError:
    return MessageDecodeError(offset, f"cut short: {len(buffer) - offset} bytes")


def _decompressed(body: bytes, sys_flag: int, max_body_bytes: int, offset: int) -> bytes:
    try:
        return decompress(body, sys_flag, max_body_bytes)
    except CompressionError as error:
        raise MessageDecodeError(offset, str(error)) from error


def _why_cut_short(buffer: RecordBytes, offset: int, total_size: int, body_length: int) -> str:
    left_bytes = len(buffer) - offset
    if total_size > left_bytes:
        return f"cut short: {left_bytes} bytes of {total_size}"
    return f"a body of {body_length} bytes does not fit a record of {total_size}"


def _topic_range(
    buffer: RecordBytes, offset: int, magic: int, length_at: int, end: int
) -> tuple[int, int]:
    """Returns the start and end of the topic in a V2 record.

    Raises MessageDecodeError if the magic is another, or if the length of the topic does not fit.
    """
    if magic != record.MAGIC_V2:
        raise MessageDecodeError(offset, f"unknown magic {magic & 0xFFFFFFFF:#010x}")
    topic_at: int = length_at + _TOPIC_LENGTH_V2.size
    if topic_at > end:
        raise MessageDecodeError(offset, "the topic does not fit in the record")
    (length,) = _TOPIC_LENGTH_V2.unpack_from(buffer, length_at)
    return topic_at, topic_at + length if length >= 0 else end


def decode_messages(
    buffer: RecordBytes, *, decompress_body: bool = True, max_body_bytes: int = DEFAULT_MAX_BYTES
) -> list[MessageExt]:
    """Decodes all messages in the body of a pull response. Raises MessageDecodeError.

    The original stops silently at the first invalid record, and so loses the rest.
    """
    messages: list[MessageExt] = []
    offset = 0
    end = len(buffer)
    while offset < end:
        message, offset = decode_message(
            buffer, offset, decompress_body=decompress_body, max_body_bytes=max_body_bytes
        )
        messages.append(message)
    return messages


def encode_message(message: MessageExt, properties: RecordBytes | None = None) -> bytes:
    """Returns the record of a message: V1, or V2 if its topic is longer than 127 bytes.

    Sizes and CRC are computed. The body is written as it is, so it must already be compressed if
    `sys_flag` says so. `properties` are those of the message, if the caller has encoded them
    already. Raises MessageEncodeError if a field is too large or out of its range.
    """
    topic = message.topic.encode("utf-8", "replace")
    if properties is None:
        properties = _encoded_properties(message)
    if len(topic) > MAX_TOPIC_BYTES_V2:
        raise MessageEncodeError(f"topic is longer than {MAX_TOPIC_BYTES_V2} bytes: {len(topic)}")
    is_v1 = len(topic) <= MAX_TOPIC_BYTES_V1
    topic_length = _TOPIC_LENGTH_V1 if is_v1 else _TOPIC_LENGTH_V2
    sys_flag = message.sys_flag & ~_IPV6_HOSTS
    if message.born_host.is_ipv6:
        sys_flag |= MessageSysFlag.BORN_HOST_V6
    if message.store_host.is_ipv6:
        sys_flag |= MessageSysFlag.STORE_HOST_V6
    layout = _FIXED_BY_IPV6_HOSTS[sys_flag & _IPV6_HOSTS]
    tail_size = topic_length.size + len(topic) + _PROPERTIES_LENGTH.size + len(properties)
    try:
        head = layout.pack(
            layout.size + len(message.body) + tail_size,
            record.MAGIC_V1 if is_v1 else record.MAGIC_V2,
            body_crc(message.body),
            message.queue_id,
            message.flag,
            message.queue_offset,
            message.commit_log_offset,
            sys_flag,
            message.born_timestamp,
            message.born_host.ip_bytes,
            message.born_host.port,
            message.store_timestamp,
            message.store_host.ip_bytes,
            message.store_host.port,
            message.reconsume_times,
            message.prepared_transaction_offset,
            len(message.body),
        )
    except struct.error as error:
        raise MessageEncodeError(
            f"a field is out of its range ({error}): {message!r:.400}"
        ) from None
    return b"".join(
        (
            head,
            message.body,
            topic_length.pack(len(topic)),
            topic,
            _PROPERTIES_LENGTH.pack(len(properties)),
            properties,
        )
    )


def _encoded_properties(message: Message) -> bytes:
    properties = encode_properties(message.properties).encode("utf-8", "replace")
    if len(properties) > names.MAX_PROPERTIES_BYTES:
        raise MessageEncodeError(
            f"properties are longer than {names.MAX_PROPERTIES_BYTES} bytes: {len(properties)}"
        )
    return properties


def encode_batch(messages: Iterable[Message]) -> bytes:
    """Returns the body of SEND_BATCH_MESSAGE: flag, body and properties of each message.

    Raises MessageEncodeError if a field is too large or out of its range.
    """
    parts: list[bytes] = []
    for message in messages:
        properties = _encoded_properties(message)
        size = _BATCH_HEAD.size + len(message.body) + _PROPERTIES_LENGTH.size + len(properties)
        try:
            head = _BATCH_HEAD.pack(size, 0, 0, message.flag, len(message.body))
        except struct.error as error:
            raise MessageEncodeError(f"flag is out of its range: {error}") from None
        parts += (head, message.body, _PROPERTIES_LENGTH.pack(len(properties)), properties)
    return b"".join(parts)


def decode_batch(buffer: RecordBytes, topic: str = "") -> list[Message]:
    """Returns the messages of a batch body. They get `topic`, which the entries do not contain.

    As in the original, size, magic and CRC of an entry are ignored, since other clients fill them
    as they like. Raises MessageDecodeError if an entry is cut short.
    """
    return [
        Message(topic, body, flag, decode_properties(str(properties, "utf-8", "replace")))
        for flag, body, properties in _batch_entries(buffer)
    ]


def _batch_entries(buffer: RecordBytes, begin: int = 0) -> Iterator[tuple[int, bytes, RecordBytes]]:
    """Yields flag, body and encoded properties of the messages of a batch, from number `begin` on.

    Only the lengths of the messages before that one are read.
    """
    offset = index = 0
    end = len(buffer)
    while offset < end:
        try:
            _, _, _, flag, body_length = _BATCH_HEAD.unpack_from(buffer, offset)
            body_at = offset + _BATCH_HEAD.size
            body_end = body_at + body_length
            if body_length < 0 or body_end > end:
                raise MessageDecodeError(offset, f"a body of {body_length} bytes does not fit")
            (properties_length,) = _PROPERTIES_LENGTH.unpack_from(buffer, body_end)
        except struct.error:
            raise MessageDecodeError(offset, f"cut short: {end - offset} bytes") from None
        properties_at = body_end + _PROPERTIES_LENGTH.size
        properties_end = properties_at + properties_length
        if properties_length < 0 or properties_end > end:
            raise MessageDecodeError(offset, f"{properties_length} bytes of properties do not fit")
        if index >= begin:
            yield flag, bytes(buffer[body_at:body_end]), buffer[properties_at:properties_end]
        offset = properties_end
        index += 1


def unwrap_inner_batch(message: MessageExt) -> list[MessageExt]:
    """Returns the messages of an inner batch, as consumers see them (MessageDecoder.decodeMessage).

    Body, flag and properties are their own, the queue offsets count up from that of the batch, and
    everything else is the batch's. Raises MessageDecodeError.
    """
    return [
        replace(
            message,
            body=inner.body,
            flag=inner.flag,
            properties=inner.properties,
            queue_offset=message.queue_offset + index,
        )
        for index, inner in enumerate(decode_batch(message.body, message.topic))
    ]


def inner_records(message: MessageExt, begin: int = 0) -> Iterator[bytes]:
    """Yields the messages of an inner batch from number `begin` on, each as a record of its own.

    Raises MessageDecodeError if an entry is cut short.
    """
    for index, (flag, body, properties) in enumerate(_batch_entries(message.body, begin), begin):
        inner = replace(message, body=body, flag=flag, queue_offset=message.queue_offset + index)
        yield encode_message(inner, properties)
