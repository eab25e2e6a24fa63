# SPDX-License-Identifier: Apache-2.0
"""What master and slave send each other on the port for replication (HA).

A slave sends nothing but the offset at which its log ends: as a request, as an acknowledgement, and
from time to time so that the connection counts as alive. A master sends frames: bytes of its log,
after their offset and their size; a frame without bytes is a heartbeat. Frames end anywhere in a
record, but never beyond a file of the log. There is no greeting, no name and no encryption.

Neither decoder holds more than one unfinished item, and both take bytes that are cut anywhere.

Java: HAConnection, HAClient; DefaultHAConnection, DefaultHAClient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from construct import Int32sb, Int64sb, Struct

from txrocketmq.remoting.primitives.packing import fixed

REPORT = Struct("offset" / Int64sb * "at which the log of the slave ends")
"""What a slave sends."""
FRAME_HEAD = Struct(
    "offset" / Int64sb * "of the first byte in the log; of the next one, if there are none",
    "size" / Int32sb * "of the bytes that follow; 0 in a heartbeat",
)
"""What stands before the bytes that a master sends."""

REPORT_CODEC: Final = fixed(REPORT).struct
HEAD_CODEC: Final = fixed(FRAME_HEAD).struct
HEAD_BYTES: Final = HEAD_CODEC.size
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024 - HEAD_BYTES
"""How many bytes of the log a frame has at most: a Java slave has a buffer of 4 MiB for it all."""


class HaPeerError(Exception):
    """The other end of a connection for replication asks or sends what cannot be right.

    The connection is to be closed; the text says why, in a sentence for the log.
    """


class ReportDecoder:
    """Finds the last complete report in the bytes of a slave."""

    def __init__(self) -> None:
        self._rest = b""

    def last(self, data: bytes) -> int | None:
        """The last report that is complete with these bytes; None if none has become so."""
        size = REPORT_CODEC.size
        data = self._rest + data
        end = len(data) // size * size
        self._rest = data[end:]
        if not end:
            return None
        return int(REPORT_CODEC.unpack_from(data, end - size)[0])


class TransferDecoder:
    """Cuts the bytes of a master into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def frames(self, data: bytes) -> Iterator[tuple[int, memoryview]]:
        """Yields the frames that are complete with these bytes: offset and bytes of the log.

        Raises HaPeerError for a size that no master sends.
        """
        whole: bytes | bytearray = data
        if self._rest:
            self._rest += data
            whole = self._rest if self._is_complete() else b""
        view = memoryview(whole)
        at = 0
        while at + HEAD_BYTES <= len(view):
            offset, size = _head(view, at)
            start, end = at + HEAD_BYTES, at + HEAD_BYTES + size
            if end > len(view):
                break
            yield offset, view[start:end]
            at = end
        if whole:
            self._rest = bytearray(view[at:])

    def _is_complete(self) -> bool:
        rest = self._rest
        return len(rest) >= HEAD_BYTES and len(rest) >= HEAD_BYTES + _head(rest)[1]


def _head(data: bytearray | memoryview, at: int = 0) -> tuple[int, int]:
    """Offset and size of the frame that begins here."""
    offset, size = HEAD_CODEC.unpack_from(data, at)
    if not 0 <= size <= MAX_FRAME_BYTES:
        raise HaPeerError(
            f"a frame of {size} bytes cannot be: a master sends at most {MAX_FRAME_BYTES} at once"
        )
    return offset, size
