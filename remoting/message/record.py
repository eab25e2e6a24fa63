# SPDX-License-Identifier: Apache-2.0
"""The record: a message as it is stored in the commit log and sent in answers to pulls.

Both are the same bytes. The declaration stands here, in construct, and nowhere else: `RECORD`
parses and builds for reference; hot codecs (`remoting.message.message`, the store, Spark) are
derived from the fixed-size pieces with `remoting.packing`. Declarations only; field names are
those of the original in snake_case, timestamps are milliseconds since the epoch, sizes bytes.

Layout: `RECORD_HEAD`, born host, `RECORD_STORED`, store host, `RECORD_TAIL`, then three byte
strings, each after its length: body (int32, the last field of the tail), topic (int8 in V1,
int16 in V2) and properties (int16). All integers are signed and big-endian, as Java reads them.
A host has 4 or 16 bytes of address, as bits of `sys_flag` say, then the port.

Java: MessageDecoder, MessageExtEncoder, MessageVersion, CommitLog; batch body: MessageDecoder
.encodeMessage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from construct import (
    Bytes,
    Check,
    IfThenElse,
    Int8sb,
    Int16sb,
    Int32sb,
    Int64sb,
    Struct,
    this,
)

MAGIC_V1: Final = -626843481
"""0xDAA320A7: the length of the topic is one byte."""
MAGIC_V2: Final = -626843477
"""0xDAA320AB: the length of the topic is two bytes; written by 5.x for topics over 127 bytes."""
MAGIC_BLANK: Final = -875286124
"""0xCBD43194: no further message follows in this file of the commit log."""

BORN_HOST_IPV6: Final = 0x10
"""Bit of `sys_flag`: the born host has 16 bytes of address (MessageSysFlag.BORNHOST_V6_FLAG)."""
STORE_HOST_IPV6: Final = 0x20
"""Bit of `sys_flag`: the store host has 16 bytes of address (STOREHOSTADDRESS_V6_FLAG)."""

IPV4_HOST = Struct("ip" / Bytes(4), "port" / Int32sb)
IPV6_HOST = Struct("ip" / Bytes(16), "port" / Int32sb)

PLACE = Struct(
    "queue_offset" / Int64sb * "index in the consume queue, not bytes",
    "physical_offset" / Int64sb * "of this record in the commit log",
)
"""Where a message is: all of its record that is not known before it is put."""

RECORD_HEAD = Struct(
    "total_size" / Int32sb * "of the whole record, itself included",
    "magic" / Int32sb * "MAGIC_V1 or MAGIC_V2",
    "body_crc" / Int32sb * "CRC-32 of the body as stored, without the sign bit",
    "queue_id" / Int32sb,
    "flag" / Int32sb * "the user's",
    *PLACE.subcons,
    "sys_flag" / Int32sb * "MessageSysFlag",
    "born_timestamp" / Int64sb * "ms, of the producer's clock",
)

RECORD_STORED = Struct("store_timestamp" / Int64sb * "ms, of the broker's clock")

RECORD_TAIL = Struct(
    "reconsume_times" / Int32sb,
    "prepared_transaction_offset" / Int64sb * "of the half message, in the commit log",
    "body_length" / Int32sb,
)

TOPIC_LENGTH_V1 = Struct("topic_length" / Int8sb)
TOPIC_LENGTH_V2 = Struct("topic_length" / Int16sb)
PROPERTIES_LENGTH = Struct("properties_length" / Int16sb)


def _fixed_part(born_host: Struct, store_host: Struct) -> Struct:
    return Struct(
        *RECORD_HEAD.subcons,
        "born_host" / born_host,
        *RECORD_STORED.subcons,
        "store_host" / store_host,
        *RECORD_TAIL.subcons,
    )


RECORD_FIXED = _fixed_part(IPV4_HOST, IPV4_HOST)
"""Everything before the body when both hosts are IPv4, as in nearly all records (88 bytes)."""
RECORD_FIXED_BORN_IPV6 = _fixed_part(IPV6_HOST, IPV4_HOST)
RECORD_FIXED_STORE_IPV6 = _fixed_part(IPV4_HOST, IPV6_HOST)
RECORD_FIXED_BOTH_IPV6 = _fixed_part(IPV6_HOST, IPV6_HOST)

RECORD = Struct(
    *RECORD_HEAD.subcons,
    "_magic_is_known" / Check(lambda record: record.magic in (MAGIC_V1, MAGIC_V2)),
    "born_host" / IfThenElse(this.sys_flag & BORN_HOST_IPV6, IPV6_HOST, IPV4_HOST),
    *RECORD_STORED.subcons,
    "store_host" / IfThenElse(this.sys_flag & STORE_HOST_IPV6, IPV6_HOST, IPV4_HOST),
    *RECORD_TAIL.subcons,
    "body" / Bytes(this.body_length),
    "topic_length" / IfThenElse(this.magic == MAGIC_V1, Int8sb, Int16sb),
    "topic" / Bytes(this.topic_length) * "UTF-8",
    *PROPERTIES_LENGTH.subcons,
    "properties" / Bytes(this.properties_length) * "UTF-8, see remoting.message.properties",
    "_sizes_add_up" / Check(lambda record: record.total_size == record_size_bytes(record)),
)
"""The whole record.

