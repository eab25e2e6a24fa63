# SPDX-License-Identifier: Apache-2.0
"""`python -m txrocketmq.cli.health`: checks whether the servers of this container answer.

It is the image's HEALTHCHECK. Each port gets a request. Any answer to it shows that the server
serves, even the one that the request is not supported. Neither Twisted nor the client is loaded
for it, since it runs often.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Final

from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.protocol.admin import GET_BROKER_RUNTIME_INFO

_TIMEOUT_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"


def ports_file(home: Path) -> Path:
    """Returns the file with the ports of the server that was started with this home folder."""
    return home / "conf" / "ports"


def main() -> int:
    """Asks the servers at the ports in `ports_file`; returns 0 if all of them answer, else 1."""
    try:
        ports = [int(text) for text in ports_file(Path.home()).read_text("utf-8").split()]
    except (OSError, ValueError):
        print("no server has been started here", file=sys.stderr)
        return 1
    for port in ports:
        try:
            ask(port)
        except (OSError, RemotingError) as error:
            print(f"port {port}: {error}", file=sys.stderr)
            return 1
    return 0


def ask(port: int, timeout_s: float = _TIMEOUT_S) -> RemotingCommand:
    """Returns what the server at this port answers. Raises OSError or RemotingError."""
    command = RemotingCommand(GET_BROKER_RUNTIME_INFO.code, {}, opaque=1)
    decoder = FrameDecoder()
    with socket.create_connection((_LOOPBACK, port), timeout_s) as connection:
        connection.sendall(b"".join(map(bytes, encode_frame(command))))
        while data := connection.recv(65_536):
            for answer in decoder.receive(data):
                return answer
    raise ConnectionError("the server closed the connection without an answer")


if __name__ == "__main__":
    sys.exit(main())
