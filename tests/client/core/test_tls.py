# SPDX-License-Identifier: Apache-2.0
"""Certificates of the settings."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock

from tests.certificates import PASSWORD, apart, both_ends, certified, with_password
from tests.remoting.transport.secured import server_of
from tests.remoting.transport.wires import FarEnd
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.core.tls import contexts_of
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings.tls import TlsConfig, server_context


def server(folder: Path, **settings: Any) -> ssl.SSLContext:
    """A server with a certificate of its own that clients may know."""
    own = certified(folder, "broker")
    return server_context(
        TlsConfig(test_mode=False, server_cert_path=own, server_key_path=own, **settings)
    )


def client(**settings: Any) -> ssl.SSLContext:
    made = contexts_of(ClientConfig(use_tls=True, **settings))
    assert made is not None
    return made()


def test_without_tls_nothing_is_encrypted_or_read() -> None:
    assert contexts_of(ClientConfig()) is None
    assert contexts_of(ClientConfig(tls_trust_cert_path="/nowhere.pem")) is None


def test_servers_are_checked_if_there_are_certificates_to_check_them_by(tmp_path: Path) -> None:
    assert both_ends(server_of(), client()) is None
    known = client(tls_trust_cert_path=certified(tmp_path, "broker"))
    assert both_ends(server(tmp_path), known) is None
    assert isinstance(both_ends(server_of(), known), ssl.SSLCertVerificationError)


def test_servers_that_ask_are_shown_a_certificate(tmp_path: Path) -> None:
    asking = server(
        tmp_path,
        server_client_auth="require",
        server_auth_client=True,
        server_trust_cert_path=certified(tmp_path, "client"),
    )
    certificate, key = apart(tmp_path, "client")
    assert both_ends(asking, client(tls_cert_path=certificate, tls_key_path=key)) is None
    as_paths = client(tls_cert_path=Path(certificate), tls_key_path=Path(key))
    assert both_ends(asking, as_paths) is None
    assert both_ends(asking, client()) is not None


@pytest.mark.parametrize("use_tls", [False, True])
def test_an_instance_encrypts_its_connections_on_request(use_tls: bool) -> None:
    reactor: Any = MemoryReactorClock()
    config = ClientConfig(namesrv_addr="127.0.0.1:9876", use_tls=use_tls)
    instance = ClientInstance(config, Clock(reactor))
    instance.refresh("T")
    (attempt,) = reactor.tcpClients
    end = FarEnd(attempt[2].buildProtocol(None), turn=lambda: reactor.advance(0))
    end.turn()
    assert (end.wire.value()[:1] == b"\x16") is use_tls, "it begins with a handshake"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"tls_trust_cert_path": "/nowhere.pem"}, "tls_trust_cert_path is /nowhere.pem, which"),
        ({"tls_trust_cert_path": __file__}, "tls_trust_cert_path is .*, which holds no cert"),
        ({"tls_cert_path": "c.pem"}, "tls_cert_path and tls_key_path belong together"),
        ({"tls_key_path": "k.pem"}, "tls_cert_path and tls_key_path belong together"),
        (
            {"tls_cert_path": __file__, "tls_key_path": __file__},
            "tls_cert_path=.* and tls_key_path=.* hold no certificate in PEM",
        ),
    ],
)
def test_what_cannot_be_used_is_said(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        client(**settings)


def test_names_are_checked_on_request(tmp_path: Path) -> None:
    trusted = certified(tmp_path, "broker")
    strict = client(tls_trust_cert_path=trusted, tls_check_name=True)
    assert both_ends(server(tmp_path), strict, "broker") is None
    error = both_ends(server(tmp_path), strict, "other")
    assert isinstance(error, ssl.SSLCertVerificationError)
    assert "not valid for 'other'" in str(error)
    assert both_ends(server(tmp_path), client(tls_trust_cert_path=trusted), "other") is None
    by_system = both_ends(server_of(), client(tls_check_name=True), "localhost")
    assert isinstance(by_system, ssl.SSLCertVerificationError), "the certificates of the system"


def test_a_renewed_certificate_is_shown_by_connections_that_begin_later(tmp_path: Path) -> None:
    own = Path(certified(tmp_path, "own"))
    config = ClientConfig(use_tls=True, tls_cert_path=str(own), tls_key_path=str(own))
    current = contexts_of(config)
    assert current is not None
    first = current()
    assert current() is first
    own.write_bytes(Path(certified(tmp_path, "renewed")).read_bytes())
    assert current() is not first


def test_the_key_of_a_client_may_have_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, _ = apart(tmp_path, "client")
    files = {"tls_cert_path": certificate, "tls_key_path": with_password(tmp_path, "client")}
    assert isinstance(client(tls_key_password=PASSWORD, **files), ssl.SSLContext)
    with pytest.raises(ValueError, match="or the password of the key is wrong"):
        client(**files)
    monkeypatch.setenv("ROCKETMQ_TLS_KEY_PASSWORD", PASSWORD)
    assert isinstance(client(**files), ssl.SSLContext)
    assert PASSWORD not in repr(ClientConfig())
