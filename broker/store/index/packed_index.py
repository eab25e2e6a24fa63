# SPDX-License-Identifier: Apache-2.0
"""An index whose waiting items are packed by a kernel: as rows, without an object for each.

Items of sends that the kernel took come as rows; those of all other messages come as entries, and
are packed when they are added, so that all keep the order of the log. The entries of a long batch
are packed when it is their turn, as they are many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.formats.packed import PackedRows
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.index.waiting_entries import MANY

_AT_ONCE: Final = 1_024


class RunEntries:
    """What follows for the index from a run of sends: `rows`, for so many messages.

    It stands where others have entries, of which only their number is asked. If part of them is in
    the index already, which only happens after the disk was full, there is no way to say which:
    then reput has to index the messages again, from the log.
    """

    __slots__ = ("_messages", "rows")

    def __init__(self, rows: PackedRows, messages: int) -> None:
        self.rows = rows
        self._messages = messages

    def __len__(self) -> int:
        return self._messages

    def __iter__(self) -> Any:
        raise ValueError("packed items are added together, or read from the log again")


class PackedEntries:
    """The waiting items, of which the entries of a long batch count as one each."""

    def __init__(self, new_rows: Callable[[], PackedRows]) -> None:
        self._rows = new_rows()
        self._later: deque[Sequence[IndexEntry] | RunEntries] = deque()
        """What comes behind the rows, since the first of it is too much to be packed at once."""
        self._packed = 0
        """How many of the first of these are packed already."""
        self._later_count = 0

    @property
    def count(self) -> int:
        """How many items wait."""
        return len(self._rows) + self._later_count

    def add(self, entries: Any) -> None:
        """Adds entries, or those of a run, behind all others."""
        if self._later or len(entries) > MANY:
            self._later.append(entries)
            self._later_count += len(entries)
        elif type(entries) is RunEntries:
            self._rows.extend(entries.rows)
        else:
            self._rows.add(entries)

    def first(self) -> PackedRows:
        """The rows that are to be written now: some if anything waits, but perhaps of none."""
        while self._later and not len(self._rows):
            first = self._later[0]
            if isinstance(first, RunEntries):
                self._rows.extend(first.rows)
                taken = len(first)
            else:
                some = first[self._packed : self._packed + _AT_ONCE]
                self._rows.add(some)
                taken = len(some)
                self._packed += taken
            self._later_count -= taken
            if isinstance(first, RunEntries) or self._packed >= len(first):
                self._later.popleft()
                self._packed = 0
        return self._rows


class PackedIndex(Index):
    """The index; `new_rows` makes the kernel's rows."""

    def __init__(
        self,
        files: Files,
        directory: str,
        slots: int,
        items: int,
        new_rows: Callable[[], PackedRows],
    ) -> None:
        super().__init__(files, directory, slots, items)
        self.pending = self._packed = PackedEntries(new_rows)
        self.new_rows = new_rows

    def write_pending(self, now_ms: int, most: int = 1 << 63) -> None:
        """Writes pending items, `most` or a few more; raises OSError without room."""
        packed = self._packed
        end = max(packed.count - most, 0)
        while packed.count > end:
            rows = packed.first()
            if len(rows):
                self.last_file(now_ms).put_packed(rows)
