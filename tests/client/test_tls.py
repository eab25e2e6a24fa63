# SPDX-License-Identifier: Apache-2.0
"""Certificates of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock, StringTransport

from txrocketmq.client.config import ClientConfig
from txrocketmq.client.tls import wrap_of

OpenSSL = pytest.importorskip("OpenSSL")


@pytest.fixture
def pem(tmp_path: Path) -> tuple[str, str]:
    """A certificate that signs itself, and its key."""
    ssl = pytest.importorskip("twisted.internet.ssl")
    key = ssl.KeyPair.generate(size=2048)
    name = ssl.DistinguishedName(commonName="broker")
    request = key.certificateRequest(name)
    certificate = key.signCertificateRequest(name, request, lambda _: True, 1)
    own = ssl.Certificate.load(certificate)
    (tmp_path / "cert.pem").write_bytes(own.dumpPEM())
    pem = OpenSSL.crypto.dump_privatekey(OpenSSL.crypto.FILETYPE_PEM, key.original)
    (tmp_path / "key.pem").write_bytes(pem)
    return str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")


def test_without_tls_endpoints_stay_as_they_are() -> None:
    assert wrap_of(ClientConfig(), MemoryReactorClock()) is None


def test_an_endpoint_is_wrapped(pem: tuple[str, str]) -> None:
    certificate, key = pem
    reactor = MemoryReactorClock()
    config = ClientConfig(
        use_tls=True, tls_trust_cert_path=certificate, tls_cert_path=certificate, tls_key_path=key
    )
    wrap = wrap_of(config, reactor)
    assert wrap is not None
    wrap(TCP4ClientEndpoint(reactor, "127.0.0.1", 10911)).connect(Factory.forProtocol(Protocol))
    outer: Any = reactor.tcpClients[0][2].buildProtocol(None)
    outer.makeConnection(StringTransport())
    assert outer.transport.value()[:1] == b"\x16", "it begins with a handshake"
    inner = outer._wrappedProtocol.wrappedProtocol
    inner.transport.write(b"x")
    assert reactor.getDelayedCalls(), "what is written leaves by this reactor"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"tls_trust_cert_path": "/nowhere.pem"}, "tls_trust_cert_path is /nowhere.pem, which"),
        ({"tls_trust_cert_path": __file__}, "holds no certificate or key"),
        ({"tls_cert_path": "c.pem"}, "belong together"),
    ],
)
def test_what_cannot_be_used_is_said(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        wrap_of(ClientConfig(use_tls=True, **settings), MemoryReactorClock())  # type: ignore[arg-type]
