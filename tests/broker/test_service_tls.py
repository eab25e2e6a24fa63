# SPDX-License-Identifier: Apache-2.0
"""A whole broker that encrypts: what comes to its ports, and what it sends to name servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs

from tests.certificates import certified
from tests.remoting.transport.secured import SecuredEnd, client_of, server_of
from tests.remoting.transport.wires import FarEnd
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import TlsConfig


class Scene:
    """A broker that may have started; `folder` is its store."""

    def __init__(self, folder: Path, tls: TlsConfig, **settings: Any) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.folder = folder / "store"
        self.broker = Broker(
            BrokerConfig(broker_ip1="127.0.0.1", namesrv_addr="127.0.0.1:9876", **settings),
            StoreConfig(store_path_root_dir=str(self.folder), mapped_file_size_commit_log=65_536),
            Clock(self.reactor),
            tls=tls,
        )

    def accept(self, port: int = 0) -> FarEnd:
        """A connection to one of the ports."""
        return FarEnd(self.reactor.tcpServers[port][1].buildProtocol(None))

    def name_server(self) -> FarEnd:
        """The other end of the connection to the name server."""
        (attempt,) = self.reactor.tcpClients
        return FarEnd(attempt[2].buildProtocol(None), turn=lambda: self.reactor.advance(0))


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Scene]:
    """A broker that demands TLS, and uses it."""
    scene = Scene(tmp_path, TlsConfig(server_mode="enforcing"), use_tls=True)
    scene.broker.start()
    yield scene
    scene.broker.stop()
    scene.reactor.advance(60)


def test_both_ports_take_encrypted_connections_only(started: Scene) -> None:
    assert len(started.reactor.tcpServers) == 3, "and one for slaves, who do not encrypt"
    for port in range(2):
        client = SecuredEnd(started.accept(port), client_of(), server_side=False)
        (answer,) = client.tell(RemotingCommand(9_999, opaque=7))
        assert (answer.opaque, answer.code) == (7, 3)
        plain = started.accept(port)
        with capturedLogs():
            assert plain.tell(RemotingCommand(9_999)) == []
        assert plain.wire.disconnecting


def test_it_registers_on_an_encrypted_connection(started: Scene) -> None:
    far = SecuredEnd(started.name_server(), server_of(), server_side=True)
    assert [each.code for each in far.heard] == [RequestCode.REGISTER_BROKER]


def test_it_registers_in_the_clear_unless_that_is_set(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TlsConfig(server_mode="enforcing"), use_tls=False)
    scene.broker.start()
    (asked,) = scene.name_server().heard()
    assert asked.code == RequestCode.REGISTER_BROKER
    scene.broker.stop()
    scene.reactor.advance(60)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"server_cert_path": "/no.pem"}, "tls.server.certPath is /no.pem, which cannot be read"),
        ({"client_cert_path": "/no.pem"}, "tls.client.certPath is /no.pem, which cannot be read"),
        (
            {"client_auth_server": True, "client_trust_cert_path": __file__},
            "tls.client.trustCertPath is .*, which holds no certificate in PEM",
        ),
    ],
)
def test_certificates_that_cannot_be_used_stop_the_start_before_the_store_is_opened(
    tmp_path: Path, files: dict[str, Any], why: str
) -> None:
    own = certified(tmp_path, "broker")
    paths = ("server_cert_path", "server_key_path", "client_cert_path", "client_key_path")
    tls = TlsConfig(**{"test_mode": False, **dict.fromkeys(paths, own), **files})
    scene = Scene(tmp_path, tls, use_tls=True)
    with pytest.raises(ConfigError, match=why):
        scene.broker.start()
    assert not scene.folder.exists()
    assert not scene.reactor.tcpServers
    fired: list[object] = []
    scene.broker.stop().addCallback(fired.append)
    assert fired == [None]
    assert not scene.reactor.getDelayedCalls()
