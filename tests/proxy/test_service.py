# SPDX-License-Identifier: Apache-2.0
"""A proxy as a whole: how it begins and ends."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock

from tests.certificates import apart
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.proxy.service import Proxy, shown_certificate
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import ENFORCING, TlsConfig


def a_proxy(reactor: Any, **settings: Any) -> Proxy:
    """A proxy in front of a name server that is not there."""
    config = ProxyConfig(namesrv_addr="127.0.0.1:1", bind_address="127.0.0.1", **settings)
    return Proxy(config, MessagingConfig(), Clock(reactor), places={"1.2.3.4:5": "127.0.0.1:5"})


def test_it_listens_and_stops() -> None:
    reactor: Any = MemoryReactorClock()
    proxy = a_proxy(reactor)
    proxy.start()
    ((port, factory, _, interface),) = reactor.tcpServers
    assert (port, interface) == (8081, "127.0.0.1")
    assert proxy.messaging.connections.places == {"1.2.3.4:5": "127.0.0.1:5"}
    stopped = proxy.stop()
    reactor.advance(1)
    assert stopped.called
    assert not factory.numPorts


@pytest.mark.parametrize("is_settled", [True, False])
def test_it_gives_back_before_it_leaves_the_brokers(
    monkeypatch: pytest.MonkeyPatch, is_settled: bool
) -> None:
    reactor: Any = MemoryReactorClock()
    proxy = a_proxy(reactor)
    proxy.start()
    settled: Deferred[None] = Deferred()
    left: list[str] = []
    monkeypatch.setattr(proxy.messaging.receives, "settled", lambda: settled)
    monkeypatch.setattr(proxy.messaging, "stop", lambda: left.append("left"))
    proxy.stop()
    reactor.advance(1)
    assert left == []
    if is_settled:
        settled.callback(None)
    else:
        reactor.advance(3)
    assert left == ["left"]


def test_it_does_not_import_the_consumers_and_producers_of_programs() -> None:
    """Which are a hundred modules, and a quarter of the time until it is ready."""
    program = """
import sys
import txrocketmq.proxy.__main__, txrocketmq.proxy.service
of_programs = ("blocking", "aio", "tx", "admin", "faces", "consumer.push", "producer.producer")
print([name for name in of_programs if "txrocketmq.client." + name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_it_serves_the_service_of_rocketmq() -> None:
    found = a_proxy(MemoryReactorClock()).server.service.rpcs.find(
        "/apache.rocketmq.v2.MessagingService/SendMessage"
    )
    assert found is not None
    assert found.rpc.most_bytes is None


@pytest.mark.parametrize(
    ("addresses", "why"), [(" ; ", "namesrvAddr is not set"), ("a", "namesrvAddr: ")]
)
def test_name_servers_are_needed(addresses: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Proxy(ProxyConfig(namesrv_addr=addresses), MessagingConfig(), Clock(MemoryReactorClock()))


def test_accounts_need_an_account_of_the_proxy() -> None:
    config = ProxyConfig(namesrv_addr="127.0.0.1:1")
    accounts = AccountsConfig(authentication_enabled=True)
    clock = Clock(MemoryReactorClock())
    with pytest.raises(ConfigError, match="authenticationEnabled needs innerClientAuth"):
        Proxy(config, MessagingConfig(), clock, accounts=accounts)
    credentials = '{"accessKey":"inner","secretKey":"inner-secret"}'
    accounts = replace(accounts, inner_client_authentication_credentials=credentials)
    proxy = Proxy(config, MessagingConfig(), clock, accounts=accounts)
    assert proxy.messaging.gate is not None
    seal: Any = proxy.messaging.connections._seal
    fields: dict[str, str] = {}
    seal(fields, b"")
    assert fields["AccessKey"] == "inner"


def test_the_certificate_is_that_of_its_own_settings(tmp_path: Path) -> None:
    tls = TlsConfig(server_mode=ENFORCING)
    assert shown_certificate(ProxyConfig(), tls) is tls
    cert, key = apart(tmp_path, "proxy")
    config = ProxyConfig(tls_test_mode_enable=False, tls_cert_path=cert, tls_key_path=key)
    shown = shown_certificate(config, tls)
    assert (shown.server_cert_path, shown.server_key_path) == (cert, key)
    assert shown.server_mode == ENFORCING
    with pytest.raises(ConfigError, match="certPath"):
        shown_certificate(ProxyConfig(tls_test_mode_enable=False), tls)


def test_metrics_have_a_port() -> None:
    reactor: Any = MemoryReactorClock()
    proxy = a_proxy(reactor, metrics_exporter_type="PROM", metrics_prom_exporter_port=5_557)
    proxy.start()
    assert [server[0] for server in reactor.tcpServers] == [8081, 5_557]
    names = {each.name for each in proxy._metrics({})()}
    assert {"rocketmq_proxy_up", "txrocketmq_proxy_calls", "txrocketmq_peers_held_bytes"} <= names
