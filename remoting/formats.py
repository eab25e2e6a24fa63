# SPDX-License-Identifier: Apache-2.0
"""The declared binary formats of the wire: frames, their headers, registrations, PROXY headers.

These are for reference, for inspection and for tests, which hold the codecs equal to them; codecs
take their layouts from the fixed parts by `remoting.packing`. What messages consist of is declared
in `remoting.message.record`. Java: NettyDecoder, RocketMQSerializable, RegisterBrokerBody; Netty's
HAProxyMessageDecoder.
"""

from __future__ import annotations

from typing import Final

from construct import (
    Bytes,
    FixedSized,
    GreedyBytes,
    GreedyRange,
    Int8sb,
    Int8ub,
    Int16sb,
    Int16ub,
    Int24ub,
    Int32sb,
    Int32ub,
    Prefixed,
    PrefixedArray,
    Rebuild,
    Struct,
    this,
)

_MARK_BYTES = 4

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""The largest frame, with its length word (com.rocketmq.remoting.frameMaxLength)."""
MAX_BODY_BYTES: Final = MAX_FRAME_BYTES - 256 * 1024
"""The longest body of an answer whose length the server can choose: there is room for a header."""

FRAME_PREFIX = Struct(
    "length" / Int32sb * "of the frame, without these four bytes",
    "mark" / Int32ub * "serialize type in the highest byte, length of the header in the others",
)
"""The eight bytes before a header, read as two numbers."""

FRAME = Struct(
    "length" / Rebuild(Int32sb, lambda it: _MARK_BYTES + len(it.header) + len(it.body)),
    "serialize_type" / Int8ub,
    "header" / Prefixed(Int24ub, GreedyBytes),
    "body" / Bytes(lambda it: it.length - _MARK_BYTES - len(it.header)),
)

BINARY_HEAD = Struct(
    "code" / Int16sb,
    "language" / Int8sb,
    "version" / Int16sb,
    "opaque" / Int32sb,
    "flag" / Int32sb,
    "remark_length" / Int32sb,
)
BINARY_FIELDS_LENGTH = Struct("fields_length" / Int32sb * "of all fields, in bytes")
BINARY_NAME_LENGTH = Struct("name_length" / Int16sb)
BINARY_VALUE_LENGTH = Struct("value_length" / Int32sb)
BINARY_FIELD = Struct(
    *BINARY_NAME_LENGTH.subcons,
    "name" / Bytes(this.name_length) * "UTF-8",
    *BINARY_VALUE_LENGTH.subcons,
    "value" / Bytes(this.value_length) * "UTF-8",
)
BINARY_HEADER = Struct(
    *BINARY_HEAD.subcons,
    "remark" / Bytes(this.remark_length) * "UTF-8",
    *BINARY_FIELDS_LENGTH.subcons,
    "fields" / FixedSized(this.fields_length, GreedyRange(BINARY_FIELD)),
)
"""A header of serialize type ROCKETMQ."""

REGISTRATION_LENGTH = Struct("length" / Int32sb * "a number of bytes, or of the parts that follow")
_PART = Prefixed(Int32sb, GreedyBytes)
REGISTRATION = Struct(
    "data_version" / _PART * "JSON",
    "topics" / PrefixedArray(Int32sb, _PART) * "texts, see TopicConfig.to_text",
    "filter_servers" / _PART * "JSON",
    "mappings" / PrefixedArray(Int32sb, _PART) * "JSON; of static topics, unknown to 4.9",
)
"""The content of the body of a compressed registration, after inflating it."""

PROXY_HEAD = Struct(
    "signature" / Bytes(12),
    "command" / Int8ub * "version 2 in the high four bits, 0 (LOCAL) or 1 (PROXY) in the others",
    "family" / Int8ub * "0x11 and 0x12 of IPv4, 0x21 and 0x22 of IPv6; else there is no address",
    "length" / Int16ub * "of what follows, in bytes: addresses, then values that nobody needs here",
)
"""The head of a header of the PROXY protocol, version 2."""
PROXY_IPV4 = Struct(
    "source" / Bytes(4), "destination" / Bytes(4), "source_port" / Int16ub, "port" / Int16ub
)
PROXY_IPV6 = Struct(
    "source" / Bytes(16), "destination" / Bytes(16), "source_port" / Int16ub, "port" / Int16ub
)
