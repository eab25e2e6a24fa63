# SPDX-License-Identifier: Apache-2.0
"""Finding messages by key: files of hash slots, each the head of a chain of items.

An item says: a message whose key has this hash was stored about then and lies there. Different keys
may share a hash; who asks compares the key. Items are numbered from 1 in the order of the log;
a slot holds the number of its newest item, an item that of the next older one in its slot.

Hashing is the cost of it, so entries are collected and written many at once. The producer's unique
keys, which nearly every message has, differ from one to the next in their last four characters
only; the hash of what is before them is kept, since Java's hash of a text goes on from that of
its start.

Many items are written in an order that a killed process cannot spoil: items, header, slots; `redo`
sets the slots again that a crash left behind.

Java: index.IndexFile, IndexHeader, IndexService.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from txrocketmq.broker.store import formats
from txrocketmq.broker.store.errors import FileSizeError
from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.mapped_file import MappedFile
from txrocketmq.remoting.message.tags import (
    java_ascii_hashes,
    java_string_hash,
    java_string_hashes,
)
from txrocketmq.remoting.packing import fixed

_HEADER: Final = fixed(formats.INDEX_HEADER).struct
_SLOT: Final = fixed(formats.INDEX_SLOT).struct
_ITEM: Final = fixed(formats.INDEX_ITEM).struct
_ITEM_FIELDS: Final = len(fixed(formats.INDEX_ITEM).names)
_FIRST_SLOT: Final = _HEADER.size // _SLOT.size
_TAIL: Final = 4
"""How many characters of unique keys change from one to the next."""
_MAX_WRITTEN: Final = 1024
"""The most items that are written at once, and so may lack their slots after a crash."""
_MAX_SECONDS: Final = (1 << 31) - 1
_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000

TAG_INDEX: Final = "T"
"""The index type of tags: the key is looked up as T#key."""


IndexEntry: TypeAlias = tuple[str, str | None, str | None, str | None, int, int]
"""What is indexed of a message: topic, unique key, keys (words between blanks), tag; and its
physical offset and store time in ms. A plain tuple, since one is made for each message."""


class KeyRun(NamedTuple):
    """What is indexed of messages of one topic, put at once, that have unique keys only."""

    topic: str
    uniq_keys: list[bytes]
    physical_offsets: list[int]
    stored_ms: int


class Found(NamedTuple):
    """The answer to a query: where messages lie that may have the key, newest first.

    The other two are of the last item of the index, whatever was asked.
    """

    physical_offsets: list[int]
    last_update_timestamp_ms: int
    last_update_offset: int


class Rows(NamedTuple):
    """Items to be: for each, the hash of its key, its message's place, when that was stored."""

    hashes: list[int]
    offsets: list[int]
    times_ms: list[int]


