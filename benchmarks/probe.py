# SPDX-License-Identifier: Apache-2.0
"""Asks a server over a raw socket whether it is there: the same question for both sides."""

import socket
import time
from typing import Any, Final

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
    answer = _answer(port, message)
    return answer is not None and answer[0]["code"] == frames.SUCCESS


def has_messages(port: int) -> bool:
    """Returns whether the broker has a message of `accepts_send`, of itself or of its master."""
    return max_offset(port, TOPIC, 0) > 0


def max_offset(port: int, topic: str, queue_id: int) -> int:
    """Returns where a queue of the broker ends; 0 if it does not say so."""
    header, _ = _answer(port, frames.max_offset(topic, queue_id, opaque=1)) or ({}, b"")
    return int((header.get("extFields") or {}).get("offset", 0))


def body(port: int, request: bytes) -> bytes:
    """Returns the body of the broker's answer; nothing if there is none."""
    _, found = _answer(port, request) or ({}, b"")
    return found


def _answer(port: int, request: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Returns header and body of the answer; None if there is none."""
    received = b""
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
            connection.sendall(request)
            while chunk := connection.recv(65536):
                received += chunk
                answers, _ = frames.split(received)
                if answers:
                    return answers[0]
    except OSError:
        pass
    return None
