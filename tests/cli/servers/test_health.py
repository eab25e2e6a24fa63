# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from txrocketmq.cli.servers.health import _TIMEOUT_S, main, ports_file
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.settings.self_signed import self_signed
from txrocketmq.remoting.settings.tls import TlsConfig, server_context

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def server(answer: bool, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of one that answers a request, or closes the connection instead."""

    def serve() -> None:
        connection, _ = listening.accept()
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
        with connection:
            (request,) = FrameDecoder().receive(connection.recv(65_536))
            asked.append(request.code)
            if answer:
                reply = RemotingCommand(3, {}, flag=RESPONSE_FLAG, opaque=request.opaque)
                connection.sendall(b"".join(map(bytes, encode_frame(reply))))

    asked: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()
    assert asked == [RequestCode.GET_BROKER_RUNTIME_INFO]


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = ports_file(tmp_path)
    file.parent.mkdir()
    return file


def test_servers_that_answer_are_healthy(ports: Path) -> None:
    with server(answer=True) as one, server(answer=True) as other:
        ports.write_text(f"{one} {other}")
        assert main() == 0


def test_one_that_does_not_answer_is_not(ports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with server(answer=True) as one, server(answer=False) as other:
        ports.write_text(f"{one} {other}")
        assert main() == 1
    told = capsys.readouterr().err
    assert told == f"port {other}: the server closed the connection without an answer\n"


def test_one_that_encrypts_is_asked_so(ports: Path) -> None:
    with server(answer=True, tls=server_context(TlsConfig())) as one:
        ports.write_text(f"{one} tls")
        assert main() == 0


def test_one_that_wants_a_certificate_is_healthy(ports: Path, tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_bytes(self_signed())
    own = str(tmp_path / "own.pem")
    demanding = TlsConfig(
        test_mode=False, server_cert_path=own, server_key_path=own, server_trust_cert_path=own,
        server_client_auth="require", server_auth_client=True,
    )  # fmt: skip

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, suppress(ssl.SSLError):
            server_context(demanding).wrap_socket(connection, server_side=True)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        ports.write_text(f"{listening.getsockname()[1]} tls")
        assert main() == 0
        thread.join()


def test_one_that_is_not_there_is_not(ports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        free = listening.getsockname()[1]
    ports.write_text(str(free))
    assert main() == 1
    assert capsys.readouterr().err.startswith(f"port {free}: ")


def test_without_a_server_it_says_so(ports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 1
    assert capsys.readouterr().err == "no server has been started here\n"


def test_it_loads_neither_twisted_nor_a_server() -> None:
    program = (
        "import sys, txrocketmq.cli.servers.health\n"
        "assert not {'twisted', 'txrocketmq.broker.settings.config'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_image_leaves_room_for_starting_python() -> None:
    """Under an emulator that alone takes more than ten seconds, and the ports are asked in turn."""
    line = re.search(
        r"^HEALTHCHECK (.+?)\\?$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    assert line is not None
    options = dict(re.findall(r"--([a-z-]+)=(\d+)s", line[1]))
    assert int(options["timeout"]) >= 30 + 2 * _TIMEOUT_S
    assert int(options["start-period"]) >= 2 * int(options["timeout"])


@pytest.mark.parametrize(
    ("answer", "code", "why"),
    [
        (bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)), 0, ""),
        (b"HTTP/1.1 400", 1, "no server for gRPC"),
        (b"", 1, "the connection was closed"),
    ],
)
def test_a_port_for_grpc_begins_with_settings(
    ports: Path, answer: bytes, code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked: list[bytes] = []

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(64))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        ports.write_text(f"grpc:{server.getsockname()[1]}", "utf-8")
        assert main() == code
        thread.join()
    assert asked[0].startswith(b"PRI * HTTP/2.0")
    assert why in capsys.readouterr().err
