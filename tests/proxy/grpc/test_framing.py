# SPDX-License-Identifier: Apache-2.0
"""Messages in a stream of bytes."""

from __future__ import annotations

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.grpc.framing import (
    GZIP,
    IDENTITY,
    MOST_DECOMPRESSED_BYTES,
    Messages,
    framed,
    whole_message,
)
from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus


def compressed(data: bytes) -> bytes:
    """A message that says that it is compressed."""
    return b"\1" + framed(data)[1:]


@given(st.lists(st.binary(max_size=50), max_size=6), st.data())
def test_messages_may_come_in_any_pieces(messages: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(map(framed, messages))
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=8))
    reader, got = Messages(50, IDENTITY), []
    places = [0, *sorted(cuts), len(whole)]
    for start, end in pairwise(places):
        reader.add(whole[start:end])
        while (message := reader.next()) is not None:
            got.append(message)
    assert (got, reader.held_bytes) == (messages, 0)


def test_one_that_is_too_long_is_not_waited_for() -> None:
    reader = Messages(50, IDENTITY)
    reader.add(framed(bytes(51))[:5])
    with pytest.raises(GrpcError, match="has 51 bytes, but at most 50 are taken") as caught:
        reader.next()
    assert caught.value.status is GrpcStatus.RESOURCE_EXHAUSTED


def test_gzip() -> None:
    reader = Messages(1_000, GZIP)
    reader.add(compressed(gzip.compress(b"hello" * 100)) + framed(b"plain"))
    assert reader.next() == b"hello" * 100
    assert reader.next() == b"plain"


@pytest.mark.parametrize(
    ("encoding", "data", "why", "status"),
    [
        (IDENTITY, b"x", "names no grpc-encoding", GrpcStatus.INTERNAL),
        (GZIP, b"x" * 30, "no valid gzip", GrpcStatus.INTERNAL),
        (GZIP, gzip.compress(b"hello", mtime=0)[:-9], "cut off", GrpcStatus.INTERNAL),
        (
            GZIP,
            gzip.compress(bytes(MOST_DECOMPRESSED_BYTES + 1)),
            "more than 1048576 bytes",
            GrpcStatus.RESOURCE_EXHAUSTED,
        ),
    ],
)
def test_what_cannot_be_decompressed(
    encoding: str, data: bytes, why: str, status: GrpcStatus
) -> None:
    reader = Messages(1 << 20, encoding)
    reader.add(compressed(data))
    with pytest.raises(GrpcError, match=why) as caught:
        reader.next()
    assert caught.value.status is status


@given(st.binary(max_size=60), st.binary(max_size=3))
def test_one_that_is_there_as_a_whole(message: bytes, more: bytes) -> None:
    assert whole_message(framed(message), 50) == (message if len(message) <= 50 else None)
    if more:
        assert whole_message(framed(message) + more, 50) is None
        assert whole_message(more, 50) is None
    assert whole_message(b"\1" + framed(message)[1:], 50) is None