Parsing succeeds only if the record is consistent: the magic is known, no length is negative, and
the lengths add up to `total_size`. Otherwise it raises construct.ConstructError. See
`build_record`."""

BLANK = Struct(
    "room" / Int32sb * "bytes from the start of this blank to the end of the file",
    "magic" / Int32sb * "MAGIC_BLANK",
)
"""Ends a file of the commit log that had no room for the next record, which is in the next file."""

BATCH_ENTRY_HEAD = Struct(
    "total_size" / Int32sb * "of the whole entry, itself included",
    "magic" / Int32sb * "0",
    "body_crc" / Int32sb * "0",
    "flag" / Int32sb * "the user's",
    "body_length" / Int32sb,
)

BATCH_ENTRY = Struct(
    *BATCH_ENTRY_HEAD.subcons,
    "body" / Bytes(this.body_length),
    *PROPERTIES_LENGTH.subcons,
    "properties" / Bytes(this.properties_length) * "UTF-8",
)
"""One message in the body of SEND_BATCH_MESSAGE, or in an inner batch: entries lie end to end."""


def record_size_bytes(record: Mapping[str, Any]) -> int:
    """Returns the size of the record with these fields.

    Only `magic`, `sys_flag` and the three byte strings are needed.
    """
    born_ipv6 = bool(record["sys_flag"] & BORN_HOST_IPV6)
    store_ipv6 = bool(record["sys_flag"] & STORE_HOST_IPV6)
    topic_length = TOPIC_LENGTH_V1 if record["magic"] == MAGIC_V1 else TOPIC_LENGTH_V2
    return int(
        RECORD_FIXED.sizeof()
        + (born_ipv6 + store_ipv6) * (IPV6_HOST.sizeof() - IPV4_HOST.sizeof())
        + topic_length.sizeof()
        + PROPERTIES_LENGTH.sizeof()
        + len(record["body"])
        + len(record["topic"])
        + len(record["properties"])
    )


def build_record(fields: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a record; `total_size` and the lengths are filled in.

    It is made for reference, not for speed. Raises construct.ConstructError if a field is missing
    or does not fit its place.
    """
    sizes = {
        "total_size": record_size_bytes(fields),
        "body_length": len(fields["body"]),
        "topic_length": len(fields["topic"]),
        "properties_length": len(fields["properties"]),
    }
    return bytes(RECORD.build({**fields, **sizes}))


def build_batch_entry(fields: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a batch entry made of `flag`, `body` and `properties`, for reference."""
    head_bytes = BATCH_ENTRY_HEAD.sizeof() + PROPERTIES_LENGTH.sizeof()
    sizes = {
        "total_size": head_bytes + len(fields["body"]) + len(fields["properties"]),
        "magic": 0,
        "body_crc": 0,
        "body_length": len(fields["body"]),
        "properties_length": len(fields["properties"]),
    }
    return bytes(BATCH_ENTRY.build({**fields, **sizes}))
