# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.fakes import NOW_MS, FakePeer, refused
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.namesrv.routes import registration
from txrocketmq.namesrv.routes.registration import Registration, read
from txrocketmq.remoting.call import Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from txrocketmq.remoting.protocol.route import RegisterBrokerRequestHeader

TOPICS = {
    f"t{each}": TopicConfig(topic_name=f"t{each}", attributes={"message.type": "FIFO"})
    for each in range(9)
}
BODY = RegisterBrokerBody(
    topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
        topic_config_table=TOPICS, data_version=DataVersion(timestamp=3, counter=4)
    ),
    filter_server_list=["f"],
).encode()


def read_of(body: bytes, body_crc32: int = 0) -> Registration:
    header = RegisterBrokerRequestHeader(
        broker_name="b", broker_addr="a:1", cluster_name="c", ha_server_addr="a:2", broker_id=0,
        body_crc32=body_crc32,
    )  # fmt: skip
    command = RemotingCommand(103, header.encode(), body, version=MQVersion.V5_4_0)
    return finished(read(Request(header, command, FakePeer(), NOW_MS, NOW_MS)))


@pytest.fixture(params=["at once", "in steps"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "in steps":
        monkeypatch.setattr(registration, "LONG_BYTES", 0)
    return str(request.param)


@pytest.mark.usefixtures("form")
def test_a_body_is_read() -> None:
    found = read_of(BODY)
    assert found.topics == TOPICS
    assert found.data_version == DataVersion(timestamp=3, counter=4)
    assert list(found.filter_servers or ()) == ["f"]


@pytest.mark.usefixtures("form")
def test_what_only_fastjson_takes_is_read_too() -> None:
    odd = BODY.replace(b'"timestamp"', b"timestamp").replace(b'"t1":', b"'t1':")
    assert odd != BODY
    assert read_of(odd).topics == TOPICS


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    "body",
    [b"{", BODY[:-5], b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"t":7}}}', b"[1]"],
)
def test_what_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(HeaderError):
        read_of(body)


def test_a_wrong_checksum_is_refused() -> None:
    with refused(ResponseCode.SYSTEM_ERROR, "crc32 not match"):
        read_of(BODY, body_crc32=7)


def test_many_topics_take_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "LONG_BYTES", 0)
    header = RegisterBrokerRequestHeader(
        broker_name="b", broker_addr="a:1", cluster_name="c", ha_server_addr="a:2", broker_id=0
    )
    command = RemotingCommand(103, header.encode(), BODY, version=MQVersion.V5_4_0)
    steps = read(Request(header, command, FakePeer(), NOW_MS, NOW_MS))
    assert sum(1 for _ in steps) >= len(TOPICS) // 2
