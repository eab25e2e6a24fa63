# SPDX-License-Identifier: Apache-2.0
"""The body of REGISTER_BROKER, in all its forms.

JSON (RegisterBrokerBody), or a zlib stream of lengths and texts: data version, topics, filter
servers and, since 5.0, queue mappings. A CRC guards either. Counterpart of RegisterBrokerBody and of
DefaultRequestProcessor.extractRegisterBrokerBodyFromRequest.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.errors import HeaderError, ResponseError
from txrocketmq.remoting.protocol.body.topic import DataVersion, TopicConfig
from txrocketmq.remoting.serialize.json import decode_body

MAX_INFLATED_BYTES = 256 * 1024 * 1024
"""Largest body after inflation: millions of topics."""
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class RegistrationBody:
    """What a broker's registration carries beside its header."""

    topics: dict[str, TopicConfig]
    data_version: DataVersion
    filter_servers: list[str] = field(default_factory=list)
    queue_mappings: dict[str, Any] = field(default_factory=dict)


def check_crc(body: bytes, crc32: int) -> None:
    """Raises ResponseError when a CRC is given and is another."""
    if crc32 and zlib.crc32(body) & 0x7FFFFFFF != crc32:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "crc32 not match")


def decode_registration(body: bytes, version: int, *, compressed: bool) -> RegistrationBody:
    """The registration; an empty body means no topics. Raises ResponseError for a broken one."""
    if not body:
        return RegistrationBody({}, DataVersion())
    try:
        return _compressed(body, version) if compressed else _json(body)
    except (HeaderError, ValueError, TypeError, AttributeError, zlib.error, struct.error) as error:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, f"the registration cannot be read: {error}"
        ) from None


def _json(body: bytes) -> RegistrationBody:
    value = decode_body(body)
    wrapper = value.get("topicConfigSerializeWrapper") or {}
    table = wrapper.get("topicConfigTable") or {}
    return RegistrationBody(
        {name: TopicConfig.from_json(topic) for name, topic in table.items()},
        DataVersion.from_json(wrapper.get("dataVersion") or {}),
        [str(server) for server in value.get("filterServerList") or ()],
        dict(wrapper.get("topicQueueMappingInfoMap") or {}),
    )


def _compressed(body: bytes, version: int) -> RegistrationBody:
    inflater = zlib.decompressobj()
    data = inflater.decompress(body, MAX_INFLATED_BYTES)
    if inflater.unconsumed_tail or not inflater.eof:
        raise ValueError("the stream is cut short or too long")
    at = 0

    def number() -> int:
        nonlocal at
        (value,) = _LENGTH.unpack_from(data, at)
        at += 4
        if not 0 <= value <= len(data):
            raise ValueError(f"length {value} at {at - 4} is out of bounds")
        return int(value)

    def text() -> bytes:
        nonlocal at
        size = number()
        at += size
        if at > len(data):
            raise ValueError("a text reaches beyond the end")
        return data[at - size : at]

    data_version = DataVersion.decode(text())
    topics: dict[str, TopicConfig] = {}
    for _ in range(number()):
        topic = TopicConfig.from_text(text().decode())
        topics[topic.topic_name] = topic
    filter_servers = decode_body(text()) if at < len(data) else []
    mappings: dict[str, Any] = {}
    if version >= MQVersion.V5_0_0 and at < len(data):
        for _ in range(number()):
            mapping = decode_body(text())
            mappings[mapping["topic"]] = mapping
    return RegistrationBody(topics, data_version, list(filter_servers or ()), mappings)
