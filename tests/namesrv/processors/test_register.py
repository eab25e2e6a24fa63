# SPDX-License-Identifier: Apache-2.0
"""What brokers say, from the bytes of its body on."""

from __future__ import annotations

import dataclasses

import pytest

from tests.fakes import NOW_MS, FakePeer, refused
from tests.namesrv.conftest import MakeNames, Names, topics
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    KVTable,
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
)
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import GetBrokerMemberGroupRequestHeader
from txrocketmq.remoting.protocol.route import (
    BrokerHeartbeatRequestHeader,
    QueryDataVersionRequestHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)

VERSION = DataVersion(timestamp=7, counter=3)
ADDRESS = "10.0.0.1:10911"
BODY = RegisterBrokerBody(
    topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
        topic_config_table=topics("T1", "T2"), data_version=VERSION
    )
)


def header(
    broker_id: int = 0, address: str = ADDRESS, **more: object
) -> RegisterBrokerRequestHeader:
    return RegisterBrokerRequestHeader(
        broker_name="broker-a",
        broker_addr=address,
        cluster_name="c1",
        ha_server_addr=f"{address}-ha",
        broker_id=broker_id,
        **more,  # type: ignore[arg-type]
    )


def query(names: Names, version: DataVersion, now_ms: int = NOW_MS) -> tuple[bool, bytes]:
    asked = QueryDataVersionRequestHeader(
        broker_name="broker-a", broker_addr=ADDRESS, cluster_name="c1", broker_id=0
    )
    reply = names.ask(route.QUERY_DATA_VERSION, asked, version.encode(), now_ms=now_ms)
    return reply.header.changed, reply.body


def test_a_registration_is_taken(names: Names) -> None:
    reply = names.ask(route.REGISTER_BROKER, header(), BODY.encode())
    assert reply.header == RegisterBrokerResponseHeader()
    assert reply.body == b""
    assert names.table.route("T2") is not None
    assert names.changes == 1


def test_a_compressed_registration_is_taken(names: Names) -> None:
    data = BODY.encode_compressed()
    it = header(compressed=True, body_crc32=body_crc(data))
    names.ask(route.REGISTER_BROKER, it, data, version=MQVersion.V4_9_7)
    assert names.table.route("T2") is not None
    assert names.table.data_version("c1", ADDRESS) == VERSION


def test_a_registration_of_before_3_0_11_is_only_topics(names: Names) -> None:
    data = TopicConfigSerializeWrapper(topic_config_table=topics("T1", "T2")).encode()
    names.ask(route.REGISTER_BROKER, header(), data, version=MQVersion.V3_0_7_SNAPSHOT)
    assert names.table.route("T2") is not None


def test_a_registration_without_body_is_a_broker_without_topics(names: Names) -> None:
    names.ask(route.REGISTER_BROKER, header())
    assert names.table.data_version("c1", ADDRESS) == DataVersion()
    assert names.table.topics().topic_list == ()


def test_a_wrong_crc_is_refused(names: Names) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, "crc32 not match"):
        names.ask(route.REGISTER_BROKER, header(body_crc32=1), BODY.encode())
    assert names.table.route("T1") is None


def test_an_incremental_registration_of_an_unknown_broker_is_refused(names: Names) -> None:
    body = RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
            topic_config_table=topics("T1")
        )
    )
    with refused(ResponseCode.SYSTEM_ERROR, "register broker failed"):
        names.ask(route.REGISTER_BROKER, header(), body.encode())


@pytest.mark.parametrize("body", [b"{", b"[1]", b'{"topicConfigSerializeWrapper":3}'])
def test_a_body_that_is_no_registration_is_an_error_of_the_header(
    names: Names, body: bytes
) -> None:
    with pytest.raises(HeaderError):
        names.ask(route.REGISTER_BROKER, header(), body)


@pytest.mark.parametrize(("returned", "body"), [("true", True), ("false", False)])
def test_the_answer_carries_the_order_of_topics(
    make_names: MakeNames, returned: str, body: bool
) -> None:
    names = make_names(returnOrderTopicConfigToBroker=returned)
    names.kv.put(ORDER_TOPIC_CONFIG, "T1", "broker-a:4")
    reply = names.ask(route.REGISTER_BROKER, header(), BODY.encode())
    wanted = KVTable(table={"T1": "broker-a:4"}).encode() if body else b""
    assert reply.body == wanted


