# SPDX-License-Identifier: Apache-2.0
"""Whether the shortcuts fit the h2 and the hpack that are installed, whose inner names they use.

At the start, headers are decoded and calls are made with them and without them. If it is not the
same, or a name is missing, connections are without shortcuts: that is slower, and the log says so.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded
from hpack import Decoder, Encoder
from twisted.logger import Logger

from txrocketmq.proxy.http2.plain_connection import (
    MAX_HEADER_LIST_BYTES,
    PlainConnection,
    WholeRequest,
)

_REQUEST = ((":method", "POST"), (":scheme", "http"), (":path", "/s/M"), (":authority", "here"))
_RESPONSE = ((":status", "200"), ("content-type", "application/grpc"))
_TRAILERS = (("grpc-status", "0"),)
_MANY = 70
"""With so many headers in the table, the numbers of some have more than one byte."""

log = Logger()


def connection_class() -> type[PlainConnection]:
    """Returns the class for connections: with shortcuts if they fit."""
    try:
        # Not at the top: names that it imports may be missing.
        from txrocketmq.proxy.http2.header_decoder import HeaderDecoder  # noqa: PLC0415
        from txrocketmq.proxy.http2.shortcuts import ServerConnection  # noqa: PLC0415

        fits = _decoded(HeaderDecoder) == _decoded(Decoder) and _calls(
            ServerConnection, is_short=True
        ) == _calls(PlainConnection, is_short=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is because of another version
        fits, why = False, repr(error)
    else:
        why = "what they say is not the same"
    if fits:
        return ServerConnection
    log.warn(
        "calls of gRPC take longer: the shortcuts do not fit h2 {h2} and hpack {hpack}: {why}",
        h2=version("h2"),
        hpack=version("hpack"),
        why=why,
    )
    return PlainConnection


def _decoded(kind: type[Decoder]) -> list[Any]:
    """Returns what a decoder makes of headers of each form."""
    decoder, encoder = kind(MAX_HEADER_LIST_BYTES), Encoder()
    encoder.header_table_size = 4_000  # which is told first
    headers = [(f"x-{number}", "value", False) for number in range(_MANY)]
    headers.append(("x-secret", "value", True))
    return [
        [(bytes(name), bytes(value)) for name, value in decoder.decode(data, raw=True)]
        for data in (encoder.encode(headers), encoder.encode(headers))
    ]


def _calls(kind: type[PlainConnection], *, is_short: bool) -> list[Any]:
    """Returns what both ends of a connection hear of some calls."""
    server: Any = kind(H2Configuration(client_side=False, header_encoding=None))
    client: Any = H2Connection(H2Configuration(header_encoding="utf-8"))
    heard: list[Any] = []

    def exchange() -> None:
        for one, other in ((client, server), (server, client)):
            for event in one.receive_data(other.data_to_send()):
                heard.extend(_told(event))

    server.initiate_connection()
    client.initiate_connection()
    exchange()
    exchange()
    for number in (1, 3):
        client.send_headers(number, _REQUEST)
        client.send_data(number, b"ask", end_stream=True)
        exchange()
        if server.answer(number, b"answer") is not is_short:
            raise ValueError("an answer does not go the short way, or the long one")
        if not is_short:
            server.send_headers(number, _RESPONSE)
            server.send_data(number, b"answer")
            server.send_headers(number, _TRAILERS, end_stream=True)
        exchange()
    client.send_headers(5, _REQUEST)
    exchange()
    server.reset_stream(5)
    client.send_headers(5, _TRAILERS, end_stream=True)
    exchange()
    heard.append((server.outbound_flow_control_window, client.outbound_flow_control_window))
    return heard


def _told(event: Any) -> list[tuple[Any, ...]]:
    """Returns what an event says; a whole request says what h2 says in three events."""
    if isinstance(event, WholeRequest):
        whole: list[Any] = list(map(tuple, event.headers.items()))
        return [
            (RequestReceived, whole, None, None),
            (DataReceived, [], event.data, None),
            (StreamEnded, [], None, None),
        ]
    headers = getattr(event, "headers", None) or ()
    own = [tuple(map(_bytes, header)) for header in headers]
    return [(type(event), own, getattr(event, "data", None), getattr(event, "error_code", None))]


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
