# SPDX-License-Identifier: Apache-2.0
"""Messages of gRPC in a stream of bytes: a byte that says whether it is compressed, a length of
four bytes, and the message.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus

PREFIX_BYTES: Final = 5
MOST_DECOMPRESSED_BYTES: Final = 1024 * 1024
"""How many bytes a compressed message may have. No client of RocketMQ compresses in gRPC: those
that compress bodies do that themselves."""
IDENTITY: Final = "identity"
GZIP: Final = "gzip"
_prefix: Final = struct.Struct(">xI").pack


def framed(message: bytes) -> bytes:
    """Returns a message with its prefix."""
    return _prefix(len(message)) + message


def whole_message(data: bytes, most_bytes: int) -> bytes | None:
    """Returns the message that has arrived in one piece, if these bytes are one.

    It is None for any others, for one of more than `most_bytes` and for one that is compressed.
    """
    length = len(data) - PREFIX_BYTES
    if not 0 <= length <= most_bytes or data[:PREFIX_BYTES] != _prefix(length):
        return None
    return data[PREFIX_BYTES:]


class Messages:
    """What has arrived of a call, of which no message may be longer than `most_bytes`."""

    __slots__ = ("_data", "_encoding", "_most_bytes")

    def __init__(self, most_bytes: int, encoding: str) -> None:
        self._data = bytearray()
        self._most_bytes = most_bytes
        self._encoding = encoding

    @property
    def held_bytes(self) -> int:
        """How many bytes wait."""
        return len(self._data)

    def add(self, data: bytes) -> None:
        """Adds bytes that arrived."""
        self._data += data

    def next(self) -> bytes | None:
        """Removes the next message and returns it; None if it has not arrived.

        Raises GrpcError for one that is too long, or cannot be decompressed.
        """
        data = self._data
        if len(data) < PREFIX_BYTES:
            return None
        length = int.from_bytes(data[1:PREFIX_BYTES], "big")
        if length > self._most_bytes:
            raise GrpcError(
                GrpcStatus.RESOURCE_EXHAUSTED,
                f"a message has {length} bytes, but at most {self._most_bytes} are taken",
            )
        end = PREFIX_BYTES + length
        if len(data) < end:
            return None
        message = bytes(memoryview(data)[PREFIX_BYTES:end])
        is_compressed = data[0]
        if len(data) == end:
            self._data = bytearray()
        else:
            del data[:end]
        return self._decompressed(message) if is_compressed else message

    def _decompressed(self, message: bytes) -> bytes:
        if self._encoding != GZIP:
            raise GrpcError(
                GrpcStatus.INTERNAL, "a message is compressed, but its call names no grpc-encoding"
            )
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            whole = inflater.decompress(message, MOST_DECOMPRESSED_BYTES)
        except zlib.error as error:
            raise GrpcError(
                GrpcStatus.INTERNAL, f"a message is no valid gzip data: {error}"
            ) from None
        if inflater.unconsumed_tail:
            raise GrpcError(
                GrpcStatus.RESOURCE_EXHAUSTED,
                f"a compressed message has more than {MOST_DECOMPRESSED_BYTES} bytes",
            )
        if not inflater.eof:
            raise GrpcError(GrpcStatus.INTERNAL, "a message is gzip data that is cut off")
        return whole
