# SPDX-License-Identifier: Apache-2.0
"""Connections that we encrypt: used after the handshake, or not at all."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.certificates import certified
from tests.remoting.transport.scene import HERE, WHERE, Scene, answer
from tests.remoting.transport.secured import VERSIONS, SecuredEnd, client_of, server_of
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ConnectError, SendError
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.settings.tls import TlsConfig, client_context, server_context
from txrocketmq.remoting.transport.asking.asking_peer import AskingPeer
from txrocketmq.remoting.transport.client import CONNECT_TIMEOUT_MS


def accepted(scene: Scene, context: ssl.SSLContext | None = None) -> SecuredEnd:
    """The other end of the connection, after the handshake, whatever became of that."""
    return SecuredEnd(scene.accept(), context or server_of(), server_side=True)


def why(scene: Scene) -> str:
    """Why the only request has failed."""
    (error,) = scene.outcomes
    assert isinstance(error, ConnectError)
    text = str(error)
    assert text.startswith(f"connect to {HERE} failed: ")
    return text.removeprefix(f"connect to {HERE} failed: ")


@pytest.fixture
def scene() -> Scene:
    return Scene(tls=client_of())


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_wait_for_the_handshake_and_leave_together(version: ssl.TLSVersion) -> None:
    scene = Scene(tls=client_of(version))
    connected: list[str] = []
    scene.connections.on_connected = connected.append
    scene.ask()
    end = scene.accept()
    scene.ask()
    assert end.wire.value()[:1] == b"\x16", "it begins with a handshake"
    assert b"body" not in end.wire.value()
    assert connected == []
    far = SecuredEnd(end, server_of(version), server_side=True)
    assert connected == [HERE]
    assert scene.attempts == 1
    asked = far.heard
    assert [each.body for each in asked] == [b"body"] * 2
    far.tell(*(answer(each, index) for index, each in enumerate(asked)))
    assert [each.header.offset for each in scene.outcomes] == [0, 1]
    scene.ask()
    (third,) = far.hear()
    far.tell(answer(third, 2))
    assert scene.outcomes[-1].header.offset == 2


def test_long_bodies_pass_both_ways(scene: Scene) -> None:
    scene.ask()
    far = accepted(scene)
    (asked,) = far.heard
    (peer,) = scene.connections._peers.values()
    received: list[int] = []

    def serve(_: object, commands: Sequence[RemotingCommand], __: object) -> int:
        received.extend(len(each.body) for each in commands)
        return len(commands)

    peer._serve = serve
    far.tell(*(RemotingCommand(1, body=bytes(3_000_000)) for _ in range(2)))
    assert received == [3_000_000] * 2
    far.tell(answer(asked))
    assert scene.outcomes[0].header.offset == 5


# ------------------------------------------------------------------------------- no handshake


def test_a_server_that_is_not_trusted_is_told_nothing(tmp_path: Path) -> None:
    scene = Scene(tls=client_context(trust=("", certified(tmp_path, "other")), checks=True))
    scene.ask()
    with capturedLogs() as events:
        far = accepted(scene)
    assert far.heard == []
    assert far.far.error is not None
    assert far.far.error.reason == "TLSV1_ALERT_UNKNOWN_CA"
    assert far.end.wire.disconnecting
    assert scene.outcomes == []
    far.end.leave()
    assert why(scene) == "no TLS handshake: certificate verify failed (self-signed certificate)"
    assert events == [], "who asks is told, so the log need not say it"
    scene.ask()
    assert scene.attempts == 2


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"\0\0\0\x10" + bytes(16), "wrong version number"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "wrong version number"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "sslv3 alert handshake failure"),
    ],
)
def test_a_server_that_answers_something_else(scene: Scene, said: bytes, reason: str) -> None:
    scene.ask()
    end = scene.accept()
    end.protocol.dataReceived(said)
    end.protocol.dataReceived(said)
    assert end.wire.disconnecting
    end.leave()
    assert why(scene).startswith("no TLS handshake: ")
    assert reason in why(scene)


def test_a_server_that_ends_the_connection_instead(scene: Scene) -> None:
    scene.ask()
    scene.accept().leave()
    assert why(scene) == "no TLS handshake: Connection was closed cleanly."


def test_a_server_that_says_nothing_is_given_up(scene: Scene) -> None:
    scene.ask(timeout_ms=60_000)
    end = scene.accept()
    scene.pass_ms(CONNECT_TIMEOUT_MS)
    assert scene.outcomes == []
    scene.pass_ms(1_500)
    assert why(scene) == "no TLS handshake in time"
    assert end.wire.disconnected
    end.leave()
    assert len(scene.outcomes) == 1


def test_a_client_that_is_closed_gives_up_handshakes(scene: Scene) -> None:
    scene.ask()
    end = scene.accept()
    scene.connections.close()
    assert end.wire.disconnected
    assert isinstance(scene.outcomes[0], ConnectError)
    end.leave()
    scene.reactor.advance(0)
    assert not scene.reactor.getDelayedCalls()


# ------------------------------------------------------------------------------------ later


def demanding(folder: Path) -> ssl.SSLContext:
    """A server that takes only clients with a certificate."""
    own = certified(folder, "server")
    return server_context(
        TlsConfig(
            test_mode=False,
            server_cert_path=own,
            server_key_path=own,
            server_client_auth="require",
            server_auth_client=True,
            server_trust_cert_path=certified(folder, "client"),
        )
    )


def test_who_shows_no_certificate_is_told_after_the_handshake(tmp_path: Path) -> None:
    """In TLS 1.3 the server refuses when the client has ended the handshake already."""
    scene = Scene(tls=client_context())
    scene.ask()
    with capturedLogs() as events:
        far = accepted(scene, demanding(tmp_path))
    assert far.far.error is not None
    assert far.heard == []
    reason = "TLS: tlsv13 alert certificate required"
    assert [formatEvent(event) for event in events] == [f"closing {HERE}: {reason}"]
    assert far.end.wire.disconnecting
    far.end.leave()
    (error,) = scene.outcomes
    assert isinstance(error, SendError)
    assert str(error) == f"the connection to {HERE} was lost: {reason}"


def test_who_shows_the_right_one_is_served(tmp_path: Path) -> None:
    own = certified(tmp_path, "client")
    scene = Scene(tls=client_context(certificate=("", own), key=("", own)))
    scene.ask()
    far = accepted(scene, demanding(tmp_path))
    (asked,) = far.heard
    far.tell(answer(asked))
    assert scene.outcomes[0].header.offset == 5


def test_garbage_ends_the_connection_with_one_sentence(scene: Scene) -> None:
    scene.ask()
    far = accepted(scene)
    with capturedLogs() as events:
        far.end.protocol.dataReceived(b"\x17\x03\x03\x00\x20" + bytes(32))
        far.end.protocol.dataReceived(b"more")
    reason = "TLS: decryption failed or bad record mac"
    assert [formatEvent(event) for event in events] == [f"closing {HERE}: {reason}"]
    far.end.leave()
    assert str(scene.outcomes[0]).endswith(f"was lost: {reason}")
    scene.ask()
    assert scene.attempts == 2


def test_a_client_that_closes_says_so_after_all_that_was_asked(scene: Scene) -> None:
    scene.ask()
    far = accepted(scene)
    scene.ask()
    scene.connections.close()
    (last,) = far.hear()
    assert last.body == b"body"
    assert far.far.is_told_the_end
    assert far.end.wire.disconnecting


def test_a_server_may_end_a_connection_in_order(scene: Scene) -> None:
    scene.ask()
    far = accepted(scene)
    far.end.protocol.dataReceived(far.far.end())
    far.end.leave()
    assert str(scene.outcomes[0]) == f"the connection to {HERE} was lost"


def test_whoever_does_not_encrypt_has_the_usual_peer() -> None:
    scene = Scene()
    scene.ask()
    scene.accept()
    (peer,) = scene.connections._peers.values()
    assert type(peer) is AskingPeer


@pytest.mark.parametrize(
    ("name", "address", "why"),
    [
        ("localhost", "localhost:10911", None),
        ("broker", "localhost:10911", "not valid for 'localhost'"),
        ("localhost", HERE, "IP address mismatch, certificate is not valid for '127.0.0.1'"),
    ],
)
def test_the_name_of_a_server_is_checked_on_request(
    tmp_path: Path, name: str, address: str, why: str | None
) -> None:
    own = certified(tmp_path, name)
    scene = Scene(tls=client_context(trust=("", own), checks=True, checks_name=True))
    serving = server_context(TlsConfig(test_mode=False, server_cert_path=own, server_key_path=own))
    scene.connections.invoke(
        address, offset.GET_MAX_OFFSET, WHERE, b"body", timeout_ms=10_000
    ).then(scene.outcomes.append)
    far = accepted(scene, serving)
    assert len(far.heard) == (why is None)
    if why is not None:
        far.end.leave()
        (error,) = scene.outcomes
        assert why in str(error)
