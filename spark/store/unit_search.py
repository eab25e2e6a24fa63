# SPDX-License-Identifier: Apache-2.0
"""Searches in one local file of a consume queue, by few reads of a file that is opened once.

Files are made at full size. Where a file system keeps holes, it tells where the first one begins,
and the last unit is near; elsewhere a bisection finds it. A read brings a block of units, so the
questions that come next are mostly answered already.
"""

from __future__ import annotations

from bisect import bisect_left
from types import TracebackType
from typing import Any, Final, Self

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import picked
from txrocketmq.spark.store.files import LocalFiles, NumberedFile

_PLACE: Final = picked(formats.CONSUME_QUEUE_UNIT, "physical_offset", "size")
"""What units of both kinds begin with."""
BLOCK_UNITS: Final = 512
"""How many units are read at once: those of the page in which the last one is, and as many more."""


class UnitSearch:
    """The units of one file, which have `unit_bytes` each. Use it as a context.

    Raises FileNotFoundError if the file is gone.
    """

    def __init__(self, files: LocalFiles, file: NumberedFile, unit_bytes: int) -> None:
        self._unit_bytes = unit_bytes
        self._file = files.open(file.path)
        self._block = b""
        self._block_at = 0
        """The place of the first unit of the block that was read last."""
        self._one: Any = (0, 0)
        self._one_at = -1
        """The place of the unit that was read last by itself."""
        self.written = self._written(file.size // unit_bytes)
        """How many units are written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def first_in_log(self, min_physical: int) -> int:
        """Returns the place of the first message whose record starts there or later.

        If there is none, returns `written`. Units that stand for no message are passed over.
        """

        def is_in_log(place: int) -> bool:
            physical = self._next(place)[1]
            return physical is not None and physical >= min_physical

        written = self.written
        if not written or not is_in_log(written - 1):
            return written
        # Units without messages are usually those before the first message of the queue.
        low = 0 if self._is_real(0) else bisect_left(range(written), True, key=self._is_real)  # noqa: FBT003 - what is looked for
        if not is_in_log(low):
            low = bisect_left(range(written), True, lo=low, key=is_in_log)  # noqa: FBT003 - as above
        return self._next(low)[0]

    def raw(self, start: int, end: int) -> bytes:
        """Returns the bytes of these units; fewer at the end of the file."""
        size = self._unit_bytes
        at = (start - self._block_at) * size
        if at >= 0 and (end - self._block_at) * size <= len(self._block):
            return self._block[at : at + (end - start) * size]
        return self._file.read(start * size, (end - start) * size)

    def _written(self, count: int) -> int:
        count = min(count, -(-self._file.first_hole() // self._unit_bytes))
        if count <= 0:
            return 0
        start = max(0, count - BLOCK_UNITS)
        self._load(start, count - start)
        if start and self._is_unwritten(start):
            start, count = 0, start
        return bisect_left(range(count), True, lo=start, key=self._is_unwritten)  # noqa: FBT003 - as above

    def _is_unwritten(self, place: int) -> bool:
        physical, size = self._unit(place)
        return size <= 0 or physical < 0

    def _is_real(self, place: int) -> bool:
        return _is_real(self._unit(place)[1])

    def _next(self, place: int) -> tuple[int, int | None]:
        """Returns the place of the first message from this unit on, and that in the log."""
        while place < self.written:
            physical, size = self._unit(place)
            if _is_real(size):
                return place, physical
            place += 1
            if not self._block_at <= place < self._block_at + BLOCK_UNITS:
                self._load(place, BLOCK_UNITS)
        return self.written, None

    def _unit(self, place: int) -> tuple[int, int]:
        """Returns the fields of _PLACE; zeros after the end of the file."""
        at = (place - self._block_at) * self._unit_bytes
        if at < 0 or at + _PLACE.size > len(self._block):
            if self._one_at != place:
                data = self._file.read(place * self._unit_bytes, _PLACE.size)
                self._one = _PLACE.unpack(data) if len(data) == _PLACE.size else (0, 0)
                self._one_at = place
            return self._one  # type: ignore[no-any-return]
        return _PLACE.unpack_from(self._block, at)

    def _load(self, place: int, count: int) -> None:
        self._block = self._file.read(place * self._unit_bytes, count * self._unit_bytes)
        self._block_at = place


def _is_real(size: int) -> bool:
    """Whether a unit of this size stands for a message."""
    return size > 0 and size != formats.CONSUME_QUEUE_PRE_BLANK_SIZE
