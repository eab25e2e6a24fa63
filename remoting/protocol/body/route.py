# SPDX-License-Identifier: Apache-2.0
"""Registrations of brokers, and the answers of name servers: topics, brokers, routes.

Java: remoting.protocol.route, remoting.protocol.body.RegisterBrokerBody and its parts, TopicConfig.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Mapping, Sequence
from typing import Final, Self

from txrocketmq.remoting.codes import MQVersion
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.formats import REGISTRATION_LENGTH
from txrocketmq.remoting.primitives.java_numbers import integer
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.protocol.body.base import Body, BodyError, body, member
from txrocketmq.remoting.protocol.body.static_topic import (
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)
from txrocketmq.remoting.serialize.json import decode_body, encode_body, encode_standard_body

MAX_INFLATED_BYTES: Final = 64 * 1024 * 1024
"""Largest size of a registration after decompression."""

_INFLATED_AT_ONCE: Final = 256 * 1024
_MOST_OF_A_PART: Final = 16 * 1024
"""How many bytes a topic, a mapping or a list of filter servers may have."""
_LENGTH: Final = fixed(REGISTRATION_LENGTH).struct
_READ_WRITE: Final = 6
_FILTER_TYPES: Final = ("SINGLE_TAG", "MULTI_TAG")


@body("org.apache.rocketmq.remoting.protocol.DataVersion")
class DataVersion(Body):
    """The version of a table, which grows with each change.

    Two tables are the same if all three fields are equal. `timestamp` is the time of the last
    change in ms. `state_version` is unknown to 4.9.
    """

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    def next(self, now_ms: int, state_version: int = 0) -> DataVersion:
        """Returns the version after a change at `now_ms`."""
        return DataVersion(state_version=state_version, timestamp=now_ms, counter=self.counter + 1)


@body("org.apache.rocketmq.common.TopicConfig")
class TopicConfig(Body):
    """A topic's configuration at a broker.

    The bits of `perm` are those of PermName, and the bits of `topic_sys_flag` those of
    TopicSysFlag. The keys of `attributes` (5.x) do not have the "+" that requests put before them.
    """

    topic_name: str | None = None
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = _READ_WRITE
    topic_filter_type: str = member(names=_FILTER_TYPES, default="SINGLE_TAG")
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = member(default_factory=dict)

    def to_text(self) -> str:
        """Returns the text that a compressed registration contains.

        It is "topic read write perm filterType [attributes]". Without attributes it is the form of
        4.9, which understands no other.
        """
        text = (
            f"{self.topic_name} {self.read_queue_nums} {self.write_queue_nums} {self.perm}"
            f" {self.topic_filter_type}"
        )
        return f"{text} {encode_body(self.attributes).decode()}" if self.attributes else text

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Returns the configuration that a text of `to_text` describes.

        Attributes that are not JSON are left out. Raises BodyError if the text has another form.
        """
        parts = text.split(" ", 5)
        try:
            name, read, write, perm, filter_type = parts[:5]
            numbers = (integer(read), integer(write), integer(perm))
        except ValueError:
            raise BodyError(f"{text!r:.200} is not a topic configuration") from None
        if filter_type not in _FILTER_TYPES:
            raise BodyError(f"{filter_type!r:.80} is not a filter type of a topic")
        return cls(
            topic_name=name,
            read_queue_nums=numbers[0],
            write_queue_nums=numbers[1],
            perm=numbers[2],
            topic_filter_type=filter_type,
            attributes=_attributes(parts[5]) if len(parts) > 5 else {},
        )


def _attributes(text: str) -> dict[str, str]:
    try:
        found = decode_body(text.encode())
    except HeaderError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): str(value) for name, value in found.items() if value is not None}


@body("org.apache.rocketmq.remoting.protocol.statictopic.TopicConfigAndQueueMapping")
class TopicConfigAndQueueMapping(TopicConfig):
    """A topic's configuration and, if it is a static topic, where its queues are (5.x)."""

    mapping_detail: TopicQueueMappingDetail | None = None


@body("org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper")
class TopicConfigSerializeWrapper(Body):
    """The configurations of all topics of a broker."""

    topic_config_table: Mapping[str, TopicConfig] = member(default_factory=dict)
    data_version: DataVersion = DataVersion()


@body("org.apache.rocketmq.remoting.protocol.body.TopicConfigAndMappingSerializeWrapper")
class TopicConfigAndMappingSerializeWrapper(TopicConfigSerializeWrapper):
    """All topics of a broker, and the mappings of static topics (5.x; none from 4.9)."""

    topic_queue_mapping_info_map: Mapping[str, TopicQueueMappingInfo] = member(default_factory=dict)
    topic_queue_mapping_detail_map: Mapping[str, TopicQueueMappingDetail] = member(
        default_factory=dict
    )
    mapping_data_version: DataVersion = DataVersion()


