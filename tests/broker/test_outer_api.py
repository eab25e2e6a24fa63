# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, cast

import pytest

from tests.fakes import Asked, FakeConnections
from txrocketmq.broker.outer_api import Identity, NameServers
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError, RequestTimeout
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    KVTable,
    RegisterBrokerBody,
    TopicConfig,
)
from txrocketmq.remoting.protocol.route import (
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.transport.client import Connections

TOPICS = {"T": TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4)}
VERSION = DataVersion(timestamp=5, counter=2)
REGISTERED: Reply[Any] = Reply(RegisterBrokerResponseHeader())


class Scene:
    """Name servers "a:1" and "b:2", as a broker sees them."""

    def __init__(self) -> None:
        self.connections = FakeConnections()
        self.order_topics: list[set[str]] = []
        self.servers = NameServers(
            cast("Connections", self.connections),
            Identity("C", "broker-a", 0, "10.0.0.1:10911", "10.0.0.1:10912"),
            24_000,
            self.order_topics.append,
        )
        self.servers.set_addresses(" a:1 ; b:2;")

    def register(self, *, force: bool = True) -> list[Asked]:
        self.servers.register(TOPICS, VERSION, force=force)
        return self.connections.take()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_every_name_server_is_told_everything(scene: Scene) -> None:
    asked = scene.register()
    assert [each.address for each in asked] == ["a:1", "b:2"]
    assert scene.connections.timeouts_ms == [24_000, 24_000]
    for each in asked:
        assert each.call is route.REGISTER_BROKER
        assert each.header == RegisterBrokerRequestHeader(
            broker_name="broker-a",
            broker_addr="10.0.0.1:10911",
            cluster_name="C",
            ha_server_addr="10.0.0.1:10912",
            broker_id=0,
            enable_acting_master=False,
            body_crc32=body_crc(each.body),
        )
        wrapper = RegisterBrokerBody.decode(each.body).topic_config_serialize_wrapper
        assert wrapper.topic_config_table == TOPICS
        assert wrapper.data_version == VERSION


def test_an_answer_may_name_order_topics(scene: Scene) -> None:
    first, second = scene.register()
    first.pending.resolve(
        Reply(RegisterBrokerResponseHeader(), KVTable(table={"T": "broker-a:4"}).encode())
    )
    second.pending.resolve(REGISTERED)
    assert scene.order_topics == [{"T"}]


def test_without_force_name_servers_are_asked_what_they_have(scene: Scene) -> None:
    for each in scene.register():
        each.pending.resolve(REGISTERED)
    asked = scene.register(force=False)
    for each in asked:
        assert each.call is route.QUERY_DATA_VERSION
        assert each.header == QueryDataVersionRequestHeader(
            broker_name="broker-a",
            broker_addr="10.0.0.1:10911",
            cluster_name="C",
            broker_id=0,
        )
        assert DataVersion.decode(each.body) == VERSION
    asked[0].pending.resolve(Reply(QueryDataVersionResponseHeader(changed=False)))
    assert scene.connections.asked == []
    asked[1].pending.resolve(Reply(QueryDataVersionResponseHeader(changed=True)))
    (again,) = scene.connections.take()
    assert (again.address, again.call) == ("b:2", route.REGISTER_BROKER)


@pytest.mark.parametrize(
    "answer", [RequestTimeout("3 s"), Reply(code=ResponseCode.SYSTEM_ERROR), Reply()]
)
def test_one_that_does_not_say_what_it_has_is_told(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    for each in scene.register():
        each.pending.resolve(REGISTERED)
    first, _ = scene.register(force=False)
    first.pending.resolve(answer)
    (again,) = scene.connections.take()
    assert (again.address, again.call) == ("a:1", route.REGISTER_BROKER)


@pytest.mark.parametrize(
    "answer",
    [
        ConnectError("nobody there"),
        Reply(code=ResponseCode.SYSTEM_ERROR, remark="crc32 not match"),
    ],
)
def test_one_that_refused_is_told_again_without_asking(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    first, second = scene.register()
    first.pending.resolve(answer)
    second.pending.resolve(REGISTERED)
    again = scene.register(force=False)
    assert [(each.address, each.call) for each in again] == [
        ("a:1", route.REGISTER_BROKER),
        ("b:2", route.QUERY_DATA_VERSION),
    ]


def test_an_answer_that_is_none_does_no_harm(scene: Scene) -> None:
    first, _ = scene.register()
    first.pending.resolve(Reply(RegisterBrokerResponseHeader(), b"{broken"))
    assert scene.order_topics == []


def test_leave_is_taken_of_all_before_the_end(scene: Scene) -> None:
    done: list[bool] = []
    scene.servers.unregister(lambda: done.append(True))
    first, second = scene.connections.take()
    assert first.call is route.UNREGISTER_BROKER
    assert first.header == UnRegisterBrokerRequestHeader(
        broker_name="broker-a",
        broker_addr="10.0.0.1:10911",
        cluster_name="C",
        broker_id=0,
    )
    first.pending.resolve(Reply())
    assert done == []
    second.pending.resolve(ConnectError("nobody there"))
    assert done == [True]


def test_without_name_servers_the_end_comes_at_once(scene: Scene) -> None:
    done: list[bool] = []
    scene.servers.set_addresses("")
    scene.servers.unregister(lambda: done.append(True))
    assert done == [True]
    assert scene.register() == []


def route_of(scene: Scene) -> list[Reply[Any] | Exception]:
    outcomes: list[Reply[Any] | Exception] = []
    scene.servers.ask_route("T").then(outcomes.append)
    return outcomes


def test_a_route_is_asked_of_the_first_that_answers(scene: Scene) -> None:
    outcomes = route_of(scene)
    (first,) = scene.connections.take()
    assert (first.address, first.call) == ("a:1", route.GET_ROUTEINFO_BY_TOPIC)
    assert first.header == GetRouteInfoRequestHeader(topic="T")
    first.pending.resolve(RequestTimeout("3 s"))
    (second,) = scene.connections.take()
    answer: Reply[Any] = Reply(code=ResponseCode.TOPIC_NOT_EXIST)
    second.pending.resolve(answer)
    assert second.address == "b:2"
    assert outcomes == [answer]
    assert scene.connections.asked == []


def test_a_route_that_nobody_tells(scene: Scene) -> None:
    outcomes = route_of(scene)
    error = RequestTimeout("3 s")
    for _ in range(2):
        scene.connections.take()[0].pending.resolve(error)
    scene.servers.set_addresses("")
    (none,) = route_of(scene)
    assert outcomes == [error]
    assert isinstance(none, ConnectError)
