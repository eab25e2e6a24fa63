# SPDX-License-Identifier: Apache-2.0
"""What UPDATE_NAMESRV_CONFIG takes counts at once: a check for each live setting."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock

from tests.fakes import NOW_MS, FakePeer, refused
from tests.live import Checks, live
from tests.namesrv.conftest import Names, addresses, registration, topics
from tests.namesrv.processors.test_register import BODY, header
from tests.namesrv.test_service import Client, Told, started
from tests.remoting.transport.wires import UNFINISHED
from txrocketmq.namesrv import service
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import KVTable, TopicRouteData
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader

check = Checks()


def update(names: Names, text: str) -> None:
    names.ask(admin.UPDATE_NAMESRV_CONFIG, NoHeader(), text.encode())


def route_of(names: Names, now_ms: int = NOW_MS) -> TopicRouteData:
    asked = GetRouteInfoRequestHeader(topic="T1")
    return TopicRouteData.decode(names.ask(route.GET_ROUTEINFO_BY_TOPIC, asked, now_ms=now_ms).body)


@check
def order_message_enable(names: Names) -> None:
    names.kv.put(ORDER_TOPIC_CONFIG, "T1", "broker-a:4")
    assert route_of(names).order_topic_conf is None
    update(names, "orderMessageEnable=true\n")
    assert route_of(names).order_topic_conf == "broker-a:4"


@check
def return_order_topic_config_to_broker(names: Names) -> None:
    names.kv.put(ORDER_TOPIC_CONFIG, "T1", "broker-a:4")
    said = BODY.encode()
    told = names.ask(route.REGISTER_BROKER, header(), said).body
    assert KVTable.decode(told).table == {"T1": "broker-a:4"}
    update(names, "returnOrderTopicConfigToBroker=false\n")
    assert names.ask(route.REGISTER_BROKER, header(), said).body == b""


@check
def enable_topic_list(names: Names) -> None:
    assert names.ask(topic.GET_UNIT_TOPIC_LIST, NoHeader()).code == ResponseCode.SUCCESS
    update(names, "enableTopicList=false\n")
    with refused(ResponseCode.SYSTEM_ERROR, "disable"):
        names.ask(topic.GET_UNIT_TOPIC_LIST, NoHeader())


@check
def enable_all_topic_list(names: Names) -> None:
    call = topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
    assert names.ask(call, NoHeader()).code == ResponseCode.SUCCESS
    update(names, "enableAllTopicList=false\n")
    with refused(ResponseCode.SYSTEM_ERROR, "disable"):
        names.ask(call, NoHeader())


@check
def delete_topic_with_broker_registration(names: Names) -> None:
    names.table.register(registration(counter=2, having=topics("T1")), "c", NOW_MS)
    assert names.table.topics().topic_list == ("T1", "T2")
    update(names, "deleteTopicWithBrokerRegistration=true\n")
    names.table.register(registration(counter=3, having=topics("T1")), "c", NOW_MS)
    assert names.table.topics().topic_list == ("T1",)


@check
def support_acting_master(names: Names) -> None:
    names.table.register(registration(acting_master=True), "m", NOW_MS)
    names.table.register(registration(1, port=20911, acting_master=True), "s", NOW_MS)
    names.table.channel_closed("m")
    assert addresses(names.table) == {1: "10.0.0.1:20911"}
    update(names, "supportActingMaster=true\n")
    assert addresses(names.table) == {0: "10.0.0.1:20911"}


@check
def need_wait_for_service(names: Names) -> None:
    assert route_of(names).queue_datas
    update(names, "needWaitForService=true\n")
    with refused(ResponseCode.SYSTEM_ERROR, "name server not ready"):
        route_of(names)


@check
def wait_seconds_for_service(names: Names) -> None:
    update(names, "needWaitForService=true\n")
    with refused(ResponseCode.SYSTEM_ERROR, "name server not ready"):
        route_of(names, NOW_MS + 10_000)
    update(names, "waitSecondsForService=10\n")
    assert route_of(names, NOW_MS + 10_000).queue_datas


@check
def notify_min_broker_id_changed(names: Names) -> None:
    made: list[Told] = []

    def make(clock: Any, **tls: Any) -> Told:
        made.append(Told(clock, **tls))
        return made[-1]

    reactor = MemoryReactorClock()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(service, "Connections", make)
        server = started(names.configuration.get(NamesrvConfig), reactor)
        for wanted in ("false", "true"):
            server.configuration.update({"notifyMinBrokerIdChanged": wanted})
            master, slave = Client(reactor), Client(reactor)
            master.register(acting=True)
            slave.register(1, 20911, acting=True)
            master.protocol.connectionLost()
            assert bool(made) is (wanted == "true")
            slave.protocol.connectionLost()
        server.stop()


def stopping(names: Names, **settings: str) -> tuple[MemoryReactorClock, list[object]]:
    """A name server that got settings before it was told to stop; whether it has stopped."""
    reactor, stopped = MemoryReactorClock(), list[object]()
    server = started(names.configuration.get(NamesrvConfig), reactor)
    server.configuration.update(settings)
    server.stop().addCallback(stopped.append)
    return reactor, stopped


@check
def enable_shutdown_gracefully(names: Names) -> None:
    for wanted in ("false", "true"):
        _, stopped = stopping(names, enableShutdownGracefully=wanted)
        assert len(stopped) == (wanted == "false")


@check
def shutdown_wait_time_seconds(names: Names) -> None:
    reactor, stopped = stopping(names, enableShutdownGracefully="true", shutdownWaitTimeSeconds="2")
    reactor.advance(1)
    assert not stopped
    reactor.advance(1)
    assert stopped


@check
def max_bytes_held_for_peers(names: Names) -> None:
    reactor = MemoryReactorClock()
    server = started(names.configuration.get(NamesrvConfig), reactor)
    held = server._server.shared.held
    for _ in range(3):
        Client(reactor).protocol.dataReceived(UNFINISHED)
    assert held.crowded == 0
    server.configuration.update({"maxBytesHeldForPeers": str(32 << 20)})
    Client(reactor).protocol.dataReceived(UNFINISHED)
    assert held.crowded == 1


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(names: Names, name: str) -> None:
    names.table.register(registration(), FakePeer(), NOW_MS)
    check[name](names)


def test_each_live_setting_has_its_check() -> None:
    assert live(NamesrvConfig) == check.keys()
