# SPDX-License-Identifier: Apache-2.0
"""Heartbeats to name servers, and who is of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakeConnections
from txrocketmq.broker.cluster.members import MEMBER_PREFIX, MOST_MEMBERS, Addresses
from txrocketmq.broker.cluster.outer_api import Identity
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work.in_thread import at_once
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol.body.route import (
    BrokerData,
    BrokerMemberGroup,
    DataVersion,
    GetBrokerMemberGroupResponseBody,
    TopicRouteData,
)

IDENTITY = Identity("c", "pair", 1, "10.0.0.2:10911", "10.0.0.2:10912", 10_000)
TWO = {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}


class Scene:
    """A broker that knows of two name servers."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        config = BrokerConfig(
            broker_name="pair",
            broker_cluster_name="c",
            broker_id=1,
            namesrv_addr="10.0.1.1:9876;10.0.1.2:9876",
            enable_slave_acting_master=True,
            **settings,
        )
        self.parts = Parts(folder, config, store_settings={"broker_role": "SLAVE"})
        connections: Any = FakeConnections()
        self.connections = connections
        self.members = self.parts.members
        self.known: list[Addresses] = []
        self.members.on_known.append(self.known.append)
        self.parts.registration.begin(connections, IDENTITY, at_once, lambda: 0)
        self.connections.take()
        self.members.begin(connections, IDENTITY)
        self.beats = [each for each in self.members.life().beats if hasattr(each, "work")]

    def answer(self, outcome: Reply[Any] | Exception) -> str:
        """Answers the only question; returns whom it was asked."""
        (asked,) = self.connections.take()
        asked.pending.resolve(outcome)
        return str(asked.address)


def route(addresses: Mapping[int, str], name: str = "pair", cluster: str = "c") -> Reply[Any]:
    broker = BrokerData(broker_name=name, cluster=cluster, broker_addrs=addresses)
    return Reply(body=TopicRouteData(broker_datas=[broker]).encode())


def group(addresses: Mapping[int, str]) -> Reply[Any]:
    body = GetBrokerMemberGroupResponseBody(
        broker_member_group=BrokerMemberGroup(
            cluster="c", broker_name="pair", broker_addrs=addresses
        )
    )
    return Reply(body=body.encode())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def of_5(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "of 5", compatible_with_old_name_srv=False)


def test_each_name_server_hears_that_it_lives(scene: Scene, of_5: Scene) -> None:
    scene.members.beat()
    first, second = scene.connections.told
    assert (first.address, second.address) == ("10.0.1.1:9876", "10.0.1.2:9876")
    assert first.call.code == RequestCode.QUERY_DATA_VERSION
    assert (first.header.broker_id, first.header.broker_addr) == (1, IDENTITY.address)
    assert DataVersion.decode(first.body) == scene.parts.topics.data_version
    of_5.members.beat()
    told = of_5.connections.told[0]
    assert told.call.code == RequestCode.BROKER_HEARTBEAT
    assert told.header.broker_name == "pair"


def test_nobody_hears_of_a_broker_that_is_not_online(scene: Scene) -> None:
    scene.parts.registration.is_held = True
    scene.members.beat()
    assert scene.connections.told == []
    scene.parts.registration.register(force=True)
    assert scene.connections.take() == []
    scene.parts.registration.release()
    assert {each.call.code for each in scene.connections.take()} == {RequestCode.REGISTER_BROKER}
    scene.members.beat()
    assert len(scene.connections.told) == 2


def test_the_members_are_those_of_the_route_of_its_own_topic(scene: Scene) -> None:
    found: list[Addresses | None] = []
    scene.members.ask(found.append)
    (asked,) = scene.connections.take()
    assert asked.header.topic == MEMBER_PREFIX + "pair"
    asked.pending.resolve(route(TWO))
    assert found == [TWO]
    assert scene.members.addresses == TWO
    assert scene.members.others() == {0: TWO[0]}
    scene.members.ask(found.append)
    scene.answer(route(TWO, name="other"))
    scene.members.ask(found.append)
    scene.answer(route(TWO, cluster="other"))
    scene.members.ask(found.append)
    scene.answer(Reply(code=ResponseCode.TOPIC_NOT_EXIST))
    assert found[1:] == [{}, {}, {}]


def test_the_members_as_name_servers_of_5_tell_them(of_5: Scene) -> None:
    found: list[Addresses | None] = []
    of_5.members.ask(found.append)
    of_5.answer(group(TWO))
    of_5.members.ask(found.append)
    of_5.answer(Reply(body=b"{}"))
    assert found == [TWO, {}]


@pytest.mark.parametrize(
    "bad",
    [
        ConnectError("no"),
        Reply(code=ResponseCode.SYSTEM_ERROR),
        Reply(body=b"["),
        group(dict.fromkeys(range(MOST_MEMBERS + 1), "10.0.0.1:1")),
    ],
)
def test_the_next_name_server_is_asked(of_5: Scene, bad: Reply[Any] | Exception) -> None:
    found: list[Addresses | None] = []
    of_5.members.ask(found.append)
    assert of_5.answer(bad) == "10.0.1.1:9876"
    assert found == []
    assert of_5.answer(group(TWO)) == "10.0.1.2:9876"
    assert found == [TWO]
    of_5.members.ask(found.append)
    of_5.answer(bad)
    of_5.answer(bad)
    assert found == [TWO, None]
    assert of_5.members.addresses == TWO, "what is known stays"


def test_it_looks_again_and_again_but_one_question_is_open_at_a_time(scene: Scene) -> None:
    _, look = scene.beats
    look.work()
    look.work()
    assert scene.answer(route(TWO)) == "10.0.1.1:9876"
    assert scene.known == [TWO]
    look.work()
    scene.answer(route({}))
    assert scene.known == [TWO], "a name server that has just begun knows nobody"
