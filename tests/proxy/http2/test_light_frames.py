# SPDX-License-Identifier: Apache-2.0
"""Frames of the usual kinds, and those that are left to h2."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.http2.frames_of import frame
from txrocketmq.proxy.http2.floods import CONTINUATION, DATA, HEADERS, SETTINGS, WINDOW_UPDATE
from txrocketmq.proxy.http2.frames import heads_of
from txrocketmq.proxy.http2.light_frames import LightData, LightHeaders, LightWindowUpdate, usual


def read(data: bytes) -> Any:
    """The only frame in some bytes."""
    heads, _ = heads_of(data, 16_384)
    return usual(data, heads[0])


def test_data_and_headers() -> None:
    data = read(frame(DATA, b"abc", 1, 5))
    assert isinstance(data, LightData)
    assert (data.stream_id, data.data, data.flow_controlled_length) == (5, b"abc", 3)
    assert data.flags == {"END_STREAM"}
    headers = read(frame(HEADERS, b"\x82", 4, 5))
    assert (type(headers), headers.data, headers.flags) == (LightHeaders, b"\x82", frozenset())


def test_a_priority_is_passed_over() -> None:
    assert read(frame(HEADERS, b"\0\0\0\3\x0f\x82", 0x25, 5)).data == b"\x82"


def test_room() -> None:
    room = read(frame(WINDOW_UPDATE, b"\x80\0\0\7"))
    assert (type(room), room.stream_id, room.window_increment) == (LightWindowUpdate, 0, 7)


@pytest.mark.parametrize(
    "data",
    [
        frame(HEADERS, b"\0\0\0\5\x0f\x82", 0x24, 5),  # it depends on itself
        frame(HEADERS, b"\0\0", 0x24, 5),
        frame(HEADERS, b"\x82", 0, 5),  # it goes on
        frame(HEADERS, b"\1\x82\0", 0xC, 5),  # it is padded
        frame(DATA, b"\1a\0", 8, 5),
        frame(DATA, b"a", 0, 0),
        frame(WINDOW_UPDATE, bytes(4)),
        frame(WINDOW_UPDATE, bytes(5)),
        frame(SETTINGS),
        frame(CONTINUATION, b"", 4, 5),
    ],
)
def test_others_are_left_to_h2(data: bytes) -> None:
    assert read(data) is None
