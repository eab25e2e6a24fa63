# SPDX-License-Identifier: Apache-2.0
"""Requests in the shapes in which official clients send them take few steps, each of them.

The order of frames and the forms of headers are those that clients were seen to send: on grpcio
(Python, C++), on Netty (Java) and on Go's HTTP/2. What is counted is all that is done for a call on
its connection, with a method that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hpack import Encoder

from tests.counted import work_of
from tests.proxy.grpc.clients import Client
from tests.proxy.http2.frames_of import frame
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.grpc.status import GrpcStatus
from txrocketmq.proxy.http2.floods import DATA, HEADERS, PING, WINDOW_UPDATE

IN_FLIGHT = 16
MESSAGE = framed(b"x" * 1_024)
FIXED = {
    ":path": "/s/Echo",
    ":authority": "127.0.0.1:8081",
    ":method": "POST",
    ":scheme": "http",
    "content-type": "application/grpc",
    "te": "trailers",
    "user-agent": "a client of some version (and its parts)",
    "grpc-timeout": "10S",
}
OWN = {
    "x-mq-language": "PYTHON",
    "x-mq-protocol": "v2",
    "x-mq-client-version": "5.1.2",
    "x-mq-date-time": "20261128T020831Z",
    "x-mq-client-id": "vm@17153@0@dn6h7mwxjlf8",
    "x-mq-namespace": "",
    "authorization": "MQv2-HMAC-SHA1 Credential=, SignedHeaders=x-mq-date-time, Signature="
    + "a" * 40,
}


def _id(number: int) -> str:
    return f"{number:08x}-fb98-4512-8c54-39dbfaf{number:05x}"


def on_grpcio(encoder: Encoder, number: int) -> bytes:
    """Names and values of the client's own are written out in each call."""
    own = {**OWN, "x-mq-request-id": _id(number)}
    block = encoder.encode(FIXED.items(), huffman=False) + b"".join(
        b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
        for name, value in own.items()
    )
    return b"".join(
        (
            frame(HEADERS, block, 4, number),
            frame(WINDOW_UPDATE, b"\0\0\0\5", 0, number),
            frame(DATA, MESSAGE, 1, number),
            frame(WINDOW_UPDATE, b"\0\0\0\5"),
        )
    )


def on_netty(encoder: Encoder, number: int) -> bytes:
    """All headers go into the table, a priority stands before them, and a ping behind."""
    headers = {**FIXED, **OWN, "x-mq-request-id": _id(number)}
    block = encoder.encode(headers.items(), huffman=False)
    return b"".join(
        (
            frame(HEADERS, b"\0\0\0\0\x0f" + block, 0x24, number),
            frame(DATA, MESSAGE, 1, number),
            frame(PING, bytes(6) + b"\4\xd2"),
        )
    )


def in_go(encoder: Encoder, number: int) -> bytes:
    """All headers go into the table, in the Huffman code."""
    headers = {**FIXED, **OWN, "x-mq-request-id": _id(number)}
    return b"".join(
        (
            frame(HEADERS, encoder.encode(headers.items()), 4, number),
            frame(DATA, MESSAGE, 1, number),
            frame(WINDOW_UPDATE, b"\0\0\0\5"),
            frame(PING, bytes(8)),
        )
    )


@pytest.mark.parametrize(("shape", "most"), [(on_grpcio, 2_600), (on_netty, 2_700), (in_go, 3_500)])
def test_a_call_takes_few_steps(shape: Callable[[Encoder, int], bytes], most: int) -> None:
    client = Client()
    encoder = Encoder()
    client.h2.increment_flow_control_window(1 << 30)
    client.exchange()
    numbers = iter(range(1, 1_000, 2))
    reads = [b"".join(shape(encoder, next(numbers)) for _ in range(IN_FLIGHT)) for _ in range(12)]
    left = iter(reads)

    def serve() -> None:
        client.peer.dataReceived(next(left))
        client.time.advance(0)

    for _ in range(8):
        serve()
    work = work_of([serve], IN_FLIGHT)
    assert client.service.counts.of("Echo").ended == {GrpcStatus.OK: 10 * IN_FLIGHT}
    assert work.operations < most
