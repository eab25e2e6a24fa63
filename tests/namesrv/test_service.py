# SPDX-License-Identifier: Apache-2.0
"""A whole name server, on a reactor without a network and a clock that stands still."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from tests.fakes import SetClock
from txrocketmq.namesrv import service
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import KvConfig, KvConfigError
from txrocketmq.namesrv.service import NameServer
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.credentials import signature
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import AtStop, Beat, Life
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import (
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import NotifyMinBrokerIdChangeRequestHeader
from txrocketmq.remoting.protocol.route import (
    GetRouteInfoRequestHeader,
    RegisterBrokerRequestHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.protocol.topic import DeleteTopicFromNamesrvRequestHeader
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import TlsConfig

BODY = RegisterBrokerBody(
    topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
        topic_config_table={name: TopicConfig(topic_name=name) for name in ("T1", "T2")}
    )
)


class Wire(StringTransport):
    """A connection's end, with what TCP adds."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - ITCPTransport
        """Nothing to delay."""


class Client:
    """Somebody connected to the name server."""

    def __init__(self, reactor: MemoryReactorClock) -> None:
        factory: Any = reactor.tcpServers[0][1]
        self.wire: Any = Wire()  # type: ignore[no-untyped-call]
        self.protocol: Any = factory.buildProtocol(None)
        self.protocol.makeConnection(self.wire)
        self._opaque = 0

    def ask(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> RemotingCommand:
        self._opaque += 1
        command = RemotingCommand(call.code, header.encode(), body, opaque=self._opaque)
        self.wire.clear()
        self.protocol.dataReceived(b"".join(encode_frame(command)))
        answer: RemotingCommand
        (answer,) = FrameDecoder().receive(self.wire.value())
        assert answer.opaque == self._opaque
        return answer

    def register(self, broker_id: int = 0, port: int = 10911, *, acting: bool = False) -> None:
        header = RegisterBrokerRequestHeader(
            broker_name="broker-a",
            broker_addr=f"10.0.0.1:{port}",
            cluster_name="c1",
            ha_server_addr=f"10.0.0.1:{port + 1}",
            broker_id=broker_id,
            enable_acting_master=acting,
        )
        assert self.ask(route.REGISTER_BROKER, header, BODY.encode()).code == ResponseCode.SUCCESS

    def code_of_route(self) -> int:
        header = GetRouteInfoRequestHeader(topic="T1")
        return self.ask(route.GET_ROUTEINFO_BY_TOPIC, header).code


class Told:
    """Stands for the connections a name server makes to brokers."""

    def __init__(self, clock: Clock, *, tls: ssl.SSLContext | None, seal: object = None) -> None:
        self.tls = tls
        self.said: list[tuple[str, RequestCode, Header]] = []
        self.closed = False

    def invoke_oneway(self, address: str, call: Call[Any, Any], header: Header) -> None:
        self.said.append((address, call.code, header))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def reactor() -> MemoryReactorClock:
    return MemoryReactorClock()


@pytest.fixture
def config(tmp_path: Path) -> NamesrvConfig:
    path = str(tmp_path / "kvConfig.json")
    return NamesrvConfig(kv_config_path=path, bind_address="127.0.0.1", listen_port=9876)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged."""
    said: list[str] = []

    def observe(event: LogEvent) -> None:
        said.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)  # type: ignore[arg-type]
    yield said
    globalLogPublisher.removeObserver(observe)  # type: ignore[arg-type]


def started(config: NamesrvConfig, reactor: MemoryReactorClock) -> NameServer:
    server = NameServer(config, SetClock(reactor))
    server.start()
    return server


def test_it_listens_where_it_is_told(
    config: NamesrvConfig, reactor: MemoryReactorClock, lines: list[str]
) -> None:
    server = started(dataclasses.replace(config, bind_address="127.0.0.1"), reactor)
    ((port, _, _, interface),) = reactor.tcpServers
    assert (port, interface, server.port) == (9876, "127.0.0.1", 9876)
    assert lines == [
        f"name server listens on 127.0.0.1:9876, key-values in {config.kv_config_path}"
    ]


def test_it_serves_all_codes_of_the_original(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    served = NameServer(config, Clock(reactor)).registry().bindings
    assert sorted(served) == [
        *range(100, 107), 205, 206, 216, 217, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327,
        901, 904,
    ]  # fmt: skip


def test_a_broken_file_of_key_values_stops_the_start(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    Path(config.kv_config_path).write_text("{")
    with pytest.raises(KvConfigError, match=config.kv_config_path):
        started(config, reactor)
    assert not reactor.tcpServers


def test_a_broker_is_there_as_long_as_its_connection(
    config: NamesrvConfig, reactor: MemoryReactorClock, lines: list[str]
) -> None:
    started(config, reactor)
    broker, client = Client(reactor), Client(reactor)
    assert client.code_of_route() == ResponseCode.TOPIC_NOT_EXIST
    broker.register()
    assert client.code_of_route() == ResponseCode.SUCCESS
    broker.protocol.connectionLost()
    assert client.code_of_route() == ResponseCode.TOPIC_NOT_EXIST
    assert lines[1:] == [
        "broker broker-a (0) of c1 at 10.0.0.1:10911 joined with 2 topics",
        "broker broker-a of c1 at 10.0.0.1:10911 left: its connection ended",
    ]


def test_a_silent_broker_is_dropped_and_its_connection_closed(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    started(dataclasses.replace(config, server_channel_max_idle_time_seconds=1_000), reactor)
    broker = Client(reactor)
    broker.register()
    client = Client(reactor)
    reactor.pump([1] * 119)
    assert not broker.wire.disconnecting
    assert client.code_of_route() == ResponseCode.SUCCESS
    reactor.pump([1] * 7)  # it is looked for every five seconds
    assert broker.wire.disconnecting
    assert client.code_of_route() == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize("set_by_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_is_set_drops_nobody_and_keeps_nobody(
    config: NamesrvConfig, reactor: MemoryReactorClock, set_by_ms: int
) -> None:
    server = started(config, reactor)
    broker, client = Client(reactor), Client(reactor)
    broker.register()
    assert isinstance(server.clock, SetClock)
    server.clock.set_by_ms = set_by_ms
    for _ in range(10):
        reactor.advance(10)
    assert client.code_of_route() == ResponseCode.SUCCESS
    for _ in range(4):
        reactor.advance(10)
    assert client.code_of_route() == ResponseCode.TOPIC_NOT_EXIST


def test_an_idle_connection_is_closed(config: NamesrvConfig, reactor: MemoryReactorClock) -> None:
    started(dataclasses.replace(config, server_channel_max_idle_time_seconds=10), reactor)
    client = Client(reactor)
    reactor.pump([1] * 10)
    assert not client.wire.disconnecting
    reactor.pump([1] * 2)
    assert client.wire.disconnecting


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Told]:
    """The connections to brokers that name servers have made."""
    made: list[Told] = []

    def make(clock: Clock, **tls: Any) -> Told:
        made.append(Told(clock, **tls))
        return made[-1]

    monkeypatch.setattr(service, "Connections", make)
    return made


@pytest.mark.parametrize("wanted", [True, False])
def test_brokers_are_told_of_a_new_smallest_id(
    config: NamesrvConfig,
    reactor: MemoryReactorClock,
    made: list[Told],
    wanted: bool,
) -> None:
    server = started(dataclasses.replace(config, notify_min_broker_id_changed=wanted), reactor)
    master, slave = Client(reactor), Client(reactor)
    master.register(acting=True)
    slave.register(1, 20911, acting=True)
    master.protocol.connectionLost()
    told = [it for each in made for it in each.said]
    assert (
        told
        == [
            (
                "10.0.0.1:20911",
                ha.NOTIFY_MIN_BROKER_ID_CHANGE.code,
                NotifyMinBrokerIdChangeRequestHeader(
                    min_broker_id=1,
                    broker_name="broker-a",
                    min_broker_addr="10.0.0.1:20911",
                    offline_broker_addr="10.0.0.1:10911",
                ),
            )
        ]
        * wanted
    )
    server.stop()
    assert [each.closed for each in made] == [True] * wanted


@pytest.mark.parametrize("use_tls", [None, False, True])
def test_brokers_are_told_on_encrypted_connections_if_that_is_set(
    config: NamesrvConfig,
    reactor: MemoryReactorClock,
    made: list[Told],
    use_tls: bool | None,
) -> None:
    started(
        dataclasses.replace(config, use_tls=use_tls, notify_min_broker_id_changed=True), reactor
    )
    assert made == [], "most name servers never connect to anybody"
    master, slave = Client(reactor), Client(reactor)
    master.register(acting=True)
    slave.register(1, 20911, acting=True)
    master.protocol.connectionLost()
    (told,) = made
    assert (told.tls is not None) is bool(use_tls)


def test_certificates_that_cannot_be_used_stop_the_start(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    missing = {"test_mode": False, "server_cert_path": "/no.pem", "server_key_path": "/no.pem"}
    server = NameServer(config, SetClock(reactor), tls=TlsConfig(**missing))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="tls.server.certPath is /no.pem, which cannot be read"):
        server.start()
    assert not reactor.tcpServers


def test_stopping_ends_everything(config: NamesrvConfig, reactor: MemoryReactorClock) -> None:
    server = started(config, reactor)
    client = Client(reactor)
    server.stop()
    assert client.wire.disconnecting
    client.protocol.connectionLost()
    assert not reactor.getDelayedCalls()


def test_clients_are_sent_away_for_a_while_when_that_is_wanted(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    config = dataclasses.replace(
        config, enable_shutdown_gracefully=True, shutdown_wait_time_seconds=2
    )
    server = started(config, reactor)
    client, stopped = Client(reactor), list[object]()
    client.register()
    assert client.code_of_route() == ResponseCode.SUCCESS
    server.stop().addCallback(stopped.append)
    assert client.code_of_route() == ResponseCode.GO_AWAY
    reactor.advance(1)
    assert (len(stopped), client.wire.disconnecting) == (0, False)
    reactor.advance(1)
    assert (len(stopped), client.wire.disconnecting) == (1, True)


def test_two_brokers_of_one_name_and_id_are_told_seldom(
    config: NamesrvConfig, reactor: MemoryReactorClock, lines: list[str]
) -> None:
    started(config, reactor)
    client = Client(reactor)
    for _ in range(3):
        client.register()
        client.register(port=20911)
    warned = [line for line in lines if line.startswith("two brokers register as broker-a")]
    assert len(warned) == 1
    assert "10.0.0.1:20911 and 10.0.0.1:10911" in warned[0]


def test_a_made_up_part_is_opened_ticked_and_stopped(
    config: NamesrvConfig,
    reactor: MemoryReactorClock,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    made_up = Life(
        "tides",
        opens=lambda _: ["the tides are high"],
        beats=(Beat(1_000, lambda: calls.append("beat")),),
        forgets=lambda *_: calls.append("gone"),
        at_stop=(AtStop("drying up", lambda _: calls.append("dry")),),
    )
    monkeypatch.setattr(KvConfig, "life", lambda _: made_up)
    server = started(config, reactor)
    assert "the tides are high" in lines
    client = Client(reactor)
    reactor.advance(1)
    client.protocol.connectionLost()
    server.stop()
    reactor.advance(1)
    assert calls == ["beat", "gone", "dry"]


def test_what_fails_at_the_end_is_told_and_holds_up_nothing(
    config: NamesrvConfig,
    reactor: MemoryReactorClock,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: int) -> None:
        raise OSError("wet")

    made_up = Life("tides", at_stop=(AtStop("drying up", fail),))
    monkeypatch.setattr(KvConfig, "life", lambda _: made_up)
    server = started(config, reactor)
    stopped: list[object] = []
    server.stop().addCallback(stopped.append)
    assert len(stopped) == 1
    assert "drying up failed: wet" in lines


def asked_with(client: Client, call: Call[Any, Any], header: Header, body: bytes, key: str) -> int:
    """The code of the answer to a request that is signed with this account."""
    fields = dict(header.encode())
    if key:
        fields["AccessKey"] = key
        fields["Signature"] = signature(fields, body, f"{key}-pass")
    client.wire.clear()
    command = RemotingCommand(call.code, fields, body)
    client.protocol.dataReceived(b"".join(encode_frame(command)))
    (answer,) = FrameDecoder().receive(client.wire.value())
    return answer.code


def test_nobody_takes_over_a_route_without_an_account(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    config = dataclasses.replace(
        config,
        authentication_enabled=True,
        init_authentication_user='{"username":"broker","password":"broker-pass"}',
    )
    server = started(config, reactor)
    client = Client(reactor)

    def register(address: str, key: str) -> int:
        header = RegisterBrokerRequestHeader(
            broker_name="broker-a",
            broker_addr=address,
            cluster_name="c1",
            ha_server_addr=address,
            broker_id=0,
        )
        return asked_with(client, route.REGISTER_BROKER, header, BODY.encode(), key)

    assert register("10.0.0.1:10911", "broker") == ResponseCode.SUCCESS
    for key in ("", "nobody"):
        assert register("10.6.6.6:10911", key) == ResponseCode.NO_PERMISSION
        leave = UnRegisterBrokerRequestHeader(
            broker_name="broker-a", broker_addr="10.0.0.1:10911", cluster_name="c1", broker_id=0
        )
        code = asked_with(client, route.UNREGISTER_BROKER, leave, b"", key)
        assert code == ResponseCode.NO_PERMISSION
    assert server.table.data_version("c1", "10.0.0.1:10911") is not None
    assert server.table.data_version("c1", "10.6.6.6:10911") is None


def test_dangerous_requests_may_be_for_near_addresses(
    config: NamesrvConfig, reactor: MemoryReactorClock
) -> None:
    started(dataclasses.replace(config, admin_addresses=("127.0.0.0/8",)), reactor)
    client = Client(reactor)
    client.register()
    header = DeleteTopicFromNamesrvRequestHeader(topic="T1")
    answer = client.ask(topic.DELETE_TOPIC_IN_NAMESRV, header)
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "adminAddresses" in (answer.remark or "")
    assert client.code_of_route() == ResponseCode.SUCCESS
