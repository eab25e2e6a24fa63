# SPDX-License-Identifier: Apache-2.0
"""Scrubbing: compares bodies that come from the disk with the CRCs that they were stored with.

Bytes rot on the disk, not in memory. So this is done when parts of the log are read from the disk,
in the thread that reads them (in_memory.py), and nowhere else: readers of what is in memory pay
nothing. A wrong body is only reported; others decide what to do about it.

Nobody says where records begin in such a part. The first one is recognized (record_head.py), and
the others follow one another. A record that reaches beyond the part is checked with it: the rest is
read as well. So each record is checked with the part in which it begins.

What is no record is skipped: whoever asks for one there notices it (slices.py).

Java: has no counterpart; clients compare.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.record_head import HEAD, MAGICS, next_head
from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.broker.store.formats.scan import RecordWalk

_MOST_BYTES: Final = 32 * 1024 * 1024
"""A record that claims to be larger is taken to be damaged: a frame has half of that."""
_AT_ONCE: Final = 128
"""How many records are checked between two pauses, in some tenths of a millisecond. Without pauses
the interpreter's lock would be kept for longer, and the reactor's thread waits for it after each of
its system calls."""
_PAUSE_S: Final = 0.000_05

Read = Callable[[str, int, int], bytes]
"""Reads a part of a file: takes its path, the position and the number of bytes."""


class _Part(NamedTuple):
    """Bytes of the log, and their log offset."""

    view: memoryview
    from_offset: int


class Scrub:
    """Checks parts of the log in the order of their offsets, in one thread; adds to `wrong`."""

    def __init__(self, read: Read, pause: Callable[[float], None] = time.sleep) -> None:
        self._read = read
        self._pause = pause
        self._path = ""
        self._next = 0
        """The position in this file at which the next unchecked record may begin."""
        self.wrong: list[Damage] = []
        """Records whose bodies do not match their CRCs."""

    def look(self, path: str, position: int, log_offset: int, data: bytes) -> None:
        """Checks the records that begin in these bytes, which are at this position of the file."""
        end = len(data)
        at = max(self._next - position, 0) if path == self._path else 0
        self._path = path
        part = _Part(memoryview(data), log_offset)
        while at < end:
            start = at
            at = self._pass_wrong(part, self._pass_sound(part, at), path, position)
            if at == start:
                at += self._pass_long(part, at, path, position)
            if at == start:
                found = next_head(data, log_offset, at + 1, end)
                at = end if found < 0 else found
        self._next = position + at

    def _pass_sound(self, part: _Part, at: int) -> int:
        """Skips sound records; returns where no sound record begins that ends in this part."""
        walk = RecordWalk(part, at, check_crc=True)
        for count, _ in enumerate(walk, 1):
            if count % _AT_ONCE == 0:
                self._pause(_PAUSE_S)
        return walk.position

    def _pass_wrong(self, part: _Part, at: int, path: str, position: int) -> int:
        """Notes the unsound record at `at`; returns its end, or `at` if it is no record."""
        for record in RecordWalk(part, at, check_crc=False):
            queue = f"{str(record.topic, 'utf-8', 'replace')}/{record.queue_id}"
            self.wrong.append(
                Damage(
                    record.physical_offset, record.size_bytes, path, position + at, queue,
                    record.queue_offset,
                )
            )  # fmt: skip
            return record.end
        return at

    def _pass_long(self, part: _Part, at: int, path: str, position: int) -> int:
        """Checks a record that begins at `at` and ends behind this part; returns its size, or 0."""
        left = len(part.view) - at
        if left < HEAD.size:
            head = self._read(path, position + at, HEAD.size)
            if len(head) < HEAD.size:
                return 0
            size, magic, offset = HEAD.unpack_from(head)
        else:
            size, magic, offset = HEAD.unpack_from(part.view, at)
        if offset != part.from_offset + at or magic not in MAGICS or not left < size <= _MOST_BYTES:
            return 0
        whole = _Part(memoryview(self._read(path, position + at, size)), offset)
        return self._pass_sound(whole, 0) or self._pass_wrong(whole, 0, path, position + at)
