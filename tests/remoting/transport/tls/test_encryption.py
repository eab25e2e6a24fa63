# SPDX-License-Identifier: Apache-2.0
"""Ports that take encrypted connections, and others or none of these."""

from __future__ import annotations

import gc
import shutil
import ssl
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock as TaskClock
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs, formatEvent

from tests.certificates import certified
from tests.remoting.transport.secured import SecuredEnd, client_of
from tests.remoting.transport.test_peer import Real
from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import TlsError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.process.log_limit import Seldom
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import (
    DISABLED,
    ENFORCING,
    PERMISSIVE,
    TlsConfig,
    client_context,
)
from txrocketmq.remoting.transport.held_bytes import HeldBytes
from txrocketmq.remoting.transport.outlet import TransportOutlet
from txrocketmq.remoting.transport.peer import MAX_BUFFERED_BYTES, TcpPeer
from txrocketmq.remoting.transport.peer_state import CLOSING, OPEN, PAUSED
from txrocketmq.remoting.transport.strangers import Shared
from txrocketmq.remoting.transport.tls.encryption import Encryption
from txrocketmq.remoting.transport.turns import ENDLESS

HELLO = b"\x16\x03\x01\x00\x05hello"
UNKNOWN = 9_999
"""A request code that is answered, though only with code 3."""


def serving(encryption: Encryption) -> FarEnd:
    """The far end of a connection that the rules apply to."""
    dispatcher = Dispatcher(Registry(), lambda: 0, lambda: 0)
    return FarEnd(TcpPeer(Clock(TaskClock()), dispatcher.serve, choose=encryption.choose))


def secured(encryption: Encryption, context: ssl.SSLContext | None = None) -> SecuredEnd:
    return SecuredEnd(serving(encryption), context or client_of(), server_side=False)


def prepared(**settings: Any) -> Encryption:
    encryption = Encryption(TlsConfig(**settings))
    encryption.prepare()
    return encryption


def of_files(folder: Path, **settings: Any) -> dict[str, Any]:
    """Settings with a certificate of the server `first`."""
    shutil.copy(certified(folder, "first"), folder / "own.pem")
    own = str(folder / "own.pem")
    return {"test_mode": False, "server_cert_path": own, "server_key_path": own, **settings}


# ----------------------------------------------------------------------------- who may come


@pytest.mark.parametrize("mode", [PERMISSIVE, ENFORCING])
def test_encrypted_requests_are_answered(mode: str) -> None:
    client = secured(prepared(server_mode=mode))
    for opaque in range(3):
        (answer,) = client.tell(RemotingCommand(UNKNOWN, opaque=opaque, body=b"x" * 400_000))
        assert (answer.opaque, answer.code) == (opaque, 3)
    assert client.end.protocol.state is OPEN


@pytest.mark.parametrize("mode", [PERMISSIVE, DISABLED])
def test_others_are_answered_on_the_same_port(mode: str) -> None:
    end = serving(prepared(server_mode=mode))
    (answer,) = end.tell(RemotingCommand(UNKNOWN, opaque=7))
    assert answer.opaque == 7
    assert type(end.protocol._outlet) is TransportOutlet, "plain connections cost nothing more"


def test_who_begins_in_the_clear_cannot_encrypt_later() -> None:
    end = serving(prepared())
    end.tell(RemotingCommand(UNKNOWN))
    with capturedLogs() as events:
        end.protocol.dataReceived(HELLO)
    assert len(events) == 1
    assert end.protocol.state is CLOSING


@pytest.mark.parametrize(
    ("mode", "first", "why"),
    [
        (
            ENFORCING,
            b"\0\0\0\x10",
            "it does not encrypt, which tls.server.mode=enforcing demands; clients do with ",
        ),
        (ENFORCING, b"GET / HTTP/1.1\r\n\r\n", "it does not encrypt, which tls.server.mode=enf"),
        (DISABLED, HELLO, "it speaks TLS, which tls.server.mode=disabled forbids"),
        (PERMISSIVE, HELLO, "no TLS handshake: "),
    ],
)
def test_who_does_not_keep_the_rules_is_closed_with_one_sentence(
    mode: str, first: bytes, why: str
) -> None:
    end = serving(prepared(server_mode=mode))
    with capturedLogs() as events:
        end.protocol.dataReceived(first)
        end.protocol.dataReceived(b"more")
    assert end.wire.disconnecting
    (said,) = map(formatEvent, events)
    assert said.startswith(f"closing 127.0.0.1:50000: {why}")


