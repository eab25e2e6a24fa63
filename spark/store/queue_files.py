# SPDX-License-Identifier: Apache-2.0
"""Consume queues as files: where in the log the messages of a queue are, without a broker.

A queue's files are made at full size and filled from the front; a bisection finds where they end.
Units of messages that retention has deleted stay for a while, so the smallest index depends on
where the log starts. Files may vanish or grow at any time, so only their names are kept.

A topic has either plain queues, with a unit of 20 bytes per message and perhaps ext files that hold
the tags codes, or, with CQType=BatchCQ, queues of batches with 46 bytes per batch.

Java: ConsumeQueue, ConsumeQueueExt, BatchConsumeQueue.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import dtype
from txrocketmq.spark.arrow.errors import StoreError
from txrocketmq.spark.store.files import Files, LocalFiles, NumberedFile, listed_or_none, numbered
from txrocketmq.spark.store.unit_search import UnitSearch

UNITS: Final = np.dtype(
    [
        ("queue_offset", "i8"),
        ("physical_offset", "i8"),
        ("size", "i4"),
        ("count", "i4"),
        ("tags_code", "i8"),
    ]
)
"""A unit in memory, in native byte order; `queue_offset` is of the first of `count` messages."""

MAX_UNITS: Final = 4_000_000
"""The most units that are read at once: about 110 MiB."""

_STEP_UNITS: Final = 500_000
"""How many units are read at once where many are needed: 16 MB."""
_PLAIN: Final = dtype(formats.CONSUME_QUEUE_UNIT)
_BATCH: Final = dtype(formats.BATCH_CONSUME_QUEUE_UNIT)
_EXT_CODE_AT: Final = 2
_EXT_HEAD_BYTES: Final = formats.CONSUME_QUEUE_EXT_HEAD.sizeof()
_BLOCK_UNITS: Final = 400
"""The number of units in one cached read of a remote file, see `listed_files`."""


class _Search(NamedTuple):
    """What a search knows: `written` units at least and `unwritten` at most are written."""

    written: int
    unwritten: int


class QueueSpan(NamedTuple):
    """The messages of a queue in a part of the log: [first, last) of its queue offsets."""

    first: int
    last: int
    sample: bytes | None
    """The last units as they are in the file; None if they have to be asked for."""


@dataclass(frozen=True)
class Queue:
    """One queue of a topic; `path` is its directory, `ext_path` that of its ext files, if any."""

    topic: str
    queue_id: int
    files: Files
    path: str
    ext_path: str | None = None
    is_batch: bool = False

    def min_index(self, min_physical: int, log_end: int | None = None) -> int:
        """Returns the queue offset of the first message in a log that begins at `min_physical`.

        If there is none, returns that of the next message to come. See `last_unit` for `log_end`.
        """
        listed = self._listed()
        found = self._first_in_log(listed, min_physical, log_end)
        return self._end(listed) if found is None else int(found["queue_offset"][0])

    def span(
        self, start: int, end: int, low: int = 0, high: int = 1 << 63, sample: int = 0
    ) -> QueueSpan:
        """Returns which messages with queue offsets in [low, high) start in this part of the log.

        With `sample`, so many of their last units come along if that costs nothing more. It asks
        as min_index does, but looks at the usual queue of one local file only once.
        """
        listed = self._listed()
        if len(listed) != 1 or self.is_batch or self._local is None:
            first, last = max(self.min_index(start), low), min(self.min_index(end), high)
            return QueueSpan(first, max(first, last), None)
        try:
            search = UnitSearch(self._local, listed[0], self._unit.itemsize)
        except FileNotFoundError:
            return QueueSpan(low, low, b"")
        base = listed[0].first_offset // self._unit.itemsize
        with search:
            first = max(base + search.first_in_log(start), low)
            last = max(first, min(base + search.first_in_log(end), high))
            from_place = max(first, last - sample) - base
            return QueueSpan(first, last, search.raw(from_place, max(from_place, last - base)))

    def file_count(self) -> int:
        """Returns how many files the queue has."""
        return len(self._listed())

    def max_index(self, log_end: int | None = None) -> int:
        """Returns the queue offset of the next message to come; see `last_unit` for `log_end`."""
        return self._end(self._listed(), log_end)

    def last_unit(self, log_end: int | None = None) -> NDArray[Any] | None:
        """Returns the newest unit, as one row of UNITS; None for an empty queue.

        `log_end` is about where the log ends; with it a few reads over a network are enough.
        """
        some = _BLOCK_UNITS if self.files.is_remote else 1
        for file in reversed(self._listed()):
            written = self._written(file, log_end)
            rows = self._rows(file, max(written - some, 0), written)
            if len(rows):
                return rows[-1:]
        return None

    def first_offset(self) -> int | None:
        """Returns the queue offset of the first message that has a unit; None without one."""
        row = self._first_row()
        return None if row is None else int(row["queue_offset"][0])

    def first_physical(self) -> int | None:
        """Returns the place in the log of the first message that has a unit; None without one."""
        row = self._first_row()
        return None if row is None else int(row["physical_offset"][0])

    def units(self, from_index: int, to_index: int) -> NDArray[Any]:
        """Returns the units of the messages from one queue offset up to before another, as UNITS.

        Units that stand for no message, before the first one of a queue, and units that are gone
        are left out. If the ext file that a tags code refers to is gone, the code stays the
        address, which is at most CONSUME_QUEUE_EXT_ADDRESS_MAX; nothing is known about the tag
        then.
        """
        if to_index - from_index > MAX_UNITS:
            raise ValueError(f"at most {MAX_UNITS} units at once, not {to_index - from_index}")
        return self._units(self._listed(), from_index, to_index)

    def first_unit(self, from_index: int) -> NDArray[Any] | None:
        """Returns the first unit of a message with this queue offset or a later one, as one row."""
        for file in self._listed():
            place, _ = self._places(file, from_index, from_index)
            for at in (place, place + 1):  # after a batch, messages may be missing
                row = self._next_row(file, at, self._written(file))
                if row is not None and int(row["queue_offset"][0] + row["count"][0]) > from_index:
                    return row
        return None

    def units_in_steps(
        self, from_index: int, to_index: int, step: int = _STEP_UNITS, *, last_first: bool = False
    ) -> Iterator[NDArray[Any]]:
        """Yields what `units` returns, in steps; a batch in two steps comes with the first."""
        starts = range(from_index, to_index, step)
        for start in reversed(starts) if last_first else starts:
            units = self.units(start, min(start + step, to_index))
            if start > from_index:
                units = units[units["queue_offset"] >= start]
            if len(units):
                yield units

    def _units(self, listed: list[NumberedFile], from_index: int, to_index: int) -> NDArray[Any]:
        pieces = []
        for file in listed:
            start, end = self._places(file, from_index, to_index)
            if start < end:
                rows = self._rows(file, start, end)
                pieces.append(rows[rows["queue_offset"] + rows["count"] > from_index])
        if not pieces:
            return np.empty(0, UNITS)
        units = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return self._with_ext_codes(units) if self.ext_path else units

    def next_physical(self, physical_offset: int) -> int | None:
        """Returns the place in the log of the first message whose record starts there or later."""
        found = self._first_in_log(self._listed(), physical_offset)
        return None if found is None else int(found["physical_offset"][0])

    def last_physical(self, before: int) -> int | None:
        """Returns the place in the log of the last message whose record starts before `before`."""
        for file in reversed(self._listed()):
            place = self._place_in_log(file, self._written(file), before)
            rows = self._rows(file, max(place - _BLOCK_UNITS, 0), place)
            if len(rows):
                return int(rows["physical_offset"][-1])
        return None

    def units_in_log(self, from_physical: int, to_physical: int) -> NDArray[Any]:
        """Returns units of records that start in this range; ext addresses stay as tags codes."""
        pieces = [np.empty(0, UNITS)]
        for file in self._listed():
            units = self._written(file)
            start = self._place_in_log(file, units, from_physical)
            end = self._place_in_log(file, units, to_physical)
            if start < end:
                pieces.append(self._rows(file, start, end))
        return np.concatenate(pieces)

    def blocks_in_log(self, from_physical: int, block_units: int) -> Iterator[NDArray[Any]]:
        """Yields units of records from there on, so many in each block; see units_in_log."""
        for file in self._listed():
            written = self._written(file)
            place = self._place_in_log(file, written, from_physical)
            for start in range(place, written, block_units):
                yield self._rows(file, start, min(start + block_units, written))

    # --- files ---

    @property
    def _local(self) -> LocalFiles | None:
        """The files, if they can be searched where they are."""
        files = self.files
        return files if isinstance(files, LocalFiles) and not files.is_remote else None

    @property
    def _unit(self) -> np.dtype[np.void]:
        return _BATCH if self.is_batch else _PLAIN

    def _listed(self) -> list[NumberedFile]:
        found = self._files_in(self.path)
        for each in found:
            if each.first_offset % self._unit.itemsize:
                raise StoreError(f"{each.path} starts in the middle of a unit of the queue")
        return found

    def _files_in(self, path: str) -> list[NumberedFile]:
        return numbered(path, listed_or_none(self.files, path))

    def _end(self, listed: list[NumberedFile], log_end: int | None = None) -> int:
        for file in reversed(listed):
            units = self._written(file, log_end)
            if units and not self.is_batch:
                return file.first_offset // self._unit.itemsize + units
            if units:
                last = self._rows(file, units - 1, units)
                return int(last["queue_offset"][0] + last["count"][0]) if len(last) else 0
        return listed[0].first_offset // self._unit.itemsize if listed and not self.is_batch else 0

    def _first_row(self) -> NDArray[Any] | None:
        for file in self._listed():
            few = min(_BLOCK_UNITS, file.size // self._unit.itemsize)
            row = self._next_row(file, 0, few)
            row = self._next_row(file, few, self._written(file)) if row is None else row
            if row is not None:
                return row
        return None

    def _written(self, file: NumberedFile, log_end: int | None = None) -> int:
        """Returns how many units of the file are written; see `last_unit` for `log_end`."""
        if self._local is None:
            return self._searched(file, log_end)
        try:
            with UnitSearch(self._local, file, self._unit.itemsize) as search:
                return search.written
        except FileNotFoundError:
            return 0

    def _places(self, file: NumberedFile, from_index: int, to_index: int) -> tuple[int, int]:
        """Returns the range of places in the file whose units have messages in the range."""
        if self.is_batch:
            units = self._written(file)
            start = _first(units, lambda at: self._base(file, at + 1, units) > from_index)
            return start, _first(units, lambda at: self._base(file, at, units) >= to_index)
        first = file.first_offset // self._unit.itemsize
        end = min(to_index - first, file.size // self._unit.itemsize)
        return max(from_index - first, 0), end

    def _base(self, file: NumberedFile, place: int, units: int) -> int:
        """Returns the queue offset of a unit's first message; after the last unit, the next one."""
        if place < units:
            return int(self._raw(file, place, place + 1)["msg_base_offset"][0])
        last = self._raw(file, units - 1, units)
        return int(last["msg_base_offset"][0]) + int(last["batch_size"][0])

    def _first_in_log(
        self, listed: list[NumberedFile], min_physical: int, log_end: int | None = None
    ) -> NDArray[Any] | None:
        """Returns the first unit whose record starts there or later, as one row."""
        for file in listed:
            units = self._written(file, log_end)
            place = self._place_in_log(file, units, min_physical)
            if place < units:
                return self._next_row(file, place, units)
        return None

    def _place_in_log(self, file: NumberedFile, units: int, min_physical: int) -> int:
        if self._local is not None:
            try:
                with UnitSearch(self._local, file, self._unit.itemsize) as search:
                    return min(search.first_in_log(min_physical), units)
            except FileNotFoundError:
                return units

        def is_in_log(place: int) -> bool:
            row = self._next_row(file, place, units)
            return row is not None and bool(row["physical_offset"][0] >= min_physical)

        return 0 if units and is_in_log(0) else _first(units, is_in_log)

    # --- over a network ---

    def estimate(self, log_end: int) -> tuple[int, NDArray[Any]]:
        """Estimates the number of messages; also returns some first units of the last file."""
        listed = self._listed()
        if not listed:
            return 0, np.empty(0, UNITS)
        last = listed[-1]
        found = self._looked(last, _Search(0, last.size // self._unit.itemsize), 0)
        if _BLOCK_UNITS <= found.written < found.unwritten:
            # Looks before the estimated end; if that place is written, the next estimate is better.
            foreseen = self._foreseen(last, found.written, log_end)
            place = found.written + (foreseen - found.written) * 3 // 4
            found = self._looked(last, found, min(place, found.unwritten - 1))
        count = math.isqrt(found.written * found.unwritten)
        if _BLOCK_UNITS < found.written < found.unwritten:
            count = min(self._foreseen(last, found.written, log_end), found.unwritten)
        sample = self._rows(last, 0, min(_BLOCK_UNITS, found.written))
        units = (last.first_offset - listed[0].first_offset) // self._unit.itemsize + count
        return units * int(sample["count"].sum()) // max(len(sample), 1), sample

    def _searched(self, file: NumberedFile, log_end: int | None) -> int:
        """Returns how many units of the file are written.

        A queue grows about as the log does, so its first units tell where the last one may be.
        """
        found = _Search(0, file.size // self._unit.itemsize)
        place = 0 if log_end is not None else found.unwritten - 1
        looks = 0
        while found.written < found.unwritten:
            found = self._looked(file, found, place)
            looks += 1
            place = (found.written + found.unwritten) // 2
            if log_end is not None and found.written < found.unwritten and looks % 3:
                foreseen = self._foreseen(file, found.written, log_end)
                place = foreseen if foreseen < found.unwritten else place
        return found.written

    def _looked(self, file: NumberedFile, found: _Search, place: int) -> _Search:
        """Returns what is known after a look at the block that holds this unit."""
        start = place // _BLOCK_UNITS * _BLOCK_UNITS
        raw = self._raw(file, start, min(start + _BLOCK_UNITS, file.size // self._unit.itemsize))
        blank = np.flatnonzero((raw["size"] <= 0) | (raw["physical_offset"] < 0))
        if len(blank) and blank[0]:
            return _Search(start + int(blank[0]), start + int(blank[0]))
        if len(blank) or not len(raw):
            return _Search(min(found.written, start), min(found.unwritten, start))
        return _Search(max(found.written, start + len(raw)), found.unwritten)

    def _foreseen(self, file: NumberedFile, written: int, log_end: int) -> int:
        """Estimates how many units are written, from the first `written` and the log's end."""
        rows = self._rows(file, max(written - _BLOCK_UNITS, 0), written)
        if len(rows) < 2:
            return written
        places = rows["physical_offset"]
        first = self._rows(file, 0, 1)
        span, count = int(places[-1] - places[0]), len(rows) - 1
        if len(first) and written > _BLOCK_UNITS:
            span = int(places[-1] - first["physical_offset"][0])
            count = written - 1
        return written + max(0, log_end - int(places[-1])) * count // max(span, 1)

    def _next_row(self, file: NumberedFile, place: int, units: int) -> NDArray[Any] | None:
        """Returns the first unit that stands for a message from this place of the file on."""
        step = 1
        while place < units:
            rows = self._rows(file, place, min(place + step, units))
            if len(rows):
                return rows[:1]
            place, step = place + step, _BLOCK_UNITS
        return None

    def _raw(self, file: NumberedFile, start: int, end: int) -> NDArray[Any]:
        """Returns units as they are in the file; fewer at the end of the file."""
        item_bytes = self._unit.itemsize
        data = np.empty((end - start) * item_bytes, np.uint8)
        try:
            got = self.files.read_into(file.path, start * item_bytes, data.data)
        except FileNotFoundError:
            got = 0
        return data[: got // item_bytes * item_bytes].view(self._unit)

    def _rows(self, file: NumberedFile, start: int, end: int) -> NDArray[Any]:
        """Returns units in native byte order, without those that stand for no message."""
        raw = self._raw(file, start, end)
        rows = np.empty(len(raw), UNITS)
        for name in ("physical_offset", "size", "tags_code"):
            rows[name] = raw[name]
        if self.is_batch:
            rows["queue_offset"] = raw["msg_base_offset"]
            rows["count"] = raw["batch_size"]
        else:
            first = file.first_offset // self._unit.itemsize + start
            rows["queue_offset"] = np.arange(first, first + len(raw))
            rows["count"] = 1
        size = rows["size"]
        kept: NDArray[Any] = rows[(size > 0) & (size != formats.CONSUME_QUEUE_PRE_BLANK_SIZE)]
        return kept

    # --- ext files ---

    def _with_ext_codes(self, units: NDArray[Any]) -> NDArray[Any]:
        codes = units["tags_code"]
        is_address = codes <= formats.CONSUME_QUEUE_EXT_ADDRESS_MAX
        if not is_address.any():
            return units
        addresses = codes[is_address] - formats.CONSUME_QUEUE_EXT_ADDRESS_BASE
        found = codes[is_address]
        for file in self._files_in(self.ext_path or ""):
            last = file.first_offset + file.size - _EXT_HEAD_BYTES
            inside = np.flatnonzero((addresses >= file.first_offset) & (addresses <= last))
            if len(inside):
                found[inside] = self._ext_codes(
                    file, addresses[inside] - file.first_offset, found[inside]
                )
        codes[is_address] = found
        return units

    def _ext_codes(
        self, file: NumberedFile, at: NDArray[Any], default: NDArray[Any]
    ) -> NDArray[Any]:
        start = int(at.min())
        data = np.empty(int(at.max()) + _EXT_HEAD_BYTES - start, np.uint8)
        try:
            got = self.files.read_into(file.path, start, data.data)
        except FileNotFoundError:
            return default
        if got < len(data):
            return default
        codes = np.ndarray((len(data) - 7,), "V8", data, strides=(1,))
        sizes = np.ndarray((len(data) - 1,), "V2", data, strides=(1,))
        is_unit = sizes[at - start].view(">i2") >= _EXT_HEAD_BYTES
        return np.where(is_unit, codes[at - start + _EXT_CODE_AT].view(">i8"), default)


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """Returns the first of `count` places for which it holds, as for all later ones, or `count`."""
    return bisect_left(range(count), True, key=holds)  # noqa: FBT003 - what is looked for
