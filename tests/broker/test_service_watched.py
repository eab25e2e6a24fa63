# SPDX-License-Identifier: Apache-2.0
"""A whole broker as those who run it see it: registered or not, ready or not, with metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import StringTransport

from tests.broker.test_service import Client, Scene
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol.body.route import TopicConfig


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path).start()


def test_it_is_registered_soon_after_its_name_server_is_there(scene: Scene) -> None:
    (asked,) = scene.connections.take()
    asked.pending.resolve(ConnectError("down"))
    membership = scene.broker.membership
    assert membership.why_not_ready() == "no name server has registered this broker yet"
    scene.pass_ms(2_100)
    assert len(scene.registered()) == 1
    assert membership.why_not_ready() == ""


def test_metrics_have_a_port_where_they_are_switched_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, metrics_exporter_type="PROM", metrics_prom_exporter_port=25557).start()
    assert [server[0] for server in scene.reactor.tcpServers] == [10911, 10909, 25557, 10912]
    scene.registered()
    Client(scene).send()
    factory: Any = scene.reactor.tcpServers[2][1]
    wire, protocol = StringTransport(), factory.buildProtocol(None)
    protocol.makeConnection(wire)
    protocol.dataReceived(b"GET /metrics HTTP/1.0\r\n\r\n")
    scene.pass_ms(50, 1)
    assert b'rocketmq_messages_in_total{cluster="DefaultCluster"' in wire.value()
    scene.registered()
    scene.stop()


def test_a_topic_of_compaction_takes_no_messages(scene: Scene) -> None:
    """It can only come from the store of an original broker."""
    topics = scene.broker.parts.topics
    topics._topics["T"] = TopicConfig(topic_name="T", attributes={"cleanup.policy": "COMPACTION"})
    answer = Client(scene).send()
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert answer.remark == (
        "the topic T takes no messages here: cleanup.policy=COMPACTION: compaction is not served"
    )
    assert scene.broker.parts.store.max_offset("T", 0) == 0
