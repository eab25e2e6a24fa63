# SPDX-License-Identifier: Apache-2.0
"""A whole broker that is a slave, and becomes the master by a restart: see test_service.py."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.address import IPv4Address

from tests.broker.conftest import Parts
from tests.broker.test_service import Client, Scene
from txrocketmq.broker.store.replication.frames import HEAD_CODEC, REPORT_CODEC
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.route import RegisterBrokerResponseHeader

HA_ADDRESS, ADDRESS = "10.0.0.9:10912", "10.0.0.9:10911"


class Transport:
    """The slave's connection to its master, over a real socket."""

    def __init__(self) -> None:
        self.socket, self.far = socket.socketpair()
        self.is_aborted = False

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def setTcpKeepAlive(self, enabled: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def registerProducer(self, producer: Any, streaming: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's
        self.is_aborted = True


class Following(Scene):
    """A slave that has started; its connection to the master is in the test's hands."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        store_settings = {"broker_role": "SLAVE", **settings}
        super().__init__(folder, store_settings, broker_id=1, slave_read_enable=True)
        self.transport = Transport()
        self.protocol: Any = None

    def find_master(self) -> None:
        """Has the name server tell where the master is."""
        told = RegisterBrokerResponseHeader(ha_server_addr=HA_ADDRESS, master_addr=ADDRESS)
        for asked in self.connections.take():
            assert asked.header.broker_id == 1  # type: ignore[attr-defined]
            asked.pending.resolve(Reply(told))
        self.pass_ms(200)

    def connect(self) -> None:
        """Makes the connection that the slave attempts."""
        host, port, factory = self.reactor.tcpClients[-1][:3]
        assert f"{host}:{port}" == HA_ADDRESS
        self.protocol = factory.buildProtocol(IPv4Address("TCP", host, port))
        self.protocol.makeConnection(self.transport)

    def said(self) -> bytes:
        return self.transport.far.recv(1_000)

    def close(self) -> None:
        self.transport.socket.close()
        self.transport.far.close()


@pytest.fixture
def slave(tmp_path: Path) -> Iterator[Following]:
    made = Following(tmp_path / "slave")
    made.start()
    yield made
    made.close()


def some_log(folder: Path) -> bytes:
    """The log of a master with one message in a queue of delay level 1, and one in T."""
    master = Parts(folder / "master")
    master.put("T", 0, KEYS="k1")
    master.put("SCHEDULE_TOPIC_XXXX", 0, DELAY="1", REAL_TOPIC="T", REAL_QID="1")
    log = bytes(master.store.read_raw(0, 1 << 20) or b"")
    master.store.stop(master.now_ms)
    return log


def test_it_follows_the_master_of_the_name_server(slave: Following, tmp_path: Path) -> None:
    slave.pass_ms(1_000)
    assert slave.reactor.tcpClients == []
    slave.find_master()
    slave.connect()
    assert slave.said() == REPORT_CODEC.pack(0)
    log = some_log(tmp_path)
    slave.protocol.dataReceived(HEAD_CODEC.pack(0, len(log)) + log)
    assert slave.said() == REPORT_CODEC.pack(len(log))
    slave.pass_ms(100)
    assert slave.broker.parts.store.max_offset("T", 0) == 1
    slave.pass_ms(5_000)
    assert slave.said() == REPORT_CODEC.pack(len(log)), "it says that it lives"


def test_it_asks_the_master_how_far_it_is_behind(slave: Following) -> None:
    slave.find_master()
    slave.pass_ms(10_000)
    (asked,) = [
        each
        for each in slave.connections.take()
        if each.call.code == RequestCode.GET_BROKER_RUNTIME_INFO
    ]
    assert asked.address == ADDRESS
    table = {"commitLogMaxOffset": "77"}
    asked.pending.resolve(Reply(body=KVTable(table=table).encode()))
    parts = slave.broker.parts
    assert parts.slave is not None
    assert parts.slave.behind_bytes == 77


def test_nothing_that_a_master_does_by_itself_is_done(slave: Following, tmp_path: Path) -> None:
    slave.find_master()
    slave.connect()
    log = some_log(tmp_path)
    slave.protocol.dataReceived(HEAD_CODEC.pack(0, len(log)) + log)
    slave.pass_ms(60_000, step_ms=500)
    store = slave.broker.parts.store
    assert store.max_physical_offset == len(log), "nothing was delivered"
    info = Client(slave).ask(admin.GET_BROKER_RUNTIME_INFO, NoHeader())
    assert KVTable.decode(info.body).table["brokerActive"] == "false"


def test_it_takes_no_messages(slave: Following) -> None:
    answer = Client(slave).send()
    assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "this broker is a slave" in (answer.remark or "")


def test_the_end_ends_the_connection_in_order(slave: Following, tmp_path: Path) -> None:
    slave.find_master()
    slave.connect()
    log = some_log(tmp_path)
    slave.protocol.dataReceived(HEAD_CODEC.pack(0, len(log) - 5) + log[:-5])
    slave.connections.take()
    assert slave.stop() == [None]
    assert slave.transport.is_aborted
    slave.protocol.dataReceived(HEAD_CODEC.pack(len(log) - 5, 5) + log[-5:])
    assert not (tmp_path / "slave" / "abort").exists(), "the store is closed in order"


def test_after_a_restart_it_is_the_master(slave: Following, tmp_path: Path) -> None:
    slave.find_master()
    slave.connect()
    log = some_log(tmp_path)
    slave.protocol.dataReceived(HEAD_CODEC.pack(0, len(log)) + log)
    slave.pass_ms(100)
    slave.connections.take()
    slave.stop()
    master = Scene(tmp_path / "slave").start()
    assert master.reactor.tcpClients == []
    store = master.broker.parts.store
    assert store.max_offset("T", 0) == 1
    master.pass_ms(3_000)
    assert store.max_offset("T", 1) == 1, "what waited is delivered"
    answer = Client(master).send()
    assert answer.code == ResponseCode.SUCCESS
