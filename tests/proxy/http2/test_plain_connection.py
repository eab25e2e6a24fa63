# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection

from txrocketmq.proxy.http2.plain_connection import MAX_HEADER_LIST_BYTES, PlainConnection

REQUEST = [(":method", "POST"), (":scheme", "http"), (":path", "/s/M"), (":authority", "here")]


def test_streams_are_not_limited_and_those_that_have_ended_are_forgotten() -> None:
    server: Any = PlainConnection(H2Configuration(client_side=False))
    client: Any = H2Connection(H2Configuration())
    server.local_settings.max_concurrent_streams = 3
    server.initiate_connection()
    client.initiate_connection()
    for number in range(1, 41, 2):
        client.send_headers(number, REQUEST, end_stream=True)
        server.receive_data(client.data_to_send())
        assert not server.answer(number, b"")
        if number > 20:
            server.send_headers(number, [(":status", "200")], end_stream=True)
    assert len(server.streams) == 10 + 1
    assert server.decoder.max_header_list_size == MAX_HEADER_LIST_BYTES
