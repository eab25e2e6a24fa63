# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import tracemalloc
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import compression
from txrocketmq.remoting.message.compression import (
    CompressionError,
    CompressionType,
    PlainRoom,
    compress,
    compression_type,
    decompress,
)

BODY = "RocketMQ 消息 ".encode() * 20

# BODY, compressed by ZlibCompressor, Lz4Compressor and ZstdCompressor of 5.4.0 at level 5.
BY_JAVA = {
    CompressionType.LZ4: (
        "04224d186070731c000000ff01526f636b65744d5120e6b688e681af201000ff195088e681af2000000000"
    ),
    CompressionType.ZSTD: (
        "28b52ffd0058bc000080526f636b65744d5120e6b688e681af2001005a469d4b010000"
    ),
    CompressionType.ZLIB: "785e0bca4fce4e2df10d5478b6ade359e37a85a0513e497c00afe39601",
}
KINDS = list(CompressionType)


@pytest.mark.parametrize("kind", KINDS)
def test_reads_what_java_wrote(kind: CompressionType) -> None:
    assert decompress(bytes.fromhex(BY_JAVA[kind]), 1 | kind.flag) == BODY


@pytest.mark.parametrize("kind", KINDS)
@given(body=st.binary(max_size=300) | st.integers(0, 70_000).map(bytes), level=st.integers(0, 9))
def test_round_trip(kind: CompressionType, body: bytes, level: int) -> None:
    packed = compress(body, kind, level)
    assert decompress(packed, kind.flag) == body
    assert decompress(packed, kind.flag, max_bytes=len(body)) == body
    if body:
        with pytest.raises(CompressionError):
            decompress(packed, kind.flag, max_bytes=len(body) - 1)


def test_lz4_blocks_are_independent() -> None:
    # lz4-java answers "Dependent block stream is unsupported".
    packed = compress(bytes(9_000_000), CompressionType.LZ4)
    assert not lz4.frame.get_frame_info(packed)["block_linked"]


def test_kind_by_flag() -> None:
    assert [compression_type(number << 8) for number in range(4)] == [
        CompressionType.ZLIB,  # as clients before 4.9.3 wrote
        CompressionType.LZ4,
        CompressionType.ZSTD,
        CompressionType.ZLIB,
    ]
    assert compression_type(0xFFF8FF | 0x100) == CompressionType.LZ4
    for number in range(4, 8):
        with pytest.raises(CompressionError, match=f"unknown kind of compression: {number}"):
            compression_type(number << 8)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_short_anywhere_is_refused(kind: CompressionType) -> None:
    packed = bytes.fromhex(BY_JAVA[kind])
    for size in range(len(packed)):
        with pytest.raises(CompressionError, match=kind.name):
            decompress(packed[:size], kind.flag)


@pytest.mark.parametrize("kind", KINDS)
@given(packed=st.binary(max_size=60))
def test_garbage_raises_only_the_documented_error(kind: CompressionType, packed: bytes) -> None:
    with pytest.raises(CompressionError):
        decompress(packed, kind.flag)


def zstd_stream(body: bytes) -> bytes:
    """As Java's ZstdOutputStream writes: without the size in the header."""
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(body) + stream.flush()


BOMB_BYTES = 200 << 20


@pytest.mark.parametrize(
    ("kind", "bomb"),
    [
        (CompressionType.ZLIB, lambda body: zlib.compress(body, 9)),
        (CompressionType.LZ4, lambda body: compress(body, CompressionType.LZ4)),
        (CompressionType.ZSTD, lambda body: compress(body, CompressionType.ZSTD)),
        (CompressionType.ZSTD, zstd_stream),
    ],
    ids=["zlib", "lz4", "zstd", "zstd without size"],
)
def test_bomb_costs_no_more_than_the_limit(kind: CompressionType, bomb: object) -> None:
    assert callable(bomb)
    packed = bomb(bytes(BOMB_BYTES))
    limit = 4 << 20
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError):
            decompress(packed, kind.flag, max_bytes=limit)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 3 * limit + 8 * len(packed)


@pytest.mark.parametrize("bomb_bytes", [8 << 20, 80 << 20], ids=["some fit", "none fits"])
def test_bodies_together_become_no_more_than_there_is_room_for(
    bomb_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them there are; and what became as much shorter as texts do is read."""
    made_bytes: list[int] = []

    def noted(body: bytes, sys_flag: int, max_bytes: int) -> bytes:
        made_bytes.append(max_bytes)  # unless it is less
        plain = decompress(body, sys_flag, max_bytes)
        made_bytes[-1] = len(plain)
        return plain

    monkeypatch.setattr(compression, "decompress", noted)
    room = PlainRoom(32 << 20)
    bomb, text = compress(bytes(bomb_bytes), CompressionType.ZSTD), b"one of many lines\n" * 99
    packed = compress(text, CompressionType.ZLIB)
    read_bytes = 0
    for _ in range(50):
        with contextlib.suppress(CompressionError):
            read_bytes += len(room.decompress(bomb, CompressionType.ZSTD.flag))
        assert room.decompress(packed, CompressionType.ZLIB.flag) == text
    assert read_bytes <= 32 << 20
    assert (read_bytes > 0) == (bomb_bytes < 32 << 20)
    assert sum(made_bytes) <= (32 << 20) + 64 * 50 * (len(bomb) + len(packed))


def test_level_out_of_range_is_refused() -> None:
    for level in (-1, 10):
        with pytest.raises(ValueError, match="0 to 9"):
            compress(b"x", CompressionType.ZLIB, level)


def test_errors_are_of_the_tree() -> None:
    assert issubclass(CompressionError, RemotingError)