def test_nothing_is_served_of_who_does_not_keep_the_rules() -> None:
    end = serving(prepared(server_mode=ENFORCING))
    with capturedLogs():
        assert end.tell(RemotingCommand(UNKNOWN), RemotingCommand(UNKNOWN)) == []
        assert end.tell(RemotingCommand(UNKNOWN)) == [], "nor later"
    end = serving(prepared(server_mode=DISABLED))
    with capturedLogs():
        client = SecuredEnd(end, client_of(), server_side=False)
    assert end.wire.value() == b""
    assert client.far.error is None


def test_who_has_no_certificate_where_one_is_required_is_closed(tmp_path: Path) -> None:
    encryption = prepared(
        **of_files(
            tmp_path,
            server_client_auth="require",
            server_auth_client=True,
            server_trust_cert_path=certified(tmp_path, "client"),
        )
    )
    with capturedLogs() as events:
        client = secured(encryption)
    assert [formatEvent(event) for event in events] == [
        "closing 127.0.0.1:50000: no TLS handshake: peer did not return a certificate"
    ]
    assert client.far.error is not None
    assert client.far.error.reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    assert client.end.wire.disconnecting
    own = certified(tmp_path, "client")
    known = secured(encryption, client_context(certificate=("", own), key=("", own)))
    assert len(known.tell(RemotingCommand(UNKNOWN))) == 1


# -------------------------------------------------------------------------------- connections


def test_nothing_is_answered_in_the_clear() -> None:
    client = secured(prepared())
    client.end.protocol.write([b"secret", memoryview(b"secret")])
    sent = client.end.wire.value()
    assert len(sent) > len(b"secretsecret")
    assert b"secret" not in sent


def test_a_server_that_closes_says_so() -> None:
    client = secured(prepared())
    client.end.protocol.close()
    client.hear()
    assert client.far.is_told_the_end
    assert client.end.wire.disconnecting


class RealSecured(Real):
    """A peer on a real socket, behind TLS."""

    def __init__(self) -> None:
        super().__init__(choose=prepared().choose)
        self.tls = client_of().wrap_bio(came := ssl.MemoryBIO(), leaves := ssl.MemoryBIO())
        self.came, self.leaves = came, leaves
        for _ in range(2):
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.peer.dataReceived(leaves.read())
                came.write(self.drain())
        self.peer.dataReceived(leaves.read())
        came.write(self.drain())

    def read(self) -> bytes:
        """All that arrives, decrypted."""
        self.came.write(self.drain())
        said: list[bytes] = []
        while True:
            try:
                part = self.tls.read(1 << 20)
            except ssl.SSLWantReadError:
                part = b""
            if not part:
                return b"".join(said)
            said.append(part)


@pytest.fixture
def real() -> Iterator[RealSecured]:
    made = RealSecured()
    yield made
    made.far.close()
    made.transport.socket.close()


