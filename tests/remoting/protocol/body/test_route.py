# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.remoting.protocol.conftest import original_bodies
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting.codes import MQVersion
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol.body import route
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.body.route import (
    BrokerData,
    DataVersion,
    QueueData,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo

VERSIONS = {"4.9.7": MQVersion.V4_9_4, "5.4.0": MQVersion.V5_0_0}

NAMES = st.text("abcXYZ019_-%|é中", min_size=1, max_size=12)
INTS = st.integers(0, 2**31 - 1)
TOPICS = st.builds(
    TopicConfig,
    topic_name=NAMES,
    read_queue_nums=INTS,
    write_queue_nums=INTS,
    perm=st.integers(0, 7),
    topic_filter_type=st.sampled_from(["SINGLE_TAG", "MULTI_TAG"]),
    attributes=st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"]))),
)


def wrapper_of(
    topics: list[TopicConfig], mapped: list[str], version: int
) -> TopicConfigAndMappingSerializeWrapper:
    return TopicConfigAndMappingSerializeWrapper(
        topic_config_table={str(topic.topic_name): topic for topic in topics},
        topic_queue_mapping_info_map={
            name: TopicQueueMappingInfo(topic=name, total_queues=3) for name in mapped
        },
        data_version=DataVersion(counter=version, timestamp=1700000000000),
    )


BODIES = st.builds(
    lambda topics, mapped, version, servers: RegisterBrokerBody(
        topic_config_serialize_wrapper=wrapper_of(topics, mapped, version),
        filter_server_list=tuple(servers),
    ),
    st.lists(TOPICS, max_size=4),
    st.lists(NAMES, max_size=2),
    INTS,
    st.lists(NAMES, max_size=2),
)


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(route)


# routes


def test_standard_route_is_as_the_original_writes_it() -> None:
    """Printed by 5.4.0 for a route with these parts."""
    data = TopicRouteData(
        queue_datas=[QueueData(broker_name="bé/<中😀", read_queue_nums=4)],
        broker_datas=[
            BrokerData(
                cluster="c", broker_name="b", broker_addrs={17: "z", 2: "y", 0: "x", 10**10: "l"}
            )
        ],
        filter_server_table={"zz": (), "aa": ()},
    )
    assert data.encode_standard().decode() == (
        '{"brokerDatas":[{"brokerAddrs":{"0":"x","2":"y","17":"z","10000000000":"l"},'
        '"brokerName":"b","cluster":"c","enableActingMaster":false}],'
        '"filterServerTable":{"aa":[],"zz":[]},"queueDatas":[{"brokerName":"bé/<中😀","perm":0,'
        '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":0}]}'
    )
    assert data.encode().decode() == (
        '{"brokerDatas":[{"brokerAddrs":{17:"z",2:"y",0:"x",10000000000:"l"},'
        '"brokerName":"b","cluster":"c","enableActingMaster":false}],'
        '"filterServerTable":{"zz":[],"aa":[]},"queueDatas":[{"brokerName":"bé/<中😀","perm":0,'
        '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":0}]}'
    )
    assert TopicRouteData.decode(data.encode()) == TopicRouteData.decode(data.encode_standard())


def test_route_without_a_broker_name_is_refused() -> None:
    with pytest.raises(BodyError) as caught:
        TopicRouteData.decode(b'{"queueDatas":[{"brokerName":"b"},{"perm":6}]}')
    assert str(caught.value) == "TopicRouteData.queueDatas[1].brokerName: is missing"


def test_route_with_null_members_has_defaults() -> None:
    data = TopicRouteData.decode(b'{"queueDatas":null,"brokerDatas":null,"filterServerTable":null}')
    assert data == TopicRouteData()


# versions


def test_version_grows() -> None:
    first = DataVersion(counter=3, timestamp=5, state_version=1)
    assert first.next(9) == DataVersion(counter=4, timestamp=9, state_version=0)
    assert first.next(9, state_version=2).state_version == 2


# topics as text


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        (TopicConfig(topic_name="t"), "t 16 16 6 SINGLE_TAG"),
        (
            TopicConfig(
                topic_name="t", read_queue_nums=1, write_queue_nums=2, perm=4,
                topic_filter_type="MULTI_TAG", attributes={"a b": "c d"},
            ),
            't 1 2 4 MULTI_TAG {"a b":"c d"}',
        ),
    ],
)  # fmt: skip
def test_text_of_a_topic(topic: TopicConfig, text: str) -> None:
    assert topic.to_text() == text
    assert TopicConfig.from_text(text) == topic