@body("org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody")
class RegisterBrokerBody(Body):
    """A broker's registration at a name server.

    `body_crc32` of the request's header is 0, or `crc32(body) & 0x7FFFFFFF` of the bytes as they
    travel (`remoting.message.message.body_crc`).
    """

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper = (
        TopicConfigAndMappingSerializeWrapper()
    )
    filter_server_list: Sequence[str] = ()

    def encode_compressed(self) -> bytes:
        """Returns the compressed binary form, for a header with `compressed`.

        Its format is REGISTRATION of `remoting.formats`, which name servers of 4.9 and 5.x read.
        """
        wrapper = self.topic_config_serialize_wrapper
        mappings = wrapper.topic_queue_mapping_info_map.values()
        topics = wrapper.topic_config_table.values()
        parts = [_with_length(wrapper.data_version.encode()), _LENGTH.pack(len(topics))]
        parts += (_with_length(topic.to_text().encode("utf-8", "replace")) for topic in topics)
        parts += (_with_length(encode_body(self.filter_server_list)), _LENGTH.pack(len(mappings)))
        parts += (_with_length(mapping.encode()) for mapping in mappings)
        return zlib.compress(b"".join(parts), 9)

    @classmethod
    def reading_compressed(cls, data: bytes, version: int) -> Generator[None, None, Self]:
        """Returns the registration in a compressed binary form, which is read in steps.

        `version` is that of the command: 4.9 writes no mappings. Raises JsonError or BodyError if
        the bytes are no registration.
        """
        reader = _Parts((yield from _inflated(data)))
        data_version = DataVersion.decode(reader.short_part())
        topics: dict[str, TopicConfig] = {}
        for _ in range(reader.count()):
            topic = TopicConfig.from_text(reader.text())
            topics[str(topic.topic_name)] = topic
            yield
        filter_servers = decode_body(reader.short_part())
        mappings: dict[str, TopicQueueMappingInfo] = {}
        for _ in range(reader.count() if version >= MQVersion.V5_0_0 else 0):
            mapping = TopicQueueMappingInfo.decode(reader.short_part())
            mappings[str(mapping.topic)] = mapping
            yield
        wrapper = TopicConfigAndMappingSerializeWrapper(
            topic_config_table=topics,
            topic_queue_mapping_info_map=mappings,
            data_version=data_version,
        )
        rest = cls.from_json({"filterServerList": filter_servers})
        return cls(
            topic_config_serialize_wrapper=wrapper, filter_server_list=rest.filter_server_list
        )


def _with_length(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _inflated(data: bytes) -> Generator[None, None, bytes]:
    inflater = zlib.decompressobj()
    pieces: list[bytes] = []
    left_bytes = MAX_INFLATED_BYTES
    try:
        while data and not inflater.eof:
            if not left_bytes:
                raise BodyError(
                    f"the compressed registration is longer than {MAX_INFLATED_BYTES} bytes"
                )
            pieces.append(inflater.decompress(data, min(left_bytes, _INFLATED_AT_ONCE)))
            left_bytes -= len(pieces[-1])
            data = inflater.unconsumed_tail
            yield
    except zlib.error as error:
        raise BodyError(f"the registration is not a zlib stream: {error}") from None
    if not inflater.eof:
        raise BodyError("the compressed registration has no end")
    return b"".join(pieces)


class _Parts:
    """Reads the parts of a compressed registration: numbers, and bytes after their length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def count(self) -> int:
        end = self._at + _LENGTH.size
        if end > len(self._data):
            raise BodyError(f"the registration ends at byte {len(self._data)}")
        (value,) = _LENGTH.unpack_from(self._data, self._at)
        self._at = end
        return int(value)

    def part(self) -> bytes:
        length = self.count()
        start, self._at = self._at, self._at + length
        if length < 0 or self._at > len(self._data):
            raise BodyError(f"{length} bytes at byte {start} do not fit the registration")
        return self._data[start : self._at]

    def short_part(self) -> bytes:
        """A part that is not read in steps."""
        part = self.part()
        if len(part) > _MOST_OF_A_PART:
            raise BodyError(f"a part of the registration has {len(part)} bytes")
        return part

    def text(self) -> str:
        return self.short_part().decode("utf-8", "replace")


@body("org.apache.rocketmq.remoting.protocol.body.KVTable")
class KVTable(Body):
    """A table of names and values."""

    table: Mapping[str, str] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.route.QueueData")
class QueueData(Body):
    """How many queues a topic has at the brokers of one name; the bits of `perm` are PermName's."""

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


@body("org.apache.rocketmq.remoting.protocol.route.BrokerData")
class BrokerData(Body):
    """The addresses of the brokers of one name, by broker id; id 0 is the master."""

    cluster: str | None = None
    broker_name: str
    broker_addrs: Mapping[int, str] = member(default_factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False


@body("org.apache.rocketmq.remoting.protocol.route.TopicRouteData")
class TopicRouteData(Body):
    """The route of a topic: which brokers have it, and with how many queues.

    `order_topic_conf` is "broker:queues;broker:queues" for an ordered topic.
    """

    order_topic_conf: str | None = None
    queue_datas: Sequence[QueueData] = ()
    broker_datas: Sequence[BrokerData] = ()
    filter_server_table: Mapping[str, Sequence[str]] = member(default_factory=dict)
    topic_queue_mapping_by_broker: Mapping[str, TopicQueueMappingInfo] | None = None

    def encode_standard(self) -> bytes:
        """Returns the route as strict JSON.

        It is for clients of 4.9.4 and later, and for others that ask for strict JSON.
        """
        return encode_standard_body(self.to_json())


@body("org.apache.rocketmq.remoting.protocol.body.ClusterInfo")
class ClusterInfo(Body):
    """All brokers by broker name, and the broker names by cluster."""

    broker_addr_table: Mapping[str, BrokerData] = member(default_factory=dict)
    cluster_addr_table: Mapping[str, Sequence[str]] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.BrokerMemberGroup")
class BrokerMemberGroup(Body):
    """All brokers of one name, by broker id (5.x)."""

    cluster: str | None = None
    broker_name: str | None = None
    broker_addrs: Mapping[int, str] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.GetBrokerMemberGroupResponseBody")
class GetBrokerMemberGroupResponseBody(Body):
    """The answer to GET_BROKER_MEMBER_GROUP."""

    broker_member_group: BrokerMemberGroup | None = None