def test_a_client_that_does_not_read_is_paused_then_given_up(real: RealSecured) -> None:
    piece = bytes(1 << 20)
    real.peer.write([piece])
    assert real.peer.state is PAUSED
    assert real.peer._outlet.unsent_bytes() > len(piece) // 2
    assert real.read() == piece
    assert real.peer.state is OPEN
    for _ in range(MAX_BUFFERED_BYTES // len(piece)):
        real.peer.write([piece])
    assert not real.transport._aborting
    with capturedLogs() as events:
        for _ in range(2):
            real.peer.write([piece])
    assert real.transport._aborting
    assert "it does not read" in formatEvent(events[0])


def test_a_client_that_reads_slowly_gets_all_before_the_end(real: RealSecured) -> None:
    real.peer.write([b"a" * 3_000_000])
    real.peer.write([b"end"])
    real.peer.close()
    assert real.read() == b"a" * 3_000_000 + b"end"


# ------------------------------------------------------------------------------- certificates


def subject(client: SecuredEnd) -> str:
    """The name in the certificate that the server has shown."""
    shown = client.far.tls.getpeercert()
    assert shown is not None
    return str(dict(part[0] for part in shown["subject"])["commonName"])  # type: ignore[misc]


def trusting(folder: Path) -> ssl.SSLContext:
    """Of a client that trusts both the server's certificates, before and after the change."""
    context = client_context(trust=("", certified(folder, "first")), checks=True)
    context.load_verify_locations(certified(folder, "second"))
    return context


def test_new_certificates_are_shown_to_those_who_come_then(tmp_path: Path) -> None:
    encryption, context = prepared(**of_files(tmp_path)), trusting(tmp_path)
    before = secured(encryption, context)
    assert subject(before) == "first"
    shutil.copy(certified(tmp_path, "second"), tmp_path / "new.pem")
    (tmp_path / "new.pem").rename(tmp_path / "own.pem")
    assert subject(secured(encryption, context)) == "second"
    assert len(before.tell(RemotingCommand(UNKNOWN))) == 1, "connections go on"


def test_certificates_that_cannot_be_used_do_not_replace_others(tmp_path: Path) -> None:
    encryption, context = prepared(**of_files(tmp_path)), trusting(tmp_path)
    for broken in ("no certificate", None):
        with capturedLogs() as events:
            if broken is None:
                (tmp_path / "own.pem").unlink()
            else:
                (tmp_path / "own.pem").write_text(broken)
            assert [subject(secured(encryption, context)) for _ in range(3)] == ["first"] * 3
        (said,) = map(formatEvent, events)
        assert said.startswith(
            "the certificates have changed and cannot be used, those before stay:"
            " tls.server.certPath"
        )
    shutil.copy(certified(tmp_path, "second"), tmp_path / "own.pem")
    assert subject(secured(encryption, context)) == "second"


def test_whom_to_trust_may_change_too(tmp_path: Path) -> None:
    trust = tmp_path / "trust.pem"
    shutil.copy(certified(tmp_path, "somebody"), trust)
    demanding = {
        "server_client_auth": "require", "server_auth_client": True,
        "server_trust_cert_path": str(trust),
    }  # fmt: skip
    encryption = prepared(**of_files(tmp_path, **demanding))
    own = certified(tmp_path, "a-new-client")
    context = client_context(certificate=("", own), key=("", own))
    with capturedLogs():
        assert secured(encryption, context).far.error is not None
    shutil.copy(own, trust)
    assert secured(encryption, context).far.error is None


def test_a_certificate_of_its_own_is_the_same_for_all() -> None:
    encryption = prepared()
    clients = [secured(encryption) for _ in range(2)]
    shown = {client.far.tls.getpeercert(binary_form=True) for client in clients}
    assert len(shown) == 1


@pytest.mark.parametrize("mode", [PERMISSIVE, ENFORCING])
def test_files_that_cannot_be_used_stop_the_start(tmp_path: Path, mode: str) -> None:
    settings = of_files(tmp_path, server_mode=mode)
    (tmp_path / "own.pem").unlink()
    with pytest.raises(ConfigError, match="tls.server.certPath is .*own.pem, which cannot be read"):
        prepared(**settings)


def test_files_that_nobody_needs_need_not_be_there(tmp_path: Path) -> None:
    prepared(**of_files(tmp_path, server_mode=DISABLED, server_cert_path="/no.pem"))


# --------------------------------------------------------------------- what is not installed


@pytest.fixture
def without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it was left out of an installation."""
    monkeypatch.delitem(sys.modules, "txrocketmq.remoting.settings.self_signed", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)


@pytest.mark.usefixtures("without_cryptography")
def test_who_is_asked_for_a_certificate_and_can_make_none_says_what_is_missing() -> None:
    encryption = prepared()
    for _ in range(2):
        end = serving(encryption)
        with capturedLogs() as events:
            end.protocol.dataReceived(HELLO)
        (said,) = map(formatEvent, events)
        assert said.startswith(
            "closing 127.0.0.1:50000: it speaks TLS, but a certificate can be made only with the"
            " package cryptography, which is missing: pip install cryptography, or give one with "
        )
    assert len(serving(encryption).tell(RemotingCommand(UNKNOWN))) == 1, "others are served"


@pytest.mark.usefixtures("without_cryptography")
def test_who_has_to_encrypt_and_can_make_no_certificate_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pip install cryptography"):
        prepared(server_mode=ENFORCING)
    encryption = prepared(**of_files(tmp_path, server_mode=ENFORCING))
    assert len(secured(encryption).tell(RemotingCommand(UNKNOWN))) == 1


def test_the_error_is_one_of_remoting() -> None:
    """So that a peer closes the connection, as after a frame that is none."""
    with pytest.raises(TlsError):
        prepared(server_mode=DISABLED).choose(None, HELLO)  # type: ignore[arg-type]


def test_a_server_without_encrypted_clients_does_without_what_encrypts() -> None:
    program = """
import sys
import weakref
from txrocketmq.remoting.process.without_pyopenssl import leave_out_pyopenssl
leave_out_pyopenssl()
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.tls.encryption import Encryption
encryption = Encryption(TlsConfig())
encryption.prepare()
assert encryption.choose("plain", bytes(4)) == "plain"
print([name for name in sys.modules if name.endswith(("tls_outlet", "self_signed"))],
      encryption._contexts._context, "cryptography" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[] None False\n"


def test_many_refusals_of_one_kind_do_not_hide_another() -> None:
    encryption, seldom, clock = prepared(server_mode=ENFORCING), Seldom(2), Clock(TaskClock())
    held = HeldBytes(lambda: 1 << 20, seldom, clock.steady_ms)
    shared = Shared(ENDLESS, held, seldom)

    def refused(data: bytes) -> None:
        peer = TcpPeer(clock, lambda *_: 0, choose=encryption.choose, shared=shared)
        FarEnd(peer).protocol.dataReceived(data)
        assert peer.state is CLOSING

    with capturedLogs() as events:
        for _ in range(9):
            refused(b"\0\0\0\x10")
        refused(HELLO)
    reasons = [formatEvent(event).partition(": ")[2] for event in events]
    assert [reason.split(",")[0].split(":")[0] for reason in reasons] == [
        *["it does not encrypt"] * 2, "no TLS handshake",
    ]  # fmt: skip


@pytest.mark.parametrize("is_known", [False, True])
def test_a_connection_leaves_nothing_behind(is_known: bool) -> None:
    """The state of a handshake takes 45 KiB, which the garbage collector does not see."""
    encryption = prepared()
    gc.collect()
    gc.disable()
    try:
        end = secured(encryption).end if is_known else serving(encryption)
        outlet = weakref.ref(end.protocol._outlet)
        if not is_known:
            end.protocol.dataReceived(HELLO)
            assert end.protocol.state is CLOSING
            outlet = weakref.ref(end.protocol._outlet)
        if is_known:
            end.wire.unregisterProducer()  # as Twisted does it when a connection is lost
        end.leave()
        assert outlet() is not None
        del end
        assert outlet() is None
    finally:
        gc.enable()


def test_the_state_of_each_encrypted_connection_is_counted_with_what_is_held() -> None:
    encryption, clock, seldom = prepared(), Clock(TaskClock()), Seldom(5)
    held = HeldBytes(lambda: 1 << 30, seldom, clock.steady_ms)
    peer = TcpPeer(
        clock, lambda *_: 0, choose=encryption.choose, shared=Shared(ENDLESS, held, seldom)
    )
    end = SecuredEnd(FarEnd(peer), client_of(), server_side=False)
    assert 24 * 1024 < held.total == peer.held_bytes < 64 * 1024
    end.end.wire.unregisterProducer()
    end.end.leave()
    assert held.total == 0


def _first_words(*protocols: str) -> bytes:
    """The first bytes of a client of TLS that offers protocols."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    leaves = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), leaves).do_handshake()
    return leaves.read()


@pytest.mark.parametrize("protocols", [("h2",), ("grpc-exp", "h2"), ("h2", "http/1.1")])
def test_who_wants_grpc_is_told_of_its_port(protocols: tuple[str, ...]) -> None:
    plain = TransportOutlet(StringTransport())
    with pytest.raises(TlsError, match="speaks HTTP/2 in TLS to the remoting port; .*8081"):
        Encryption(TlsConfig()).choose(plain, _first_words(*protocols))
    assert Encryption(TlsConfig(), ("h2",)).choose(plain, _first_words(*protocols)) is not plain


@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
def test_others_are_not(protocols: tuple[str, ...]) -> None:
    plain = TransportOutlet(StringTransport())
    assert Encryption(TlsConfig()).choose(plain, _first_words(*protocols)) is not plain
