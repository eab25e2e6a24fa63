# SPDX-License-Identifier: Apache-2.0
"""Asks a server over a raw socket whether it is there: the same question for both sides."""

import socket
import time
from typing import Final

from benchmarks import frames

TIMEOUT_S: Final = 1.0
TOPIC: Final = "bench-probe"


def accepts_connections(port: int) -> bool:
    """Returns whether anyone listens on this port of the loopback interface."""
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S):
            return True
    except OSError:
        return False


def accepts_send(port: int, account: tuple[str, str] | None = None) -> bool:
    """Returns whether the broker answers a send with SUCCESS now.

    With an account it is signed, of which a broker without accounts takes no notice.
    """
    now_ms = time.time_ns() // 1_000_000
    message = frames.send_message_v2(
        TOPIC, 0, b"probe", opaque=1, now_ms=now_ms, process=0, account=account
    )
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
            connection.sendall(message)
            return _first_code(connection) == frames.SUCCESS
    except OSError:
        return False


def _first_code(connection: socket.socket) -> int | None:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
        answers, _ = frames.split(received)
        if answers:
            code: int = answers[0][0]["code"]
            return code
    return None
