# SPDX-License-Identifier: Apache-2.0
"""Bodies that producers have compressed with zlib, LZ4 frames or Zstandard.

`sys_flag` of a message says whether and how its body is compressed. The broker stores compressed
bodies as they come; clients compress and decompress. Decompression is bounded: a small body that
would become a huge one costs no more memory than the given limit.

Java: common.compression.CompressionType, ZlibCompressor, Lz4Compressor, ZstdCompressor.
"""

from __future__ import annotations

import contextlib
import enum
import zlib
from typing import Final

import lz4.frame
import zstandard

try:
    from isal import isal_zlib as quick_zlib
except ImportError:
    import zlib as quick_zlib  # type: ignore[no-redef]

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.flags import MessageSysFlag

DEFAULT_LEVEL: Final = 5
"""The default of rocketmq.message.compressLevel in the Java client."""
DEFAULT_MAX_BYTES: Final = 64 << 20
"""Limit of a decompressed body: well above any frame (16 MiB) and the usual body limit (4 MiB)."""

MAX_BYTES_TOGETHER: Final = 256 << 20
"""Limit of what the bodies of one answer become together, but for what is in `MAX_RATIO`."""
MAX_RATIO: Final = 64
"""How many bytes a byte may become in any case: texts become ten, and zeros a thousand."""

_LEVEL_RANGE: Final = range(10)
_QUICK_ERROR: Final[type[Exception]] = quick_zlib.error  # type: ignore[assignment]
_MOST_INFLATED: Final = 1032
"""The most bytes that one byte of a zlib body can become."""
_TYPE_SHIFT: Final = 8
_KIND_MASK: Final = MessageSysFlag.COMPRESSION_MASK


class CompressionError(RemotingError, ValueError):
    """A body cannot be decompressed: it is damaged, too large, or of an unknown kind."""


class CompressionType(enum.IntEnum):
    """The kinds of compression, by their number in `sys_flag` (bits 8 to 10)."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3

    @property
    def flag(self) -> int:
        """The bits of `sys_flag` that mean this kind, without COMPRESSED itself."""
        return self.value << _TYPE_SHIFT


_KINDS: Final = {0: CompressionType.ZLIB, **{kind.flag: kind for kind in CompressionType}}
"""Each kind of compression by its bits of `sys_flag`; 0 is zlib (see `compression_type`)."""


def compression_type(sys_flag: int) -> CompressionType:
    """Returns the kind of a compressed body. Raises CompressionError if the number is unknown.

    Number 0 is zlib: clients before 4.9.3 set COMPRESSED alone.
    """
    kind = _KINDS.get(sys_flag & _KIND_MASK)
    if kind is None:
        raise CompressionError(_unknown(sys_flag))
    return kind


def _unknown(sys_flag: int) -> str:
    return f"unknown kind of compression: {(sys_flag & _KIND_MASK) >> _TYPE_SHIFT}"


def compress(body: bytes, kind: CompressionType, level: int = DEFAULT_LEVEL) -> bytes:
    """Returns the compressed body, which the Java clients can read. `level` is 0 to 9.

    Raises ValueError for any other level. LZ4 ignores the level.
    """
    if level not in _LEVEL_RANGE:
        raise ValueError(f"compression level must be 0 to 9, not {level}")
    if kind == CompressionType.ZLIB:
        return zlib.compress(body, level)
    if kind == CompressionType.ZSTD:
        return zstandard.ZstdCompressor(level=level).compress(body)
    # lz4-java refuses linked blocks, and compresses at its fastest whatever the level is.
    frame: bytes = lz4.frame.compress(
        body, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB, store_size=False
    )
    return frame


def decompress(body: bytes, sys_flag: int, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Returns the decompressed body, which has at most `max_bytes`.

    `sys_flag` says how the body was compressed; the caller has checked that it is compressed at
    all. Raises CompressionError if the body is damaged, too large or of an unknown kind.
    """
    of_kind = _DECOMPRESS.get(sys_flag & _KIND_MASK)
    try:
        if of_kind is not None:
            return of_kind(body, max_bytes)
    except (zlib.error, RuntimeError, zstandard.ZstdError) as error:
        kind = compression_type(sys_flag).name
        raise CompressionError(f"{kind} body is damaged: {error}") from error
    raise CompressionError(_unknown(sys_flag))


