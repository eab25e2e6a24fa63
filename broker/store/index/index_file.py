# SPDX-License-Identifier: Apache-2.0
"""Finds messages by key: files of hash slots, each of which is the head of a chain of items.

An item says: a message whose key has this hash was stored about then and lies there. Different keys
may share a hash; who asks compares the key. Items are numbered from 1 in the order of the log;
a slot holds the number of its newest item, an item that of the next older one in its slot.

Many items are written in an order that a killed process cannot spoil: items, header, slots; `redo`
sets the slots again that a crash left behind.

Java: index.IndexFile, IndexHeader, IndexService.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Protocol

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.in_memory import ColdRead, InMemory
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.packed import PackedRows
from txrocketmq.broker.store.index.index_rows import TAG_INDEX, IndexEntry, Rows, positive, rows_of
from txrocketmq.broker.store.index.query_result import BrokenIndexChain, QueryOffsetResult
from txrocketmq.broker.store.index.waiting_entries import WaitingEntries
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.remoting.primitives.packing import fixed

__all__ = ["TAG_INDEX", "Index", "IndexEntry", "IndexFile", "QueryOffsetResult", "index_file_name"]

_HEADER: Final = fixed(formats.INDEX_HEADER).struct
_SLOT: Final = fixed(formats.INDEX_SLOT).struct
_ITEM: Final = fixed(formats.INDEX_ITEM).struct
_ITEM_FIELDS: Final = len(fixed(formats.INDEX_ITEM).names)
ITEM_BYTES: Final = _ITEM.size
_FIRST_SLOT: Final = _HEADER.size // _SLOT.size
_MAX_WRITTEN: Final = 1024
"""How many items are written at once at most; so many may lack their slots after a crash."""
_ITEMS_A_STEP: Final = 32
_NAME_DIGITS: Final = 17
_MAX_SECONDS: Final = (1 << 31) - 1


class IndexFile:
    """One index file."""

    begin_timestamp_ms: int
    end_timestamp_ms: int
    begin_physical_offset: int
    end_physical_offset: int

    def __init__(self, file: MappedFile, slots: int, items: int) -> None:
        self.file = file
        self._slots = slots
        self._items = items
        self._items_at = _HEADER.size + slots * _SLOT.size
        file.fill(self._items_at)
        self._read_header()
        filled = self._items_at + max(self._next_item, 1) * _ITEM.size
        file.wrote_bytes = min(filled, file.size_bytes)
        file.fill(file.wrote_bytes)
        self._reserved = False
        self._ints = memoryview(file.map()).cast("i")
        """The file as integers in native byte order, for its slots: see _swapped."""

    def _read_header(self) -> None:
        (
            self.begin_timestamp_ms, self.end_timestamp_ms, self.begin_physical_offset,
            self.end_physical_offset, self._used_slots, count,
        ) = _HEADER.unpack_from(self.file.map(), 0)  # fmt: skip
        self._next_item: int = count or 1

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def is_full(self) -> bool:
        return self._next_item >= self._items

    @property
    def has_items(self) -> bool:
        return self._next_item > 1

    @property
    def next_item(self) -> int:
        """The number that the next item will get."""
        return self._next_item

    def why_damaged(self) -> str:
        """What is impossible in the header, as a text; empty when it is sound."""
        if not 0 < self._next_item <= self._items:
            return f"its header counts {self._next_item} items, but at most {self._items} fit"
        if not 0 <= self._used_slots <= self._next_item:
            return f"its header counts {self._used_slots} slots for {self._next_item - 1} items"
        if self.has_items and min(self.begin_timestamp_ms, self.end_timestamp_ms) < 0:
            return "a time in its header is before 1970"
        if self.has_items and not 0 <= self.begin_physical_offset <= self.end_physical_offset:
            return "the end in its header is before its beginning"
        return ""

    def why_zeroed(self) -> str:
        """What first and last item lack that header or slots should have, as a text; else empty."""
        mapped, last = self.file.map(), self._next_item - 1
        for number, at in ((1, self.begin_physical_offset), (last, self.end_physical_offset)):
            key_hash, offset, _, _ = _ITEM.unpack_from(mapped, self._items_at + number * _ITEM.size)
            if offset != at:
                return f"its item {number} refers to another message than its header"
            newest = _swapped([self._ints[_FIRST_SLOT + key_hash % self._slots]])[0]
            if not number <= newest <= last:
                return f"its slots do not lead to its item {number}"
        return ""

    def follow(self, before: IndexFile) -> None:
        """Starts the header of a new file where the file before it ends."""
        self.begin_physical_offset = self.end_physical_offset = before.end_physical_offset
        self.begin_timestamp_ms = self.end_timestamp_ms = before.end_timestamp_ms

    def put(self, rows: Rows, start: int) -> int:
        """Writes items of rows from index `start` on; returns how many it had room for.

        Raises OSError, and writes nothing, when the disk has no room.
        """
        first = self._next_item
        count = min(self._items - first, len(rows.hashes) - start, _MAX_WRITTEN)
        if count <= 0:
            return 0
        self._reserve(count)
        hashes = rows.hashes[start : start + count]
        offsets = rows.offsets[start : start + count]
        times_ms = rows.times_ms[start : start + count]
        all_slots = self._slots
        slots = [_FIRST_SLOT + key_hash % all_slots for key_hash in hashes]
        previous = self._previous(slots)
        fields = [0] * (_ITEM_FIELDS * count)
        fields[0::_ITEM_FIELDS] = hashes
        fields[1::_ITEM_FIELDS] = offsets
        fields[2::_ITEM_FIELDS] = self._seconds(times_ms)
        fields[3::_ITEM_FIELDS] = previous
        mapped = self.file.map()
        at = self._items_at + first * _ITEM.size
        mapped[at : at + count * _ITEM.size] = _items_struct(count).pack(*fields)
        if first == 1:
            self.begin_physical_offset = offsets[0]
            self.begin_timestamp_ms = times_ms[0]
        self.end_physical_offset, self.end_timestamp_ms = offsets[-1], times_ms[-1]
        self._used_slots += previous.count(0)
        self._next_item = first + count
        self._write_header()
        ints = self._ints
        for slot, number in zip(slots, _swapped(range(first, first + count)), strict=True):
            ints[slot] = number
        return count

    def put_packed(self, rows: PackedRows) -> int:
        """Writes the first of the items, and has them forgotten, as `put` does it with others."""
        first = self._next_item
        count = min(self._items - first, len(rows), _MAX_WRITTEN)
        if count <= 0:
            return 0
        self._reserve(count)
        rows.put(self.file.map(), self._slots, self._items_at, first, self.begin_timestamp_ms)
        self._read_header()
        return count

    def _previous(self, slots: list[int]) -> list[int]:
        """For each new item, the number of the item before it in its slot; 0 if there is none."""
        ints = self._ints
        previous = list(_swapped([ints[slot] for slot in slots]))
        first = self._next_item
        if max(previous) >= first or min(previous) < 0:
            previous = [number if 0 < number < first else 0 for number in previous]
        if len(set(slots)) < len(slots):
            newest: dict[int, int] = {}
            for at, slot in enumerate(slots):
                previous[at] = newest.get(slot, previous[at])
                newest[slot] = first + at
        return previous

    def _seconds(self, times_ms: list[int]) -> list[int]:
        """For each new item, its time in seconds since the first item of the file."""
        begin_ms = self.begin_timestamp_ms
        if begin_ms <= 0:
            begin_ms = times_ms[0]
        if times_ms.count(times_ms[0]) == len(times_ms):
            return [min(max((times_ms[0] - begin_ms) // 1000, 0), _MAX_SECONDS)] * len(times_ms)
        return [min(max((each - begin_ms) // 1000, 0), _MAX_SECONDS) for each in times_ms]

    def redo(self) -> None:
        """Sets the slots of the last items, which a killed process may not have set."""
        mapped = self.file.map()
        for number in range(max(self._next_item - _MAX_WRITTEN, 1), self._next_item):
            key_hash = _ITEM.unpack_from(mapped, self._items_at + number * _ITEM.size)[0]
            slot = _FIRST_SLOT + key_hash % self._slots
            if _swapped([self._ints[slot]])[0] < number:
                self._ints[slot] = _swapped([number])[0]

    def covers(self, begin_ms: int, end_ms: int) -> bool:
        """Whether the file may have items of this span of time (isTimeMatched)."""
        first, last = self.begin_timestamp_ms, self.end_timestamp_ms
        return (
            (begin_ms < first and end_ms > last)
            or first <= begin_ms <= last
            or first <= end_ms <= last
        )

    def chain(
        self, key_hash: int, memory: InMemory | None = None
    ) -> Iterator[tuple[int, int, int] | ColdRead]:
        """Yields the items in the slot of a hash, newest first: hash, log offset, store time in ms.

        Between them it yields reads for items that are not in memory, if it is told what is. Raises
        BrokenChain at an item of another slot: that part of the file is damaged.
        """
        mapped = self.file.map()
        slot = key_hash % self._slots
        at = (_FIRST_SLOT + slot) * _SLOT.size
        if memory and (read := memory.read_of(self.file, at, at + _SLOT.size)):
            yield read
        (number,) = _swapped([self._ints[_FIRST_SLOT + slot]])
        while 0 < number < self._next_item:
            at = self._items_at + number * _ITEM.size
            if memory and (read := memory.read_of(self.file, at, at + _ITEM.size)):
                yield read
            item_hash, physical_offset, seconds, previous = _ITEM.unpack_from(mapped, at)
            is_elsewhere = item_hash < 0 or item_hash % self._slots != slot
            if is_elsewhere or physical_offset < self.begin_physical_offset:
                raise BrokenIndexChain(self.path, self._items_at + number * _ITEM.size)
            if seconds < 0:
                return
            yield item_hash, physical_offset, self.begin_timestamp_ms + seconds * 1000
            number = previous if previous < number else 0

    def items(self) -> Iterator[tuple[int, int]]:
        """Yields for each item its position in the file, and the log offset of its message."""
        position = self._items_at + _ITEM.size
        end = self._items_at + self._next_item * _ITEM.size
        for _, physical_offset, _, _ in _ITEM.iter_unpack(self.file.view[position:end]):
            yield position, physical_offset
            position += _ITEM.size

    def _reserve(self, count: int) -> None:
        """Reserves room for slots and items, at first for all: the file may come from elsewhere."""
        if not self._reserved:
            self.file.wrote_bytes = 0
        end = self._items_at + (self._next_item + count) * _ITEM.size
        self.file.reserve(end)
        self.file.wrote_bytes = end
        self._reserved = True

    def _write_header(self) -> None:
        _HEADER.pack_into(
            self.file.map(),
            0,
            self.begin_timestamp_ms,
            self.end_timestamp_ms,
            self.begin_physical_offset,
            self.end_physical_offset,
            self._used_slots,
            self._next_item,
        )


def _swapped(numbers: Sequence[int]) -> tuple[int, ...]:
    """Converts 32-bit integers between this machine's byte order and the file's."""
    count = len(numbers)
    return struct.unpack(f">{count}i", struct.pack(f"={count}i", *numbers))


@lru_cache(maxsize=_MAX_WRITTEN)
def _items_struct(count: int) -> struct.Struct:
    return fixed(formats.INDEX_ITEM).rows(count)


class Pending(Protocol):
    """What waits to be written."""

    @property
    def count(self) -> int:
        """How many there are."""

    def add(self, entries: Sequence[IndexEntry]) -> None:
        """Adds entries behind all others."""


class Index:
    """All index files of a store, and the entries that wait to be written.

    `add` takes entries from the code that stores messages; `write_pending` writes them. Queries
    write pending entries first, so they find them, and recovery builds them again after a crash.
    """

    def __init__(self, files: Files, directory: str, slots: int, items: int) -> None:
        self._disk = files
        self._directory = directory
        self._slots = slots
        self._items = items
        self._size_bytes = _HEADER.size + slots * _SLOT.size + items * _ITEM.size
        self._files: list[IndexFile] = []
        self._entries = WaitingEntries()
        self.pending: Pending = self._entries
        self.damaged: list[tuple[str, str]] = []
        """Files that were not used, with the reasons: pairs of path and text."""
        self._unfinished: list[str] = []
        """Files left by a crash that contain nothing usable."""
        self.foreign: list[str] = []
        """Paths in the directory that are no index files."""
        self.full_files: list[IndexFile] = []
        """Files that became full and are not durable yet; see flush.py."""

    def load(self, keep_until_ms: int | None, *, redo: bool = False) -> None:
        """Finds the files that can be continued; recovery builds what is missing from the log.

        Those are the files before the first damaged one; it and all behind it are listed in
        `damaged`. After a crash of the machine, files with items later than `keep_until_ms` cannot
        be trusted: the first such file and all behind it are not used, and remove_unfinished
        removes them. `redo` is for a crash of the process alone.
        """
        self._files, self.damaged, self.foreign, self._unfinished = [], [], [], []
        is_young = False
        for entry in self._disk.entries(self._directory):
            path = os.path.join(self._directory, entry.name)
            if len(entry.name) != _NAME_DIGITS or not entry.name.isdecimal():
                self.foreign.append(path)
            elif is_young or entry.size_bytes == 0:
                self._unfinished.append(path)  # a crash while it was being made, or afterwards
            elif self.damaged:
                self.damaged.append((path, "it comes after a damaged one"))
            elif entry.size_bytes != self._size_bytes:
                made = f"maxHashSlotNum and maxIndexNum make it {self._size_bytes}"
                self.damaged.append((path, f"it has {entry.size_bytes} bytes, where {made}"))
            else:
                is_young = not self._load_file(path, keep_until_ms, redo=redo)

    def _load_file(self, path: str, keep_until_ms: int | None, *, redo: bool) -> bool:
        """Uses a file, or notes why not; returns False when it and all behind it are too young."""
        file = IndexFile(MappedFile(self._disk, path, self._size_bytes), self._slots, self._items)
        why = file.why_damaged()
        if why:
            self.damaged.append((path, why))
        elif not file.has_items:
            self._unfinished.append(path)  # a crash while it was being made
        elif keep_until_ms is not None and file.end_timestamp_ms > keep_until_ms:
            self._unfinished.append(path)
            return False
        else:
            if redo:
                file.redo()
            if why := file.why_zeroed():
                self.damaged.append((path, why))
                return True
            if redo and file.is_full:
                self.full_files.append(file)
            self._files.append(file)
        return True

    def remove_unfinished(self) -> list[str]:
        """Removes files left by a crash that contain nothing usable; returns their paths."""
        for path in self._unfinished:
            self._disk.remove(path)
        return self._unfinished

    @property
    def next_offset(self) -> int:
        """Messages before this log offset are indexed; 0 when none is."""
        if not any(file.has_items for file in self._files):
            return 0
        return self._files[-1].end_physical_offset + 1

    def extents(self) -> dict[str, list[int]]:
        """By file name: log offsets of the first and last message, and the next item's number."""
        return {
            os.path.basename(file.path): [
                file.begin_physical_offset,
                file.end_physical_offset,
                file.next_item,
            ]
            for file in self._files
        }

    def drop_after(self, physical_offset: int) -> list[str]:
        """Removes files from the first one with messages that the log lost; returns their paths.

        Their items for other messages are to be indexed again.
        """
        paths = []
        while self._files and self._files[-1].end_physical_offset >= physical_offset:
            paths.append(self._files[-1].path)
            self._files.pop().file.remove()
        return paths

    def spans(self) -> list[tuple[int, int]]:
        """For each file, the log offsets of its first and its last message."""
        return [(file.begin_physical_offset, file.end_physical_offset) for file in self._files]

    def drop_from(self, index: int) -> list[str]:
        """Forgets the files from this index on; returns their paths."""
        dropped = [file.path for file in self._files[index:]]
        self.full_files = [file for file in self.full_files if file.path not in dropped]
        del self._files[index:]
        return dropped

    @property
    def files(self) -> Sequence[IndexFile]:
        """The files, in the order of the log."""
        return self._files

    @property
    def waiting(self) -> int:
        """How many messages are pending."""
        return self.pending.count

    def write_pending(self, now_ms: int, most: int = 1 << 63) -> None:
        """Writes pending entries, `most` or a few more; raises OSError without room."""
        pending, end = self._entries, self._entries.count - most
        while pending.count > max(end, 0):
            entries = pending.next(_MAX_WRITTEN)
            rows = rows_of(entries)
            written = 0
            while written < len(rows.hashes):
                written += self.last_file(now_ms).put(rows, written)
            pending.drop(len(entries))

    def find(
        self,
        topic: str,
        key: str,
        max_count: int,
        begin_ms: int,
        end_ms: int,
        index_type: str | None,
        memory: InMemory | None = None,
    ) -> Steps[QueryOffsetResult]:
        """Finds messages with this key, stored in this span of time (to the second)."""
        text = f"{topic}#{TAG_INDEX}#{key}" if index_type == TAG_INDEX else f"{topic}#{key}"
        key_hash = positive(java_string_hash(text))
        offsets: list[int] = []
        broken: list[BrokenIndexChain] = []
        for file in self._files[::-1]:
            chain = file.chain(key_hash, memory) if file.covers(begin_ms, end_ms) else ()
            try:
                for count, item in enumerate(chain):
                    if isinstance(item, ColdRead):
                        yield item
                        continue
                    item_hash, physical_offset, stored_ms = item
                    if stored_ms < begin_ms or len(offsets) >= max_count:
                        break
                    if item_hash == key_hash and stored_ms <= end_ms:
                        offsets.append(physical_offset)
                    if count % _ITEMS_A_STEP == 0:
                        yield
            except BrokenIndexChain as error:
                broken.append(error)
            if file.begin_timestamp_ms < begin_ms or len(offsets) >= max_count:
                break
        ends = [(each.end_timestamp_ms, each.end_physical_offset) for each in self._files[-1:]]
        return QueryOffsetResult(offsets, *(ends or [(0, 0)])[0], broken)

    def take_files_before(self, min_physical_offset: int) -> list[MappedFile]:
        """Gives up the files whose messages the log has all lost, but never the last file."""
        taken = []
        while len(self._files) > 1 and self._files[0].end_physical_offset < min_physical_offset:
            taken.append(self._files.pop(0).file)
        return taken

    def paths(self) -> list[str]:
        """The paths of the files that are not empty."""
        return [file.path for file in self._files]

    def last_file(self, now_ms: int) -> IndexFile:
        """The file that the next item is for; it is made if there is none."""
        if self._files and not self._files[-1].is_full:
            return self._files[-1]
        self._disk.make_directory(self._directory)
        name = index_file_name(now_ms)
        last = os.path.basename(self._files[-1].path) if self._files else ""
        if last.isdecimal():  # names are their order, also when the clock was set back
            name = max(name, f"{int(last) + 1:0{len(last)}d}")
        path = os.path.join(self._directory, name)
        mapped = MappedFile(self._disk, path, self._size_bytes)
        mapped.create(_HEADER.size + self._slots * _SLOT.size)
        file = IndexFile(mapped, self._slots, self._items)
        if self._files:
            file.follow(self._files[-1])
            self.full_files.append(self._files[-1])
        self._files.append(file)
        return file


def index_file_name(now_ms: int) -> str:
    """The local time as yyyyMMddHHmmssSSS (UtilAll.timeMillisToHumanString)."""
    seconds, millis = divmod(now_ms, 1000)
    return time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)) + f"{millis:03d}"
