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
from txrocketmq.remoting.transport.client import Connections, as_deferred
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import *
key = ssl.KeyPair.generate(size=2048)
name = ssl.DistinguishedName(commonName="broker")
request = key.certificateRequest(name)
cert = ssl.Certificate.load(key.signCertificateRequest(name, request, lambda _: True, 1))
d = Path(sys.argv[1])
(d / 'c.pem').write_bytes(cert.dumpPEM())
(d / 'k.pem').write_bytes(crypto.dump_privatekey(crypto.FILETYPE_PEM, key.original))
class P:
    @serves(offset.GET_MAX_OFFSET)
    def m(self, request): return Reply(GetMaxOffsetResponseHeader(offset=9))
async def main(reactor):
    clock = Clock(reactor)
    disp = Dispatcher(Registry(P()), clock.now_ms, clock.steady_ms)
    class F(Factory):
        def buildProtocol(self, addr): return TcpPeer(clock, disp.serve)
    own = ssl.PrivateCertificate.loadPEM((d/'k.pem').read_bytes() + (d/'c.pem').read_bytes())
    port = await SSL4ServerEndpoint(reactor, 0, own.options(), interface="127.0.0.1").listen(F())
    trusts = {'tls_trust_cert_path': str(d / 'c.pem')}
    own = {'tls_cert_path': str(d / 'c.pem'), 'tls_key_path': str(d / 'k.pem')}
    for settings in ({}, trusts, {**trusts, **own}):
        wrap = wrap_of(ClientConfig(use_tls=True, **settings), reactor)
        c = Connections(Clock(reactor), wrap=wrap)
        where = f'127.0.0.1:{port.getHost().port}'
        header = GetMaxOffsetRequestHeader(topic='T', queue_id=0)
        asked = c.invoke(where, offset.GET_MAX_OFFSET, header, timeout_ms=60000)
        r = await as_deferred(asked)
        print(len(settings), r.header.offset)
        c.close()
    await port.stopListening()
react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
"""


@pytest.mark.timeout(200)
def test_requests_are_answered_over_tls(tmp_path: Path) -> None:
    pytest.importorskip("OpenSSL")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["0", "9", "1", "9", "3", "9"]