class PlainRoom:
    """How much the bodies of one answer may become together.

    A few kilobytes can have a hundred bodies each of which becomes as long as one body may be, so
    there is a limit for all. What was compressed as well as data usually can be is always read,
    so the others in an answer are read whatever one of them becomes.
    """

    __slots__ = ("_left_bytes",)

    def __init__(self, most_bytes: int = MAX_BYTES_TOGETHER) -> None:
        self._left_bytes = most_bytes

    def decompress(self, body: bytes, sys_flag: int) -> bytes:
        """Decompresses a body if there is room for it. Raises CompressionError."""
        most_bytes = min(max(self._left_bytes, MAX_RATIO * len(body)), DEFAULT_MAX_BYTES)
        try:
            plain = decompress(body, sys_flag, most_bytes)
        except CompressionError:
            self._left_bytes -= most_bytes  # which it may have become before it was given up
            raise
        self._left_bytes -= len(plain)
        return plain


def _first_guess_bytes(body: bytes) -> int:
    """Returns a size that is enough for nearly all bodies, so the limit is seldom allocated."""
    return max(1 << 14, 8 * len(body))


def _decompress_zlib(body: bytes, max_bytes: int) -> bytes:
    if len(body) > max_bytes // _MOST_INFLATED:
        return _decompress_zlib_bounded(body, max_bytes)
    try:
        return quick_zlib.decompress(body)
    except _QUICK_ERROR:
        return _decompress_zlib_bounded(body, max_bytes)  # which tells what is wrong


def _decompress_zlib_bounded(body: bytes, max_bytes: int) -> bytes:
    stream = zlib.decompressobj()
    plain = stream.decompress(body, max_bytes + 1)
    return _checked(plain, "ZLIB", max_bytes, ended=stream.eof)


def _decompress_lz4(body: bytes, max_bytes: int) -> bytes:
    stream = lz4.frame.LZ4FrameDecompressor()
    room_bytes = max_bytes + 1
    plain: bytes = stream.decompress(body, max_length=min(room_bytes, _first_guess_bytes(body)))
    if not stream.eof and len(plain) < room_bytes:
        plain += stream.decompress(b"", max_length=room_bytes - len(plain))
    return _checked(plain, "LZ4", max_bytes, ended=stream.eof)


def _decompress_zstd(body: bytes, max_bytes: int) -> bytes:
    # The size that a frame declares would be allocated at once, so it is checked first.
    declared_bytes = zstandard.frame_content_size(body)
    if declared_bytes > max_bytes:
        raise CompressionError(f"ZSTD body is larger than {max_bytes} bytes: {declared_bytes}")
    stream = zstandard.ZstdDecompressor()
    guess_bytes = _first_guess_bytes(body)
    if guess_bytes < max_bytes:
        # Too little room and damage raise the same error: a second attempt, with all the room
        # that is allowed, distinguishes them.
        with contextlib.suppress(zstandard.ZstdError):
            return stream.decompress(body, max_output_size=guess_bytes)
    return stream.decompress(body, max_output_size=max_bytes)


def _checked(plain: bytes, kind: str, max_bytes: int, *, ended: bool) -> bytes:
    if len(plain) > max_bytes:
        raise CompressionError(f"{kind} body is larger than {max_bytes} bytes")
    if not ended:
        raise CompressionError(f"{kind} body is cut short")
    return plain


_OF_KIND: Final = {
    CompressionType.ZLIB: _decompress_zlib,
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
}
_DECOMPRESS: Final = {bits: _OF_KIND[kind] for bits, kind in _KINDS.items()}
