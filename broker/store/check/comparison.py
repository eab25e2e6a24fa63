# SPDX-License-Identifier: Apache-2.0
"""Compares the logs of two stores of one master, or of copies of it, up to where the first ends.

A replica has the very bytes of its master's log, so bytes are compared, as fast as they can be
read; a CRC would show less. What differs is then told as records: where the logs are the same,
their records are, so both have one that begins where the first difference lies in, or end there.

Java: has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.log.log_walk import END, record_at
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK
from txrocketmq.remoting.primitives.packing import fixed

_PIECE_BYTES: Final = 1 << 20
"""How much of each log is compared at once, and copied for that."""
_BLANK: Final = fixed(BLANK).struct


class RecordFound(NamedTuple):
    """The record of one log at an offset."""

    data: bytes
    is_sound: bool
    """Whether its body has the CRC that it was stored with."""


@dataclass
class Rest:
    """What a log has from an offset on."""

    messages: int = 0
    size_bytes: int = 0


class Comparison:
    """Compares two stores, which were opened on copies; to be run once.

    Raises StoreError when a log cannot be read where it should have bytes.
    """

    def __init__(self, first: StoreCheck, second: StoreCheck) -> None:
        self.sides = first, second
        self.start = max(first.start, second.start)
        """Where the later one of the two logs begins."""
        self.end = min(first.end, second.end)
        """Where the shorter one of the two logs ends."""
        self.equal_to = self.start
        """The logs are the same up to here, where a record ends, or where neither has more."""
        self.differs = False
        """Whether there are other bytes in both logs behind that."""

    @property
    def has_common(self) -> bool:
        """Whether there are offsets that both logs have."""
        return self.start < self.end

    def run(self) -> Iterator[int]:
        """Compares, in steps; yields how many bytes each step has compared."""
        at = self.start
        while at < self.end:
            first, second = (self._piece(side, at) for side in self.sides)
            count = min(len(first), len(second))
            same = _same(bytes(first[:count]), bytes(second[:count]))
            yield same
            at += same
            if same < count:
                self.differs = True
                self.equal_to = self._record_before(at)
                return
        self.equal_to = max(at, self.start)

    def _piece(self, side: StoreCheck, at: int) -> memoryview:
        found = side.log.read_raw(at, min(_PIECE_BYTES, self.end - at))
        if not found:
            raise StoreError(f"{side.log.files.directory} has no bytes at {at}: a file is missing")
        return found

    def _record_before(self, at: int) -> int:
        """Where the record begins that contains this offset, at which the logs differ first."""
        side = self.sides[0]
        file = side.log.files.find(at)
        start = self.start if file is None else max(file.from_offset, self.start)
        walk, last = side.structure(), None
        for found in walk.batches(start, at + 1):
            last = found if len(found) else last
        for damage in walk.damages:
            if damage.start <= at <= damage.end:
                return damage.start
        records = list(last.records())[-1:] if last is not None else []
        for record in records:
            end = record.physical_offset + record.size_bytes
            # Behind the last record of a file there is a blank.
            return record.physical_offset if end > at else end
        return start

    def rests(self) -> tuple[Rest, Rest]:
        """What each log has behind the part that is the same in both."""
        first, second = (self._rest(side) for side in self.sides)
        return first, second

    def _rest(self, side: StoreCheck) -> Rest:
        start = max(self.equal_to, side.start)
        if side.end <= start:
            return Rest()
        messages = sum(map(len, side.structure().batches(start, side.end)))
        return Rest(messages, side.end - start)

    def found(self, number: int) -> RecordFound | None:
        """The record of a side at the first difference; None if it has none there."""
        return found_at(self.sides[number], self.equal_to)


def found_at(side: StoreCheck, offset: int) -> RecordFound | None:
    """The record that begins at an offset of a log; None if none does."""
    row = side.log.files
    record = record_at(row, offset, check_crc=False) if offset < side.end else None
    if record is None:
        return None
    is_sound = record_at(row, offset, check_crc=True) is not None
    return RecordFound(bytes(record.view[record.end - record.size_bytes : record.end]), is_sound)


def ends_file(side: StoreCheck, offset: int) -> bool:
    """Whether a log has a blank there, which ends a file, and goes on in the next one."""
    found = side.log.read_raw(offset, _BLANK.size)
    return (
        found is not None and len(found) == _BLANK.size and _BLANK.unpack(found)[1] == MAGIC_BLANK
    )


def around(side: StoreCheck, offset: int) -> tuple[int, int]:
    """The places nearest to an offset at which a record begins or ends: up to it, and from it on.

    Both are the offset itself if it is such a place.
    """
    file = side.log.files.find(offset)
    if file is None or offset == file.from_offset:
        return offset, offset
    walk, before = side.structure(), max(file.from_offset, side.start)
    for found in walk.batches(before, min(offset, END)):
        for record in list(found.records())[-1:]:
            if record.physical_offset + record.size_bytes > offset:
                return record.physical_offset, record.physical_offset + record.size_bytes
            before = record.physical_offset + record.size_bytes
    if before == offset:
        return offset, offset
    return before, min(file.from_offset + file.size_bytes, side.end)


def _same(first: bytes, second: bytes) -> int:
    """How many bytes at the beginning of two texts of one length are the same."""
    if first == second:
        return len(first)
    low, high = 0, len(first)
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low
