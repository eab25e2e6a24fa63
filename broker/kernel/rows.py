# SPDX-License-Identifier: Apache-2.0
"""The reference of a kernel's rows: items that wait to be written to the index.

They are written in the same order and with the same bytes as IndexFile.put writes them. Where that
computes with columns, this takes one item after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Final

from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.index.index_rows import IndexEntry, rows_of
from txrocketmq.remoting.primitives.packing import fixed

_HEADER: Final = fixed(formats.INDEX_HEADER).struct
_SLOT: Final = fixed(formats.INDEX_SLOT).struct
_ITEM: Final = fixed(formats.INDEX_ITEM).struct
_MOST: Final = 1_024
_MAX_SECONDS: Final = (1 << 31) - 1


class ReferenceRows:
    """The rows: the hash of each key, and its message's log offset and store time."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._rows)

    def add(self, entries: Sequence[IndexEntry]) -> None:
        """Adds the items of entries."""
        self._rows += zip(*rows_of(entries), strict=True)

    def extend(self, other: ReferenceRows) -> None:
        """Adds the items of other rows."""
        self._rows += other._rows

    def put(self, mapped: mmap, slots: int, items_at: int, first: int, begin_ms: int) -> int:
        """Writes the first items, and forgets them; see PackedRows."""
        room = (len(mapped) - items_at) // _ITEM.size - first
        rows = self._rows[: max(min(room, _MOST), 0)]
        if not rows:
            return 0
        begin_timestamp_ms, _, begin_offset, _, used, _ = _HEADER.unpack_from(mapped)
        if begin_ms <= 0:
            begin_ms = rows[0][2]
        newest: dict[int, int] = {}
        for number, (key_hash, offset, stored_ms) in enumerate(rows, first):
            slot_at = _HEADER.size + key_hash % slots * _SLOT.size
            (previous,) = _SLOT.unpack_from(mapped, slot_at)
            if not 0 < previous < first:  # as after a crash
                previous = 0
            previous = newest.get(slot_at, previous)
            newest[slot_at] = number
            seconds = min(max((stored_ms - begin_ms) // 1000, 0), _MAX_SECONDS)
            item_at = items_at + number * _ITEM.size
            _ITEM.pack_into(mapped, item_at, key_hash, offset, seconds, previous)
            used += previous == 0
        if first == 1:
            begin_timestamp_ms, begin_offset = rows[0][2], rows[0][1]
        _HEADER.pack_into(
            mapped, 0, begin_timestamp_ms, rows[-1][2], begin_offset, rows[-1][1], used,
            first + len(rows),
        )  # fmt: skip
        for slot_at, number in newest.items():
            _SLOT.pack_into(mapped, slot_at, number)
        del self._rows[: len(rows)]
        return len(rows)
