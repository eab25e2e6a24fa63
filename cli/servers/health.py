# SPDX-License-Identifier: Apache-2.0
"""`python -m txrocketmq.cli.servers.health`: checks whether the servers of this container answer.

It is the image's HEALTHCHECK. Each port gets a request. Any answer to it shows that the server
serves, even the one that the request is not supported. Neither Twisted nor the client is loaded
for it, since it runs often.
"""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.protocol.operations.admin import GET_BROKER_RUNTIME_INFO

_TIMEOUT_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"


ENCRYPTED: Final = "tls"
"""The word after the ports that says that the servers take encrypted connections only."""

GRPC: Final = "grpc:"
"""What comes before a port for gRPC."""
_HTTP2: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a connection of HTTP/2 begins: a preface, and settings, of which there are none."""
_KIND: Final = 3
_SETTINGS: Final = 4


def ports_file(home: Path) -> Path:
    """Returns the file with the ports of the server that was started with this home folder."""
    return home / "conf" / "ports"


def main() -> int:
    """Asks the servers at the ports in `ports_file`; returns 0 if all of them answer, else 1."""
    try:
        words = ports_file(Path.home()).read_text("utf-8").split()
        encrypts = ENCRYPTED in words
        ports = [word for word in words if word != ENCRYPTED]
    except (OSError, ValueError):
        print("no server has been started here", file=sys.stderr)
        return 1
    for port in ports:
        try:
            if port.startswith(GRPC):
                ask_grpc(int(port.removeprefix(GRPC)), encrypts=encrypts)
            else:
                ask(int(port), encrypts=encrypts)
        except (OSError, ValueError, RemotingError) as error:
            print(f"port {port}: {error}", file=sys.stderr)
            return 1
    return 0


def ask_grpc(port: int, timeout_s: float = _TIMEOUT_S, *, encrypts: bool = False) -> None:
    """Waits for the settings of HTTP/2 with which a server begins. Raises OSError.

    If it `encrypts`, that it accepts the connection is enough.
    """
    with socket.create_connection((_LOOPBACK, port), timeout_s) as connection:
        if encrypts:
            return
        connection.sendall(_HTTP2)
        answer = b""
        while len(answer) <= _KIND:
            data = connection.recv(64)
            if not data:
                raise OSError("the connection was closed")
            answer += data
        if answer[_KIND] != _SETTINGS:
            raise OSError("what answers is no server for gRPC")


def ask(port: int, timeout_s: float = _TIMEOUT_S, *, encrypts: bool = False) -> None:
    """Waits for an answer of the server at this port. Raises OSError or RemotingError.

    If it `encrypts`, its wish for a certificate, which this program does not have, is an answer.
    """
    try:
        _ask(port, timeout_s, encrypts=encrypts)
    except OSError as error:
        if "ALERT" not in str(getattr(error, "reason", "")):
            raise


def _ask(port: int, timeout_s: float, *, encrypts: bool) -> None:
    command = RemotingCommand(GET_BROKER_RUNTIME_INFO.code, {}, opaque=1)
    decoder = FrameDecoder()
    with ExitStack() as opened:
        connection = opened.enter_context(socket.create_connection((_LOOPBACK, port), timeout_s))
        if encrypts:
            connection = opened.enter_context(_encrypted(connection))
        connection.sendall(b"".join(map(bytes, encode_frame(command))))
        while data := connection.recv(65_536):
            if decoder.receive(data):
                return
    raise ConnectionError("the server closed the connection without an answer")


def _encrypted(connection: socket.socket) -> socket.socket:
    import ssl

    from txrocketmq.remoting.settings.tls import client_context

    context = client_context()
    # With 1.3, a client learns after the handshake only that its certificate is missing.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context.wrap_socket(connection)


if __name__ == "__main__":
    sys.exit(main())
