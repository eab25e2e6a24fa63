# SPDX-License-Identifier: Apache-2.0
"""The stream is cut between frames, in portions, and floods end it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.http2.frames_of import frame
from txrocketmq.proxy.http2.floods import (
    BUCKETS,
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Floods,
)
from txrocketmq.proxy.http2.frames import (
    MAX_FRAME_BYTES,
    PORTION_BYTES,
    PORTION_FRAMES,
    PREFACE,
    Frames,
    heads_of,
)

SOME = [frame(HEADERS, b"h" * 20, stream=1), frame(DATA, b"d" * 300, stream=1), frame(SETTINGS)]


def drain(frames: Frames, data: bytes = b"") -> list[bytes]:
    """All portions that there are now."""
    portions = [frames.portion(data)]
    while frames.is_behind:
        portions.append(frames.portion(b""))
    return portions


@given(st.lists(st.integers(0, len(PREFACE + b"".join(SOME) * 9)), max_size=12))
def test_frames_may_come_in_any_pieces(cuts: list[int]) -> None:
    whole = PREFACE + b"".join(SOME) * 9
    frames = Frames(Floods())
    got = b""
    places = [0, *sorted(cuts), len(whole)]
    for start, end in pairwise(places):
        for portion in drain(frames, whole[start:end]):
            got += portion
            assert got in (b"", PREFACE + b"".join((SOME * 9)[: count_of(got)]))
    assert got == whole
    assert (frames.held_bytes, frames.error) == (0, None)


def count_of(data: bytes) -> int:
    """How many frames of SOME, again and again, are in data behind a preface."""
    left, count = len(data) - len(PREFACE), 0
    while left > 0:
        left -= len(SOME[count % len(SOME)])
        count += 1
    assert left in (0, -len(PREFACE))
    return count


def test_a_portion_has_few_frames() -> None:
    frames = Frames(Floods())
    first, *others = drain(frames, PREFACE + frame(DATA, b"x") * (3 * PORTION_FRAMES))
    assert len(first) == len(PREFACE) + PORTION_FRAMES * len(frame(DATA, b"x"))
    assert len(others) == 2


def test_a_portion_ends_behind_a_whole_request() -> None:
    """The frames of a call are those of clients on grpcio."""
    frames = Frames(Floods())
    room = b"\0\0\0\5"
    calls = PREFACE + b"".join(
        frame(HEADERS, b"\x82", 4, number)
        + frame(WINDOW_UPDATE, room, 0, number)
        + frame(DATA, b"x", 1, number)
        + frame(WINDOW_UPDATE, room)
        for number in range(1, 81, 2)
    )
    kinds = []
    frames.keep(calls)
    while frames.is_behind:
        assert frames.portion(b"")
        kinds.append([kind for kind, *_ in frames.heads])
    assert len(kinds) == 10
    assert all(its == [HEADERS, WINDOW_UPDATE, DATA, WINDOW_UPDATE] * 4 for its in kinds)


def test_a_portion_has_few_bytes() -> None:
    frames = Frames(Floods())
    long = frame(DATA, bytes(MAX_FRAME_BYTES))
    assert max(map(len, drain(frames, PREFACE + long * 32))) <= PORTION_BYTES + 2 * len(long)


def test_bytes_may_be_kept_for_later() -> None:
    frames = Frames(Floods())
    frames.keep(PREFACE + SOME[0])
    frames.keep(SOME[1])
    assert frames.is_behind
    assert frames.held_bytes == len(PREFACE + SOME[0] + SOME[1])
    assert b"".join(drain(frames)) == PREFACE + SOME[0] + SOME[1]


def test_events_can_be_given_back() -> None:
    frames = Frames(Floods())
    frames.leave([1, 2])
    assert frames.is_behind
    assert frames.given_back() == [1, 2]
    frames.leave([3])
    frames.forget_commands()
    assert frames.given_back() == []


def test_half_a_frame_is_unfinished_from_when_it_is_seen() -> None:
    frames = Frames(Floods())
    frames.portion(PREFACE + SOME[1][:50])
    assert frames.unfinished_ms(1_000) == 0
    assert frames.unfinished_ms(5_000) == 4_000
    frames.portion(SOME[1][50:])
    assert frames.unfinished_ms(9_000) == 0


def test_nothing_is_left_of_a_lost_connection() -> None:
    frames = Frames(Floods())
    frames.keep(PREFACE + SOME[1][:50])
    frames.drop()
    assert (frames.held_bytes, frames.is_behind) == (0, False)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "speaks HTTP/1 to the port for gRPC"),
        (b"\0\0\1\0\0\0\0\x66{", "speaks the remoting protocol"),
        (b"hello", "not those of HTTP/2"),
    ],
)
def test_strangers_are_told_apart(data: bytes, why: str) -> None:
    frames = Frames(Floods())
    assert frames.portion(data) == b""
    assert why in str(frames.error)


def test_a_frame_that_is_too_long_is_not_waited_for() -> None:
    frames = Frames(Floods())
    frames.portion(PREFACE + (MAX_FRAME_BYTES + 1).to_bytes(3, "big") + bytes(6))
    assert str(frames.error) == "it sends a frame of 16385 bytes of HTTP/2"


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        (RST_STREAM, frame(RST_STREAM, bytes(4), stream=1)),
        (SETTINGS, frame(SETTINGS)),
        (PING, frame(PING, bytes(8))),
        (PRIORITY, frame(PRIORITY, bytes(5), stream=1)),
        (WINDOW_UPDATE, frame(WINDOW_UPDATE, b"\0\0\0\1")),
        (CONTINUATION, frame(CONTINUATION, b"", stream=1)),
        (16, frame(DATA, b"", stream=1)),
        (17, frame(0xFA, b"what?")),
    ],
)
def test_a_flood_is_found_before_it_is_decoded(kind: int, one: bytes) -> None:
    frames = Frames(Floods())
    most = BUCKETS[kind].most
    assert b"".join(drain(frames, PREFACE + one * (most + 5))) == PREFACE + one * most
    assert BUCKETS[kind].name in str(frames.error)
    assert frames.portion(b"more") == b""


@pytest.mark.parametrize(
    "one",
    [
        frame(SETTINGS, flags=1),
        frame(PING, bytes(8), flags=1),
        frame(DATA, b"", flags=1, stream=1),
        frame(DATA, b"x", stream=1),
        frame(HEADERS, b"", stream=1),
    ],
)
def test_answers_and_calls_are_no_flood(one: bytes) -> None:
    frames = Frames(Floods())
    assert b"".join(drain(frames, PREFACE + one * 5_000)) == PREFACE + one * 5_000
    assert frames.error is None


def test_a_portion_ends_with_goaway() -> None:
    frames = Frames(Floods())
    first, second = drain(frames, PREFACE + frame(GOAWAY, bytes(8)) + frame(PING, bytes(8)))
    assert first == PREFACE + frame(GOAWAY, bytes(8))
    assert second == frame(PING, bytes(8))


def test_the_heads_of_a_portion_say_where_its_frames_are() -> None:
    frames = Frames(Floods())
    frames.portion(PREFACE)
    first, second = frame(1, b"abc", 4, 7), frame(0, b"", 1, 1 << 31 | 7)
    data = frames.portion(first + second + first[:5])
    assert frames.heads == [(1, 4, 7, 9, 12), (0, 1, 7, 21, 21)]
    assert heads_of(data, 100) == (frames.heads, len(data))


def test_heads_end_before_what_is_not_whole_or_too_long() -> None:
    whole = frame(6, bytes(8))
    assert heads_of(whole + whole[:-1], 100)[1] == len(whole)
    assert heads_of(whole + frame(0, bytes(101)) + whole, 100)[1] == len(whole)
