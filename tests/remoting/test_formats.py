# SPDX-License-Identifier: Apache-2.0
"""The codecs of the wire are held equal to the formats as they are declared."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting import formats
from txrocketmq.remoting.codes import LanguageCode, MQVersion, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.message.ids import pack_host
from txrocketmq.remoting.message.record import IPV4_HOST, IPV6_HOST
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.serialize import rocketmq

INTS = st.integers(-(1 << 31), (1 << 31) - 1)
TEXTS = st.text(max_size=40)
NAMES = st.text(min_size=1, max_size=20)
COMMANDS = st.builds(
    RemotingCommand,
    code=st.integers(0, rocketmq.MAX_CODE),
    ext_fields=st.dictionaries(NAMES, st.text(min_size=1, max_size=40), min_size=1, max_size=5),
    body=st.binary(max_size=60),
    flag=INTS,
    opaque=INTS,
    remark=st.none() | st.text(min_size=1, max_size=40),
    language=st.sampled_from([language.name for language in LanguageCode]),
    version=st.integers(0, 600),
    serialize_type=st.sampled_from(list(SerializeType)),
)


@given(COMMANDS)
def test_frames_are_as_declared(command: RemotingCommand) -> None:
    data = b"".join(map(bytes, encode_frame(command)))
    declared = formats.FRAME.parse(data)
    assert declared.length == len(data) - 4
    assert (declared.serialize_type, declared.body) == (command.serialize_type, command.body)
    built = formats.FRAME.build(
        {"serialize_type": declared.serialize_type, "header": declared.header, "body": command.body}
    )
    assert built == data
    (decoded,) = FrameDecoder().receive(built)
    assert (decoded.ext_fields, decoded.body) == (command.ext_fields, command.body)
    prefix = formats.FRAME_PREFIX.parse(data)
    assert prefix.mark == declared.serialize_type << 24 | len(declared.header)


@given(COMMANDS)
def test_binary_headers_are_as_declared(command: RemotingCommand) -> None:
    header = rocketmq.encode_header(command)
    declared = formats.BINARY_HEADER.parse(header)
    assert formats.BINARY_HEADER.build(declared) == header
    assert (declared.code, declared.opaque, declared.flag, declared.version) == (
        command.code, command.opaque, command.flag, command.version,
    )  # fmt: skip
    assert declared.remark.decode() == (command.remark or "")
    fields = {each.name.decode(): each.value.decode() for each in declared.fields}
    assert fields == command.ext_fields == rocketmq.decode_header(header).ext_fields


@pytest.mark.parametrize("mappings", [0, 2])
@given(st.lists(NAMES, unique=True, max_size=4), st.lists(TEXTS, max_size=3), INTS)
def test_compressed_registrations_are_as_declared(
    mappings: int, topics: list[str], servers: list[str], counter: int
) -> None:
    names = [f"T{index}" for index, _ in enumerate(topics)]
    infos = {name: TopicQueueMappingInfo(topic=name) for name in names[:mappings]}
    body = RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
            topic_config_table={name: TopicConfig(topic_name=name) for name in names},
            topic_queue_mapping_info_map=infos,
            data_version=DataVersion(counter=counter),
        ),
        filter_server_list=servers,
    )
    data = body.encode_compressed()
    declared = formats.REGISTRATION.parse(zlib.decompress(data))
    assert DataVersion.decode(declared.data_version).counter == counter
    assert [TopicConfig.from_text(each.decode()).topic_name for each in declared.topics] == names
    assert len(declared.mappings) == len(infos)
    again = zlib.compress(formats.REGISTRATION.build(declared))
    decoded = finished(RegisterBrokerBody.reading_compressed(again, MQVersion.V5_4_0))
    assert list(decoded.filter_server_list) == servers


@given(
    st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), st.integers(0, 65535)
)
def test_hosts_are_as_declared(ip: bytes, port: int) -> None:
    declared = IPV4_HOST if len(ip) == 4 else IPV6_HOST
    assert pack_host(ip, port) == declared.build({"ip": ip, "port": port})
