# SPDX-License-Identifier: Apache-2.0
"""The files of the index: which records have a key with a given hash.

A file holds a header, hash slots and items. It does not say how many slots it has. The number
follows from the size of the file for the sizes that brokers use by default; otherwise it is found
with the help of the items.

Java: IndexFile, IndexHeader, IndexService.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import dtype, fixed
from txrocketmq.spark.arrow.errors import UnsupportedLayout
from txrocketmq.spark.store.files import Files, listed_or_none

ENTRIES: Final = np.dtype(
    [
        ("item", "i4"),
        ("key_hash", "i4"),
        ("physical_offset", "i8"),
        ("store_timestamp", "i8"),
        ("previous_item", "i4"),
    ]
)
"""An item in memory, in native byte order; `store_timestamp` is in ms but exact to the second."""

_HEADER: Final = fixed(formats.INDEX_HEADER)
_ITEM: Final = fixed(formats.INDEX_ITEM)
_ITEM_TYPE: Final = dtype(formats.INDEX_ITEM)
_SLOT_BYTES: Final[int] = formats.INDEX_SLOT.sizeof()
_USUAL_SLOTS: Final = 5_000_000
_ITEMS_PER_SLOT: Final = 4
"""Items for each slot with the brokers' default configuration, 20,000,000 items in all."""
_PIECE_ITEMS: Final = 1 << 18
_SEARCH_BYTES: Final = 8 << 20


Header = Mapping[str, int]
"""The header of an index file: the fields of formats.INDEX_HEADER."""


@dataclass(frozen=True)
class IndexFile:
    """One file of the index; `name` is the time at which it was created, `size` is in bytes."""

    name: str
    size: int
    files: Files
    path: str

    def header(self) -> Header:
        """Reads the current header. Raises FileNotFoundError when the file is gone."""
        return _HEADER.fields(self._read(0, _HEADER.size))

    def entries(self) -> Iterator[NDArray[Any]]:
        """Yields all items in the order of the log, as arrays of ENTRIES.

        Raises UnsupportedLayout when the number of slots cannot be determined.
        """
        header = self.header()
        slots = self._slots(header)
        if slots is None:
            return
        items = (self.size - _HEADER.size - slots * _SLOT_BYTES) // _ITEM.size
        count = min(header["index_count"], items)
        for first in range(1, count, _PIECE_ITEMS):
            length = min(_PIECE_ITEMS, count - first)
            data = self._read(self._item_at(slots, first), length * _ITEM.size)
            raw = np.frombuffer(data, _ITEM_TYPE)
            rows = np.empty(len(raw), ENTRIES)
            rows["item"] = np.arange(first, first + len(raw))
            for name in ("key_hash", "physical_offset", "previous_item"):
                rows[name] = raw[name]
            seconds = raw["seconds_since_begin"].astype(np.int64)
            rows["store_timestamp"] = header["begin_timestamp"] + seconds * 1000
            yield rows

    def _slots(self, header: Header) -> int | None:
        """Returns the number of slots; None for a file without items."""
        if header["index_count"] <= 1:
            return None
        slots = (self.size - _HEADER.size) // (_SLOT_BYTES + _ITEMS_PER_SLOT * _ITEM.size)
        if slots == _USUAL_SLOTS or self._has_slots(header, slots):
            return slots
        for slots in self._slots_by_search(header):
            if self._has_slots(header, slots):
                return slots
        raise UnsupportedLayout(
            f"{self.path} is an index file of {self.size} bytes whose number of slots cannot be"
            " told: it is damaged, or was made with an unusual maxHashSlotNum and maxIndexNum"
        )

    def _has_slots(self, header: Header, slots: int) -> bool:
        """Returns whether with so many slots the newest item is found, and found by its slot."""
        newest = header["index_count"] - 1
        end = self._item_at(slots, header["index_count"])
        if slots <= 0 or end > self.size:
            return False
        key_hash, physical_offset, _, previous = self._item(slots, newest)
        if physical_offset != header["end_physical_offset"] or not 0 <= previous < newest:
            return False
        slot_at = _HEADER.size + key_hash % slots * _SLOT_BYTES
        # In a live file the slot may refer to a newer item than the header that was read.
        return int.from_bytes(self._read(slot_at, _SLOT_BYTES), "big", signed=True) >= newest

    def _slots_by_search(self, header: Header) -> Iterator[int]:
        """Yields numbers of slots with which the newest item has the header's last offset."""
        wanted = header["end_physical_offset"].to_bytes(8, "big", signed=True)
        offset_at = _ITEM.offset_of("physical_offset")
        for start in range(_HEADER.size, self.size, _SEARCH_BYTES):
            data = self._read(start, min(_SEARCH_BYTES + len(wanted), self.size - start))
            at = data.find(wanted)
            while at >= 0:
                items_at = start + at - offset_at - (header["index_count"] - 1) * _ITEM.size
                slots, rest = divmod(items_at - _HEADER.size, _SLOT_BYTES)
                if slots > 0 and not rest:
                    yield slots
                at = data.find(wanted, at + 1)

    def _item_at(self, slots: int, item: int) -> int:
        return _HEADER.size + slots * _SLOT_BYTES + item * _ITEM.size

    def _item(self, slots: int, item: int) -> tuple[int, ...]:
        return _ITEM.struct.unpack(self._read(self._item_at(slots, item), _ITEM.size))

    def _read(self, at: int, length: int) -> bytes:
        data = bytearray(length)
        if self.files.read_into(self.path, at, memoryview(data)) < length:
            raise UnsupportedLayout(
                f"{self.path} is shorter than it was: it is no longer an index file"
            )
        return bytes(data)


def index_files(files: Files, directory: str) -> list[IndexFile]:
    """The index files of a directory, oldest first; none where there is no directory."""
    return [
        IndexFile(each.name, each.size, files, f"{directory}/{each.name}")
        for each in listed_or_none(files, directory)
        if each.name.isdecimal() and each.size > _HEADER.size
    ]
