# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: of servers that are not checked, that are, and that check too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from OpenSSL import crypto
from twisted.internet import ssl
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.internet.task import react
from txrocketmq.client.config import ClientConfig
from txrocketmq.client.tls import wrap_of
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.transport.client import Connections, as_deferred
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import *

folder = Path(sys.argv[1])

def make(name):
    key = ssl.KeyPair.generate(size=2048)
    subject = ssl.DistinguishedName(commonName=name)
    request = key.certificateRequest(subject)
    cert = ssl.Certificate.load(key.signCertificateRequest(subject, request, lambda _: True, 1))
    pem = crypto.dump_privatekey(crypto.FILETYPE_PEM, key.original)
    (folder / f"{name}.pem").write_bytes(cert.dumpPEM())
    (folder / f"{name}.key").write_bytes(pem)
    return ssl.PrivateCertificate.loadPEM(pem + cert.dumpPEM())

class Serving:
    @serves(offset.GET_MAX_OFFSET)
    def max_offset(self, request):
        return Reply(GetMaxOffsetResponseHeader(offset=9))

async def main(reactor):
    broker, client, other = make("broker"), make("client"), make("other")
    clock = Clock(reactor)
    serving = Dispatcher(Registry(Serving()), clock.now_ms, clock.steady_ms)

    class Peers(Factory):
        def buildProtocol(self, address):
            return TcpPeer(clock, serving.serve)

    trusting = {"tls_trust_cert_path": str(folder / "broker.pem")}
    misled = {"tls_trust_cert_path": str(folder / "other.pem")}

    def named(name):
        paths = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
        return {"tls_cert_path": paths[0], "tls_key_path": paths[1]}

    open_to_all, asks = broker.options(), broker.options(ssl.Certificate.load(client.dump()))
    for what, options, settings in [
        ("unchecked", open_to_all, {}),
        ("checked", open_to_all, trusting),
        ("misled", open_to_all, misled),
        ("known", asks, {**trusting, **named("client")}),
        ("nameless", asks, trusting),
        ("stranger", asks, {**trusting, **named("other")}),
    ]:
        endpoint = SSL4ServerEndpoint(reactor, 0, options, interface="127.0.0.1")
        port = await endpoint.listen(Peers())
        wrap = wrap_of(ClientConfig(use_tls=True, **settings), reactor)
        connections = Connections(Clock(reactor), wrap=wrap)
        header = GetMaxOffsetRequestHeader(topic="T", queue_id=0)
        try:
            where = f"127.0.0.1:{port.getHost().port}"
            asked = connections.invoke(where, offset.GET_MAX_OFFSET, header, timeout_ms=60_000)
            reply = await as_deferred(asked)
            print(what, reply.header.offset)
        except RemotingError as error:
            print(what, error)
        connections.close()
        await port.stopListening()

react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
"""


@pytest.mark.timeout(200)
def test_requests_are_answered_over_tls_where_each_end_trusts_the_other(tmp_path: Path) -> None:
    pytest.importorskip("OpenSSL")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert [said[kind] for kind in ("unchecked", "checked", "known")] == ["9"] * 3
    assert "certificate verify failed" in said["misled"]
    assert "was lost: " in said["nameless"], "the server asks for a certificate"
    assert "certificate required" in said["nameless"]
    assert "was lost: " in said["stranger"], "the server does not trust the certificate"