class IndexFile:
    """One file of so many slots and items."""

    def __init__(self, file: MappedFile, slots: int, items: int) -> None:
        self._file = file
        self._slots = slots
        self._items = items
        self._items_at = _HEADER.size + slots * _SLOT.size
        (
            begin_timestamp_ms,
            end_timestamp_ms,
            begin_physical_offset,
            end_physical_offset,
            used_slots,
            count,
        ) = _HEADER.unpack_from(file.map(), 0)
        self.begin_timestamp_ms: int = begin_timestamp_ms
        self.end_timestamp_ms: int = end_timestamp_ms
        self.begin_physical_offset: int = begin_physical_offset
        self.end_physical_offset: int = end_physical_offset
        self._used_slots: int = used_slots
        self._next_item: int = max(count, 1)
        self._reserved = False
        self._ints = memoryview(file.map()).cast("i")
        """The file as integers, for its slots: of native byte order, see _swapped."""

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def is_full(self) -> bool:
        return self._next_item >= self._items

    @property
    def has_items(self) -> bool:
        return self._next_item > 1

    def follow(self, before: IndexFile) -> None:
        """Starts the header of a new file where the one before ends."""
        self.begin_physical_offset = self.end_physical_offset = before.end_physical_offset
        self.begin_timestamp_ms = self.end_timestamp_ms = before.end_timestamp_ms

    def put(self, rows: Rows, start: int) -> int:
        """Writes items of rows from the start-th on; how many it had room for.

        OSError, and nothing is written, when the disk has no room.
        """
        first = self._next_item
        count = min(self._items - first, len(rows.hashes) - start, _MAX_WRITTEN)
        if count <= 0:
            return 0
        self._reserve(count)
        hashes = rows.hashes[start : start + count]
        offsets = rows.offsets[start : start + count]
        times_ms = rows.times_ms[start : start + count]
        slots = [_FIRST_SLOT + key_hash % self._slots for key_hash in hashes]
        previous = self._previous(slots)
        fields = [0] * (_ITEM_FIELDS * count)
        fields[0::_ITEM_FIELDS] = hashes
        fields[1::_ITEM_FIELDS] = offsets
        fields[2::_ITEM_FIELDS] = self._seconds(times_ms)
        fields[3::_ITEM_FIELDS] = previous
        mapped = self._file.map()
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

    def _previous(self, slots: list[int]) -> list[int]:
        """For each of the new items the number of the one before it in its slot; 0 for none."""
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
        """For each of the new items its time since the first of the file."""
        begin_ms = self.begin_timestamp_ms
        if begin_ms <= 0:
            begin_ms = times_ms[0]
        if times_ms.count(times_ms[0]) == len(times_ms):
            return [min(max((times_ms[0] - begin_ms) // 1000, 0), _MAX_SECONDS)] * len(times_ms)
        return [min(max((each - begin_ms) // 1000, 0), _MAX_SECONDS) for each in times_ms]

    def redo(self) -> None:
        """Sets the slots of the last items, which a killed process may have left behind."""
        mapped = self._file.map()
        for number in range(max(self._next_item - _MAX_WRITTEN, 1), self._next_item):
            key_hash = _ITEM.unpack_from(mapped, self._items_at + number * _ITEM.size)[0]
            slot = _FIRST_SLOT + key_hash % self._slots
            if _swapped([self._ints[slot]])[0] < number:
                self._ints[slot] = _swapped([number])[0]

    def covers(self, begin_ms: int, end_ms: int) -> bool:
        """Whether items of this span of time may be in the file (isTimeMatched)."""
        first, last = self.begin_timestamp_ms, self.end_timestamp_ms
        return (
            (begin_ms < first and end_ms > last)
            or first <= begin_ms <= last
            or first <= end_ms <= last
        )

    def find(
        self, key_hash: int, max_count: int, begin_ms: int, end_ms: int, found: list[int]
    ) -> None:
        """Adds to `found`, up to `max_count` in all, items of the hash stored in that time."""
        mapped = self._file.map()
        (number,) = _swapped([self._ints[_FIRST_SLOT + key_hash % self._slots]])
        while 0 < number < self._next_item and len(found) < max_count:
            item_hash, physical_offset, seconds, previous = _ITEM.unpack_from(
                mapped, self._items_at + number * _ITEM.size
            )
            if seconds < 0:
                return
            stored_ms = self.begin_timestamp_ms + seconds * 1000
            if item_hash == key_hash and begin_ms <= stored_ms <= end_ms:
                found.append(physical_offset)
            if stored_ms < begin_ms or previous >= number:
                return
            number = previous

    def remove(self) -> None:
        """Deletes the file."""
        self._file.remove()

    def _reserve(self, count: int) -> None:
        """Room for slots and items; at first for all, since the file may come from elsewhere."""
        if not self._reserved:
            self._file.wrote_bytes = 0
        end = self._items_at + (self._next_item + count) * _ITEM.size
        self._file.reserve(end)
        self._file.wrote_bytes = end
        self._reserved = True

    def _write_header(self) -> None:
        _HEADER.pack_into(
            self._file.map(),
            0,
            self.begin_timestamp_ms,
            self.end_timestamp_ms,
            self.begin_physical_offset,
            self.end_physical_offset,
            self._used_slots,
            self._next_item,
        )


def _swapped(numbers: Sequence[int]) -> tuple[int, ...]:
    """Integers of 32 bits from this machine's byte order to the file's, and back."""
    count = len(numbers)
    return struct.unpack(f">{count}i", struct.pack(f"={count}i", *numbers))


@lru_cache(maxsize=_MAX_WRITTEN)
def _items_struct(count: int) -> struct.Struct:
    return struct.Struct(">" + _ITEM.format[1:] * count)


class Index:
    """All index files of a store, and the entries that wait to be written.

    `add` takes what whoever stores messages has; `write_pending` writes it. What is pending is
    found by queries, since they write it first, and is built again by recovery after a crash.
    `waiting` is the number of messages that are pending.
    """

    def __init__(self, files: Files, directory: str, slots: int, items: int) -> None:
        self._disk = files
        self._directory = directory
        self._slots = slots
        self._items = items
        self._size_bytes = _HEADER.size + slots * _SLOT.size + items * _ITEM.size
        self._files: list[IndexFile] = []
        self.pending: list[IndexEntry | KeyRun] = []
        self.waiting = 0
        self.full_files: list[IndexFile] = []
        """Files that became full and are not yet durable; see flush.py."""

    def load(self, keep_until_ms: int | None, *, redo: bool = False) -> None:
        """Finds the files; FileSizeError for one of another size.

        After a crash of the machine files are not to be trusted: those with items after
        `keep_until_ms` are removed, and recovery fills in what it comes by. `redo` is for a crash
        of the process alone.
        """
        self._files = []
        for entry in self._disk.entries(self._directory):
            if entry.is_directory:
                continue
            path = os.path.join(self._directory, entry.name)
            if entry.size_bytes == 0:  # a crash while it was being made
                self._disk.remove(path)
                continue
            if entry.size_bytes != self._size_bytes:
                key = "maxHashSlotNum * 4 + maxIndexNum * 20 + 40"
                raise FileSizeError(path, entry.size_bytes, key, self._size_bytes)
            file = IndexFile(
                MappedFile(self._disk, path, self._size_bytes), self._slots, self._items
            )
            if keep_until_ms is not None and file.end_timestamp_ms > keep_until_ms:
                file.remove()
                continue
            if redo:
                file.redo()
                if file.is_full:
                    self.full_files.append(file)
            self._files.append(file)

    @property
    def next_offset(self) -> int:
        """Messages before this place of the log are indexed; 0 when none is."""
        if not any(file.has_items for file in self._files):
            return 0
        return self._files[-1].end_physical_offset + 1

    def drop_after(self, physical_offset: int) -> None:
        """Removes the files, from the last on, with messages that the log no longer has."""
        while self._files and self._files[-1].end_physical_offset >= physical_offset:
            self._files.pop().remove()

    def add(self, entries: Sequence[IndexEntry] | KeyRun) -> None:
        """Takes what is to be indexed of some messages, in the order of the log."""
        if isinstance(entries, KeyRun):
            self.pending.append(entries)
            self.waiting += len(entries.uniq_keys)
        else:
            self.pending += entries
            self.waiting += len(entries)

    def write_pending(self, now_ms: int) -> None:
        """Writes all pending entries; OSError, with the rest still pending, without room."""
        while self.pending:
            entries = self.pending[:_MAX_WRITTEN]
            rows = _rows(entries)
            written = 0
            while written < len(rows.hashes):
                written += self._last_file(now_ms).put(rows, written)
            del self.pending[: len(entries)]
            self.waiting -= sum(
                len(each.uniq_keys) if type(each) is KeyRun else 1 for each in entries
            )

    def find(
        self,
        topic: str,
        key: str,
        max_count: int,
        begin_ms: int,
        end_ms: int,
        index_type: str | None,
    ) -> Found:
        """Where messages with this key may be, stored in this span of time (to the second)."""
        text = f"{topic}#{TAG_INDEX}#{key}" if index_type == TAG_INDEX else f"{topic}#{key}"
        key_hash = _positive(java_string_hash(text))
        offsets: list[int] = []
        for file in reversed(self._files):
            if file.covers(begin_ms, end_ms):
                file.find(key_hash, max_count, begin_ms, end_ms, offsets)
            if file.begin_timestamp_ms < begin_ms or len(offsets) >= max_count:
                break
        if not self._files:
            return Found(offsets, 0, 0)
        last = self._files[-1]
        return Found(offsets, last.end_timestamp_ms, last.end_physical_offset)

    def remove_files_before(self, min_physical_offset: int) -> int:
        """Removes the files all of whose messages the log has lost, never the last; how many."""
        count = 0
        while len(self._files) > 1 and self._files[0].end_physical_offset < min_physical_offset:
            self._files.pop(0).remove()
            count += 1
        return count

    def paths(self) -> list[str]:
        """The files with anything in them."""
        return [file.path for file in self._files]

    def _last_file(self, now_ms: int) -> IndexFile:
        if self._files and not self._files[-1].is_full:
            return self._files[-1]
        self._disk.make_directory(self._directory)
        name = index_file_name(now_ms)
        last = os.path.basename(self._files[-1].path) if self._files else ""
        if last.isdecimal():  # names are their order, also when the clock was set back
            name = max(name, f"{int(last) + 1:0{len(last)}d}")
        path = os.path.join(self._directory, name)
        mapped = MappedFile(self._disk, path, self._size_bytes)
        mapped.reserve(_HEADER.size + self._slots * _SLOT.size)
        file = IndexFile(mapped, self._slots, self._items)
        if self._files:
            file.follow(self._files[-1])
            self.full_files.append(self._files[-1])
        self._files.append(file)
        return file


def index_file_name(now_ms: int) -> str:
    """yyyyMMddHHmmssSSS in local time (UtilAll.timeMillisToHumanString)."""
    seconds, millis = divmod(now_ms, 1000)
    return time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)) + f"{millis:03d}"


def _rows(entries: Sequence[IndexEntry | KeyRun]) -> Rows:
    """What is to be written of the entries, in their order."""
    rows = Rows([], [], [])
    for topic, group in groupby(entries, _topic_of_run):
        if topic is None:
            _add_rows(rows, group)
        else:
            _add_runs(rows, topic, group)
    return rows


def _topic_of_run(entry: IndexEntry | KeyRun) -> str | None:
    return entry.topic if type(entry) is KeyRun else None


def _add_runs(rows: Rows, topic: str, runs: Iterable[Any]) -> None:
    uniq_keys: list[bytes] = []
    for _, keys, offsets, stored_ms in runs:
        uniq_keys += keys
        rows.offsets.extend(offsets)
        rows.times_ms.extend([stored_ms] * len(keys))
    shortest = min(map(len, uniq_keys))
    if shortest < _TAIL:
        hashes = [java_string_hash(f"{topic}#{key.decode()}") for key in uniq_keys]
    else:
        heads = [key[:-_TAIL] for key in uniq_keys]
        starts = {
            head: java_string_hash(f"{topic}#{head.decode()}") * 31**_TAIL for head in set(heads)
        }
        tails = java_ascii_hashes([key[-_TAIL:] for key in uniq_keys], _TAIL)
        hashes = [starts[head] + tail for head, tail in zip(heads, tails, strict=True)]
    rows.hashes.extend(_all_positive(hashes))


def _add_rows(rows: Rows, entries: Iterable[Any]) -> None:
    """Of each entry, in the original's order: unique key, keys, tag."""
    hashes: list[int] = []
    offsets: list[int] = []
    times_ms: list[int] = []
    tails: list[str] = []
    tail_rows: list[int] = []
    words: list[str] = []
    word_rows: list[int] = []
    last_topic = last_head = None
    head_hash = 0
    for topic, uniq_key, keys, tags, physical_offset, stored_ms in entries:
        first = len(hashes)
        if uniq_key is not None:
            if len(uniq_key) >= _TAIL and uniq_key.isascii():
                head = uniq_key[:-_TAIL]
                if head != last_head or topic != last_topic:
                    last_topic, last_head = topic, head
                    head_hash = java_string_hash(f"{topic}#{head}") * 31**_TAIL
                tails.append(uniq_key[-_TAIL:])
                tail_rows.append(first)
                hashes.append(head_hash)
            else:
                hashes.append(_text_hash(f"{topic}#{uniq_key}"))
        if keys:
            for word in keys.split(" "):
                if word:
                    words.append(f"{topic}#{word}")
                    word_rows.append(len(hashes))
                    hashes.append(0)
        if tags:
            hashes.append(_text_hash(f"{topic}#{TAG_INDEX}#{tags}"))
        count = len(hashes) - first
        offsets += (physical_offset,) * count
        times_ms += (stored_ms,) * count
    ascii_tails = "".join(tails).encode()
    for row, (a, b, c, d) in zip(tail_rows, struct.iter_unpack("4B", ascii_tails), strict=True):
        hashes[row] += 29791 * a + 961 * b + 31 * c + d
    for row, word_hash in zip(word_rows, java_string_hashes(words), strict=True):
        hashes[row] = word_hash
    rows.hashes.extend(_all_positive(hashes))
    rows.offsets.extend(offsets)
    rows.times_ms.extend(times_ms)


def _all_positive(hashes: list[int]) -> list[int]:
    """_positive of each, which would cost as much again to call."""
    return [low if (low := each & _MASK) < _SIGN else -low & ~_SIGN & _MASK for each in hashes]


def _positive(java_hash: int) -> int:
    """Math.abs of the low 32 bits, and 0 for the one integer that has no positive counterpart."""
    low = java_hash & _MASK
    return low if low < _SIGN else -low & ~_SIGN & _MASK


_text_hash: Final = lru_cache(maxsize=1024)(java_string_hash)
"""For texts that come again: tags."""
