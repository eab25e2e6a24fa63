# SPDX-License-Identifier: Apache-2.0
"""Consume queues as files: where in the log the messages of a queue are, without a broker.

A queue's files are made at full size and filled from the front; where they end is found by
bisection. Units whose messages retention has taken stay for a while, so the smallest index depends
on where the log starts. Files may vanish or grow at any time: nothing is kept but names.

A topic has plain queues (a unit of 20 bytes per message, perhaps with ext files that hold the tags
code) or, of CQType=BatchCQ, queues of batches (46 bytes per batch).

Java: ConsumeQueue, ConsumeQueueExt, BatchConsumeQueue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store import formats
from txrocketmq.remoting.packing import dtype
from txrocketmq.spark.errors import StoreError
from txrocketmq.spark.files import Files

UNITS: Final = np.dtype(
    [
        ("queue_offset", "i8"),
        ("physical_offset", "i8"),
        ("size", "i4"),
        ("count", "i4"),
        ("tags_code", "i8"),
    ]
)
"""A unit in memory, in native byte order: `queue_offset` of the first of `count` messages."""

MAX_UNITS: Final = 4_000_000
"""The most units that are read at once: about 110 MiB."""

_PLAIN: Final = dtype(formats.CONSUME_QUEUE_UNIT)
_BATCH: Final = dtype(formats.BATCH_CONSUME_QUEUE_UNIT)
_EXT_CODE_AT: Final = 2
_EXT_HEAD_BYTES: Final = formats.CONSUME_QUEUE_EXT_HEAD.sizeof()
_BLOCK_UNITS: Final = 512
_FILE_NAME: Final = re.compile("[0-9]{20}")


class _File(NamedTuple):
    first: int
    """Offset of its first byte in the queue."""
    size: int
    path: str


@dataclass(frozen=True)
class Queue:
    """One queue of a topic; `path` is its directory, `ext_path` that of its ext files, if any."""

    topic: str
    queue_id: int
    files: Files
    path: str
    ext_path: str | None = None
    is_batch: bool = False

    def min_index(self, min_physical: int) -> int:
        """Queue offset of the first message that a log from `min_physical` on still has.

        That of the next message to come when there is none.
        """
        listed = self._listed()
        found = self._first_in_log(listed, min_physical)
        return self._end(listed) if found is None else int(found["queue_offset"][0])

    def max_index(self) -> int:
        """Queue offset of the next message to come."""
        return self._end(self._listed())

    def last_unit(self) -> NDArray[Any] | None:
        """The newest unit, as one row of UNITS; None of an empty queue."""
        for file in reversed(self._listed()):
            units = self._written(file)
            if units:
                rows = self._rows(file, units - 1, units)
                return rows if len(rows) else None
        return None

    def units(self, from_index: int, to_index: int) -> NDArray[Any]:
        """The units of the messages from one queue offset up to before another, as UNITS.

        Units that stand for no message (before the first one of a queue) and such as are no longer
        there are left out. Where an ext file that a tags code points to is gone, the code stays the
        address, up to CONSUME_QUEUE_EXT_ADDRESS_MAX: of such a unit nothing is known.
        """
        if to_index - from_index > MAX_UNITS:
            raise ValueError(f"at most {MAX_UNITS} units at once, not {to_index - from_index}")
        return self._units(self._listed(), from_index, to_index)

    def units_in_steps(self, from_index: int, to_index: int, step: int) -> Iterator[NDArray[Any]]:
        """As `units`, those of so many messages at once; a batch over two steps is in the first."""
        for start in range(from_index, to_index, step):
            units = self.units(start, min(start + step, to_index))
            if start > from_index:
                units = units[units["queue_offset"] >= start]
            if len(units):
                yield units

    def _units(self, listed: list[_File], from_index: int, to_index: int) -> NDArray[Any]:
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
        """Where the first message of this queue lies whose record starts there or later."""
        found = self._first_in_log(self._listed(), physical_offset)
        return None if found is None else int(found["physical_offset"][0])

    def last_physical(self, before: int) -> int | None:
        """Where the last message of this queue lies whose record starts before `before`."""
        for file in reversed(self._listed()):
            place = self._place_in_log(file, self._written(file), before)
            rows = self._rows(file, max(place - _BLOCK_UNITS, 0), place)
            if len(rows):
                return int(rows["physical_offset"][-1])
        return None

    def units_in_log(self, from_physical: int, to_physical: int) -> NDArray[Any]:
        """The units of the records that start in this range of the log; tags codes as they are."""
        pieces = [np.empty(0, UNITS)]
        for file in self._listed():
            units = self._written(file)
            start = self._place_in_log(file, units, from_physical)
            end = self._place_in_log(file, units, to_physical)
            if start < end:
                pieces.append(self._rows(file, start, end))
        return np.concatenate(pieces)

    # --- files ---

    @property
    def _unit(self) -> np.dtype[np.void]:
        return _BATCH if self.is_batch else _PLAIN

    def _listed(self) -> list[_File]:
        _whole_file.cache_clear()
        try:
            entries = self.files.list(self.path)
        except FileNotFoundError:
            return []
        found = [
            _File(int(each.name), each.size, f"{self.path}/{each.name}")
            for each in entries
            if _FILE_NAME.fullmatch(each.name) and each.size
        ]
        for each in found:
            if each.first % self._unit.itemsize:
                raise StoreError(f"{each.path} starts in the middle of a unit of the queue")
        return found

    def _end(self, listed: list[_File]) -> int:
        for file in reversed(listed):
            units = self._written(file)
            if units and not self.is_batch:
                return file.first // self._unit.itemsize + units
            if units:
                last = self._rows(file, units - 1, units)
                return int(last["queue_offset"][0] + last["count"][0]) if len(last) else 0
        return listed[0].first // self._unit.itemsize if listed and not self.is_batch else 0

    def _written(self, file: _File) -> int:
        """How many units of the file are written."""

        def is_unwritten(place: int) -> bool:
            unit = self._raw(file, place, place + 1)
            return not len(unit) or bool(unit["size"][0] <= 0 or unit["physical_offset"][0] < 0)

        return _first(file.size // self._unit.itemsize, is_unwritten)

    def _places(self, file: _File, from_index: int, to_index: int) -> tuple[int, int]:
        """Which units of the file are of messages in the range: from a place up to before one."""
        if self.is_batch:
            units = self._written(file)
            start = _first(units, lambda at: self._base(file, at + 1, units) > from_index)
            return start, _first(units, lambda at: self._base(file, at, units) >= to_index)
        first = file.first // self._unit.itemsize
        end = min(to_index - first, file.size // self._unit.itemsize)
        return max(from_index - first, 0), end

    def _base(self, file: _File, place: int, units: int) -> int:
        """Queue offset of the first message at this place; after the last one, of the next."""
        if place < units:
            return int(self._raw(file, place, place + 1)["msg_base_offset"][0])
        last = self._raw(file, units - 1, units)
        return int(last["msg_base_offset"][0]) + int(last["batch_size"][0])

    def _first_in_log(self, listed: list[_File], min_physical: int) -> NDArray[Any] | None:
        """The first unit whose record starts there or later, as one row."""
        for file in listed:
            units = self._written(file)
            place = self._place_in_log(file, units, min_physical)
            if place < units:
                return self._next_row(file, place, units)
        return None

    def _place_in_log(self, file: _File, units: int, min_physical: int) -> int:
        def is_in_log(place: int) -> bool:
            row = self._next_row(file, place, units)
            return row is not None and bool(row["physical_offset"][0] >= min_physical)

        return _first(units, is_in_log)

    def _next_row(self, file: _File, place: int, units: int) -> NDArray[Any] | None:
        """The first unit of a message from this place of the file on."""
        step = 1
        while place < units:
            rows = self._rows(file, place, min(place + step, units))
            if len(rows):
                return rows[:1]
            place, step = place + step, _BLOCK_UNITS
        return None

    def _raw(self, file: _File, start: int, end: int) -> NDArray[Any]:
        """Units as they are in the file, as far as it goes."""
        item_bytes = self._unit.itemsize
        if self.files.is_remote:
            data = _whole_file(self.files, file.path, file.size)
            return data[: len(data) // item_bytes * item_bytes].view(self._unit)[start:end]
        data = np.empty((end - start) * item_bytes, np.uint8)
        try:
            got = self.files.read_into(file.path, start * item_bytes, data.data)
        except FileNotFoundError:
            got = 0
        return data[: got // item_bytes * item_bytes].view(self._unit)

    def _rows(self, file: _File, start: int, end: int) -> NDArray[Any]:
        """As _raw, in native order, without units that stand for no message."""
        raw = self._raw(file, start, end)
        rows = np.empty(len(raw), UNITS)
        for name in ("physical_offset", "size", "tags_code"):
            rows[name] = raw[name]
        if self.is_batch:
            rows["queue_offset"] = raw["msg_base_offset"]
            rows["count"] = raw["batch_size"]
        else:
            first = file.first // self._unit.itemsize + start
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
        for file in self._ext_files():
            last = file.first + file.size - _EXT_HEAD_BYTES
            inside = np.flatnonzero((addresses >= file.first) & (addresses <= last))
            if len(inside):
                found[inside] = self._ext_codes(file, addresses[inside] - file.first, found[inside])
        codes[is_address] = found
        return units

    def _ext_codes(self, file: _File, at: NDArray[Any], default: NDArray[Any]) -> NDArray[Any]:
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

    def _ext_files(self) -> list[_File]:
        try:
            entries = self.files.list(self.ext_path or "")
        except FileNotFoundError:
            return []
        return [
            _File(int(each.name), each.size, f"{self.ext_path}/{each.name}")
            for each in entries
            if _FILE_NAME.fullmatch(each.name)
        ]


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first of `count` places at which it holds, as from there on; `count` if at none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


@lru_cache(maxsize=4)
def _whole_file(files: Files, path: str, size: int) -> NDArray[np.uint8]:
    """A remote queue file: one read of 6 MB instead of twenty of 20 bytes. Kept until _listed()."""
    data = np.empty(size, np.uint8)
    try:
        return data[: files.read_into(path, 0, data.data)]
    except FileNotFoundError:
        return data[:0]