def test_a_slave_is_told_its_master(names: Names) -> None:
    names.ask(route.REGISTER_BROKER, header(), BODY.encode())
    reply = names.ask(route.REGISTER_BROKER, header(1, "10.0.0.2:10911"), BODY.encode())
    assert reply.header == RegisterBrokerResponseHeader(
        master_addr=ADDRESS, ha_server_addr=f"{ADDRESS}-ha"
    )


def test_a_slave_is_told_no_address_where_nobody_listens(names: Names) -> None:
    silent = dataclasses.replace(header(), ha_server_addr="")
    names.ask(route.REGISTER_BROKER, silent, BODY.encode())
    reply = names.ask(route.REGISTER_BROKER, header(1, "10.0.0.2:10911"), BODY.encode())
    assert reply.header == RegisterBrokerResponseHeader(master_addr=ADDRESS)


def test_a_zone_comes_with_the_request(names: Names) -> None:
    zone = {"__ZONE_NAME": "north"}
    names.ask(route.REGISTER_BROKER, header(), BODY.encode(), ext_fields=zone)
    assert names.table.cluster_info().broker_addr_table["broker-a"].zone_name == "north"


def test_the_channel_is_the_peer(names: Names) -> None:
    peer = FakePeer()
    names.ask(route.REGISTER_BROKER, header(), BODY.encode(), peer=peer)
    names.table.channel_closed(peer)
    assert names.table.route("T1") is None


def test_unregistering(names: Names) -> None:
    names.ask(route.REGISTER_BROKER, header(), BODY.encode())
    it = UnRegisterBrokerRequestHeader(
        broker_name="broker-a", broker_addr=ADDRESS, cluster_name="c1", broker_id=0
    )
    assert names.ask(route.UNREGISTER_BROKER, it).code == ResponseCode.SUCCESS
    assert names.table.route("T1") is None
    assert names.changes == 2


def test_a_heartbeat_keeps_a_broker(names: Names) -> None:
    it = header(heartbeat_timeout_millis=1_000)
    names.ask(route.REGISTER_BROKER, it, BODY.encode())
    beat = BrokerHeartbeatRequestHeader(
        cluster_name="c1", broker_addr=ADDRESS, broker_name="broker-a"
    )
    names.ask(route.BROKER_HEARTBEAT, beat, now_ms=NOW_MS + 900)
    assert names.table.expire(NOW_MS + 1_900) == []
    assert len(names.table.expire(NOW_MS + 1_901)) == 1


def test_an_unknown_broker_must_register(names: Names) -> None:
    assert query(names, VERSION) == (True, b"")


def test_a_known_version_need_not_be_registered_again(names: Names) -> None:
    it = header(heartbeat_timeout_millis=1_000)
    names.ask(route.REGISTER_BROKER, it, BODY.encode())
    assert query(names, VERSION, NOW_MS + 900) == (False, VERSION.encode())
    assert query(names, VERSION.next(9)) == (True, VERSION.encode())
    assert names.table.expire(NOW_MS + 1_000) == []


def test_a_version_that_is_none_is_an_error_of_the_header(names: Names) -> None:
    asked = QueryDataVersionRequestHeader(
        broker_name="broker-a", broker_addr=ADDRESS, cluster_name="c1", broker_id=0
    )
    with pytest.raises(HeaderError):
        names.ask(route.QUERY_DATA_VERSION, asked, b"")


def test_the_members_of_a_broker_name(names: Names) -> None:
    names.ask(route.REGISTER_BROKER, header(), BODY.encode())
    it = GetBrokerMemberGroupRequestHeader(cluster_name="c1", broker_name="broker-a")
    assert names.ask(ha.GET_BROKER_MEMBER_GROUP, it).body == (
        b'{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:10911"},'
        b'"brokerName":"broker-a","cluster":"c1"}}'
    )
    it = GetBrokerMemberGroupRequestHeader(cluster_name="c1", broker_name="broker-z")
    assert names.ask(ha.GET_BROKER_MEMBER_GROUP, it).body == (
        b'{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"broker-z","cluster":"c1"}}'
    )
