# SPDX-License-Identifier: Apache-2.0
"""Sends one remoting request over a plain socket, to see whether a server answers.

It is written without the code under test, so that it can judge that code.
"""

import json
import os
import random
import socket
import ssl
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

GET_BROKER_CONFIG = 26
GET_BROKER_CLUSTER_INFO = 106

_JAVA_4_9_7 = 407
_PORTS = range(12_000, 30_000)
_GIVEN: set[int] = set()
"""Ports that are in use, will be used, or will be used again by servers."""


def request(
    port: int,
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    timeout_s: float = 10.0,
    tls: ssl.SSLContext | None = None,
    from_host: str = "",
) -> tuple[dict[str, Any], bytes]:
    """Asks the server at this port of the loopback interface; returns the answer's header and body.

    With `tls`, the connection is encrypted, and with `from_host` it comes from that address of the
    interface. Raises OSError, and ValueError for an answer that is
    not a remoting frame.
    """
    header = {
        "code": code,
        "language": "JAVA",
        "version": _JAVA_4_9_7,
        "opaque": random.randrange(1 << 30),
        "flag": 0,
        "extFields": dict(fields or {}),
        "serializeTypeCurrentRPC": "JSON",
    }
    with connected(port, timeout_s, tls, from_host) as connection:
        send_frame(connection, header, body)
        answer, said = read_frame(connection)
        while not answer["flag"] & 1:  # a request of the server, such as one about a group
            answer, said = read_frame(connection)
    if answer.get("opaque") != header["opaque"]:
        raise ValueError(f"the answer is to another request: {answer}")
    return answer, said


@contextmanager
def connected(
    port: int, timeout_s: float = 10.0, tls: ssl.SSLContext | None = None, from_host: str = ""
) -> Iterator[socket.socket]:
    """Gives a connection to this port of the loopback interface. Raises OSError."""
    source = (from_host, 0) if from_host else None
    with socket.create_connection(("127.0.0.1", port), timeout_s, source) as plain:
        plain.settimeout(timeout_s)
        if tls is None:
            yield plain
            return
        with tls.wrap_socket(plain) as encrypted:
            yield encrypted


def send_frame(connection: socket.socket, header: Mapping[str, Any], body: bytes = b"") -> None:
    """Writes a frame with its header as JSON."""
    text = json.dumps(header).encode()
    connection.sendall(struct.pack(">ii", 4 + len(text) + len(body), len(text)) + text + body)


def read_frame(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Returns the next frame's header and body. Raises OSError, ValueError for no frame."""
    (length,) = struct.unpack(">i", _read(connection, 4))
    frame = _read(connection, length)
    (header_length,) = struct.unpack(">i", frame[:4])
    end = 4 + (header_length & 0xFFFFFF)
    return json.loads(frame[4:end]), frame[end:]


def free_ports(offsets: Iterable[int]) -> int:
    """Returns a port below the ephemeral range that is free, plus each of the offsets.

    No port is given to this process twice, nor to another of pytest's workers: a port seems to be
    free while the server that has it is being restarted.
    """
    wanted = list(offsets)
    for _ in range(1000):
        base = random.choice(_own_ports())
        ports = {base + offset for offset in wanted}
        if not ports & _GIVEN and all(map(_is_free, ports)):
            _GIVEN.update(ports)
            return base
    raise OSError("no free ports found")


def _own_ports() -> range:
    """Returns the ports that this one of pytest's workers may use."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return _PORTS[worker * len(_PORTS) // count : (worker + 1) * len(_PORTS) // count]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _read(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise ConnectionError("the server closed the connection within an answer")
        parts += part
    return bytes(parts)
