# SPDX-License-Identifier: Apache-2.0
"""Accounts and encryption of what Spark's tasks send, against a peer at the other end of a pair."""

from __future__ import annotations

import pickle
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import apart, certified
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.credentials import signature
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.offset import GET_MAX_OFFSET, GetMaxOffsetRequestHeader
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE
from txrocketmq.remoting.routing.queue_requests import pull_header
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.live.wire.rpc import Connection, Unreachable
from txrocketmq.spark.live.wire.security import OPEN, Security
from txrocketmq.spark.options.options import SourceOptions

LARGE = 3 << 20
NOWHERE = "^option tlsTrustCertPath is /nowhere.pem, which cannot be read: No such"


def of(**given: str) -> Security:
    return Security.of(SourceOptions.of({"nameServer": "a:1", "topic": "t", **given}))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKETMQ_ACCESS_KEY", raising=False)
    monkeypatch.delenv("ROCKETMQ_SECRET_KEY", raising=False)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Certificate and key of the server."""
    return apart(tmp_path_factory.mktemp("pem"), "broker")


class Server(threading.Thread):
    """Answers each request with the size of its body, and a large one; at one end of a pair."""

    def __init__(self, theirs: socket.socket, context: ssl.SSLContext | None) -> None:
        super().__init__(daemon=True)
        self.theirs = theirs
        self.context = context
        self.asked: list[RemotingCommand] = []
        self.error: Exception | None = None

    def run(self) -> None:
        self.theirs.settimeout(20)
        try:
            if self.context is not None:
                self.theirs = self.context.wrap_socket(self.theirs, server_side=True)
            decoder = FrameDecoder()
            while data := self.theirs.recv(1 << 16):
                for command in decoder.receive(data):
                    self.asked.append(command)
                    header = {"offset": str(len(command.body))}
                    if command.code == PULL_MESSAGE.code:
                        header = {
                            "suggestWhichBrokerId": "0", "nextBeginOffset": "1",
                            "minOffset": "0", "maxOffset": "1",
                        }  # fmt: skip
                    answer = RemotingCommand(
                        0, header, bytes(LARGE), flag=RESPONSE_FLAG, opaque=command.opaque
                    )
                    self.theirs.sendall(b"".join(encode_frame(answer)))
        except OSError as error:
            self.error = error
        finally:
            self.theirs.close()


class Unnagled(socket.socket):
    """A socket of a pair, which knows no TCP_NODELAY."""

    def __init__(self, of: socket.socket, timeout_s: float) -> None:
        super().__init__(of.family, of.type, of.proto, of.detach())
        self.settimeout(timeout_s)

    def setsockopt(self, *_: Any) -> None:
        pass


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch, pem: tuple[str, str]) -> Iterator[list[Server]]:
    """One for each connection that is opened: of port 443 encrypted, of others not."""
    made: list[Server] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)

    def opened(address: tuple[str, int], timeout_s: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        server = Server(theirs, context if address[1] == 443 else None)
        made.append(server)
        server.start()
        return Unnagled(ours, timeout_s)

    monkeypatch.setattr("socket.create_connection", opened)
    yield made
    for server in made:
        server.join(20)


def ask(security: Security, address: str = "broker:443", body: bytes = b"") -> Any:
    connection = Connection(address, security)
    try:
        asked = GetMaxOffsetRequestHeader(topic="t", queue_id=1)
        return connection.ask(GET_MAX_OFFSET, asked, body, timeout_ms=20_000).header
    finally:
        connection.close()


def test_each_request_is_signed_with_its_body(servers: list[Server]) -> None:
    ask(of(accessKey="me", secretKey="key", securityToken="tok"), "broker:1", b"payload")
    (command,) = servers[0].asked
    fields = dict(command.ext_fields or {})
    assert (fields["AccessKey"], fields["SecurityToken"]) == ("me", "tok")
    assert fields["Signature"] == signature(fields, b"payload", "key")


def test_large_requests_and_answers_pass_encrypted(
    servers: list[Server], pem: tuple[str, str]
) -> None:
    security = of(useTls="true", tlsTrustCertPath=pem[0])
    assert ask(security, body=bytes(LARGE)).offset == LARGE
    assert servers[0].error is None
    connection = Connection("broker:443", security)
    header = pull_header(MessageQueue("t", "b", 0), 0, 32)
    questions = [connection.start(PULL_MESSAGE, header, timeout_ms=20_000) for _ in range(3)]
    assert [len(question.wait().body_bytes) for question in questions] == [LARGE] * 3
    connection.close()


def test_a_server_that_cannot_be_checked_is_not_spoken_to(
    servers: list[Server], tmp_path: Path
) -> None:
    other = certified(tmp_path, "other")
    with pytest.raises(Unreachable, match="no connection to broker:443: .*CERTIFICATE_VERIFY"):
        ask(of(useTls="true", tlsTrustCertPath=other))
    assert not servers[0].asked
    assert ask(of(useTls="true")).offset == 0, "without certificates it is not checked"


def test_keys_of_the_environment_and_of_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of() == OPEN
    assert OPEN.seal() is None
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "env")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "hidden")
    assert of() == Security("env", "hidden")
    assert of(accessKey="own", secretKey="other") == Security("own", "other")


def test_secrets_are_not_shown_and_travel() -> None:
    options = {"accessKey": "me", "secretKey": "hid-1", "securityToken": "hid-2"}
    made = of(**options)
    assert "hid-" not in repr(made)
    assert "hid-" not in repr(SourceOptions.of(options))
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"accessKey": "me"}, "secretKey is not given .nor ROCKETMQ_SECRET_KEY"),
        ({"secretKey": "x"}, "accessKey is not given"),
        ({"useTls": "true", "tlsCertPath": "c.pem"}, "tlsCertPath and tlsKeyPath belong together"),
        ({"tlsTrustCertPath": "c.pem"}, "option useTls is not true"),
        ({"useTls": "true", "tlsTrustCertPath": "/nowhere.pem"}, NOWHERE),
        (
            {"useTls": "true", "tlsTrustCertPath": __file__},
            "^option tlsTrustCertPath is .*, which holds no certificate in PEM; each worker needs",
        ),
        (
            {"useTls": "true", "tlsCertPath": __file__, "tlsKeyPath": __file__},
            "^option tlsCertPath=.* and tlsKeyPath=.* hold no certificate in PEM with its private",
        ),
    ],
)
def test_what_cannot_be_used_is_said(given: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        of(**given)