@given(TOPICS)
def test_text_round_trip(topic: TopicConfig) -> None:
    assert TopicConfig.from_text(topic.to_text()) == topic


@pytest.mark.parametrize("attributes", ["", "{}", "{broken", "[]", "5", "null"])
def test_attributes_that_are_none_are_left_out(attributes: str) -> None:
    topic = TopicConfig.from_text(f"t 1 2 6 SINGLE_TAG {attributes}")
    assert (topic.topic_name, topic.attributes) == ("t", {})


@pytest.mark.parametrize(
    "text", ["", "t", "t 1 2 6", "t x 2 6 SINGLE_TAG", "t 1 2 6 OTHER", "  1 2 6 SINGLE_TAG"]
)
def test_what_is_no_text_of_a_topic(text: str) -> None:
    with pytest.raises(BodyError):
        TopicConfig.from_text(text)


# registrations


def test_compressed_registration_of_the_original(golden_version: str) -> None:
    data = base64.b64decode(original_bodies(golden_version, "compressed")["RegisterBrokerBody"])
    filled = original_bodies(golden_version, "filled")["RegisterBrokerBody"]
    plain = RegisterBrokerBody.decode(filled.encode()).topic_config_serialize_wrapper
    body = finished(RegisterBrokerBody.reading_compressed(data, VERSIONS[golden_version]))
    assert body.filter_server_list == ("filterServerListItem",)
    wrapper = body.topic_config_serialize_wrapper
    assert wrapper.data_version == plain.data_version
    assert wrapper.topic_queue_mapping_info_map == {
        str(mapping.topic): mapping for mapping in plain.topic_queue_mapping_info_map.values()
    }
    (topic,) = wrapper.topic_config_table.values()
    (same,) = plain.topic_config_table.values()
    # Neither order nor system flag is in this form.
    assert topic == dataclasses.replace(same, order=False, topic_sys_flag=0)


@given(BODIES)
def test_compressed_round_trip(body: RegisterBrokerBody) -> None:
    data = body.encode_compressed()
    assert finished(RegisterBrokerBody.reading_compressed(data, MQVersion.V5_0_0)) == body
    assert RegisterBrokerBody.decode(body.encode()) == body


def test_mappings_are_read_of_5_x_only() -> None:
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper_of([], ["m"], 1))
    data = body.encode_compressed()
    old = finished(RegisterBrokerBody.reading_compressed(data, MQVersion.V4_9_4))
    assert old.topic_config_serialize_wrapper.topic_queue_mapping_info_map == {}
    new = finished(RegisterBrokerBody.reading_compressed(data, MQVersion.V5_0_0))
    assert list(new.topic_config_serialize_wrapper.topic_queue_mapping_info_map) == ["m"]


def test_registration_truncated_anywhere_is_an_error() -> None:
    topics = [TopicConfig(topic_name="t", attributes={"a": "b"})]
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper_of(topics, ["m"], 1))
    data = body.encode_compressed()
    plain = zlib.decompress(data)
    for length in range(len(data)):
        with pytest.raises(BodyError, match=r"zlib|has no end"):
            finished(RegisterBrokerBody.reading_compressed(data[:length], MQVersion.V5_0_0))
    for length in range(len(plain)):
        with pytest.raises(HeaderError):
            finished(
                RegisterBrokerBody.reading_compressed(
                    zlib.compress(plain[:length]), MQVersion.V5_0_0
                )
            )


@given(BODIES, st.data())
def test_mutated_registrations_are_bodies_or_header_errors(
    body: RegisterBrokerBody, data: st.DataObject
) -> None:
    plain = bytearray(zlib.decompress(body.encode_compressed()))
    for _ in range(data.draw(st.integers(1, 3))):
        plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = finished(
            RegisterBrokerBody.reading_compressed(zlib.compress(plain), MQVersion.V5_0_0)
        )
    except HeaderError:
        return
    assert RegisterBrokerBody.decode(read.encode()) == read


def test_a_registration_that_grows_beyond_the_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route, "MAX_INFLATED_BYTES", 1000)
    with pytest.raises(BodyError, match="is longer than 1000 bytes"):
        finished(
            RegisterBrokerBody.reading_compressed(zlib.compress(bytes(1001)), MQVersion.V5_0_0)
        )


def test_the_checksum_of_a_registration_has_no_sign() -> None:
    assert body_crc(b"\0" * 4) == zlib.crc32(b"\0" * 4) & 0x7FFFFFFF
