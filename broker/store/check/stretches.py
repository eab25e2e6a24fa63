# SPDX-License-Identifier: Apache-2.0
"""Stretches of the log: sound, adjacent records that are checked together with numpy.

`read_stretch` guarantees that its records are sound by the rules of scan.py: the first doubtful one
ends the stretch, and is left to the walk, which examines one record after the other and knows how
to deal with damage. So nothing is decided differently here; a property test compares the two. Where
the compiled kernel is installed, its walk finds the same records, and `packed_stretch` only puts
them into columns. Only checks of a whole store need this; a broker runs without numpy, and never
imports it.

Java: CommitLog.checkMessageAndReturnSize, for one record.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.disk.record_head import MAGICS, next_head
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.scan import (
    PAGE_BYTES,
    PROPERTIES_LENGTH_BYTES,
    Record,
    is_torn,
)
from txrocketmq.broker.store.log.log_walk import END, LogWalk, RecordBatch, Run, SoundRecords
from txrocketmq.broker.store.log.packed_walk import PackedWalk, compiled_walk
from txrocketmq.broker.store.log.visibility import enters_queue
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import dtype, fixed, picked

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_RECORDS_AT_ONCE: Final = 8_192
"""How many records are checked together: what is read of them fits into processors' caches."""
_LANES: Final = 128
_LANE_BYTES: Final = 64 * 1024
"""The distance in bytes of the places from which beginnings of records are searched in parallel."""
_AROUND_DOUBT: Final = 64
"""How many records are examined singly where a stretch has ended, before the next one begins."""
_SIZE: Final = picked(record.RECORD_HEAD, "total_size")
_HEAD: Final = dtype(record.RECORD_HEAD)
_SIZE_KIND: Final = _HEAD["total_size"]
"""A record begins with its size."""
_BLANK_BYTES: Final = dtype(record.BLANK).itemsize
"""There is always room for a blank behind a record, so this many bytes."""
_LAYOUTS: Final = [
    fixed(each)
    for each in (
        record.RECORD_FIXED,
        record.RECORD_FIXED_BORN_IPV6,
        record.RECORD_FIXED_STORE_IPV6,
        record.RECORD_FIXED_BOTH_IPV6,
    )
]
"""The layouts of records by the bits of the system flag that say which hosts are IPv6."""
_HOSTS: Final = len(_LAYOUTS) - 1
_FIXED_BYTES: Final = np.array([layout.size for layout in _LAYOUTS])
_STORED_AT: Final = np.array([layout.offset_of("store_timestamp") for layout in _LAYOUTS])
_STORED: Final = dtype(record.RECORD_STORED)["store_timestamp"]
_BODY_LENGTH: Final = dtype(record.RECORD_TAIL)["body_length"]
"""The last field before the body."""
_V1_BYTES: Final = dtype(record.TOPIC_LENGTH_V1).itemsize
_V2_BYTES: Final = dtype(record.TOPIC_LENGTH_V2).itemsize
_CRC_MASK: Final = 0x7FFFFFFF
_ITEM: Final = dtype(formats.INDEX_ITEM)
_PACKED: Final = np.dtype([
    ("physical_offset", np.int64), ("queue_offset", np.int64), ("stored_ms", np.int64),
    ("tags_code", np.int64), ("total_size", np.int32), ("queue_id", np.int32),
    ("sys_flag", np.int32), ("topic_at", np.int32), ("topic_length", np.int32),
    ("is_plain", np.int32),
])  # fmt: skip
"""Rows of the kernel's walk (packed_walk.ROW), by the names of records' heads."""
_WORD_BYTES: Final = 8
_FIRST_BYTES: Final = np.frombuffer(
    b"".join(b"\xff" * kept + bytes(_WORD_BYTES - kept) for kept in range(_WORD_BYTES + 1)),
    np.uint64,
)
"""Masks that keep the first bytes of a word, by their number, whatever the machine's byte order."""
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Multiplying a word by this spreads its bits over the others."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound records as columns; positions are those in the file."""

    view: memoryview
    heads: NDArray[np.void]
    starts: Ints
    ends: Ints
    stored_ms: Ints
    topic_at: Ints
    topic_length: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def end(self) -> int:
        """Where the last record ends."""
        return int(self.ends[-1])

    def rows(self, mask: Mask) -> Stretch:
        """The records for which the mask is true."""
        return Stretch(
            self.view,
            self.heads[mask],
            self.starts[mask],
            self.ends[mask],
            self.stored_ms[mask],
            self.topic_at[mask],
            self.topic_length[mask],
        )

    def entering(self) -> Stretch:
        """The records that have units."""
        flags = [int(flag) for flag in np.unique(self.heads["sys_flag"])]
        hidden = [flag for flag in flags if not enters_queue(flag)]
        return self.rows(~np.isin(self.heads["sys_flag"], hidden)) if hidden else self

    def runs(self) -> Iterator[Run]:
        """The records that have units, as runs by queue."""
        entering = self.entering()
        return entering._runs() if len(entering) else iter(())  # noqa: SLF001

    def _runs(self) -> Iterator[Run]:
        words = _topic_words(self)
        queue_ids = self.heads["queue_id"].astype(np.uint64)
        mixed = queue_ids * _ODD ^ self.topic_length.astype(np.uint64)
        for column in words.T:
            mixed = (mixed ^ (mixed >> np.uint64(29))) * _ODD ^ column
        order = np.argsort(mixed, kind="stable")
        words, queue_ids, lengths = words[order], queue_ids[order], self.topic_length[order]
        # The hash alone does not decide whether it is another queue.
        is_other = (words[1:] != words[:-1]).any(axis=1)
        is_other |= (queue_ids[1:] != queue_ids[:-1]) | (lengths[1:] != lengths[:-1])
        edges = [0, *(np.flatnonzero(is_other) + 1).tolist(), len(order)]
        queue_offsets = _bytes_of(self.heads["queue_offset"][order], np.int64)
        offsets = _bytes_of(self.heads["physical_offset"][order], np.int64)
        sizes = _bytes_of(self.heads["total_size"][order], np.int32)
        for first, after in pairwise(edges):
            row = order[first]
            at = int(self.topic_at[row])
            yield Run(
                bytes(self.view[at : at + int(self.topic_length[row])]),
                int(self.heads["queue_id"][row]),
                array("q", queue_offsets[first * 8 : after * 8]),
                array("q", offsets[first * 8 : after * 8]),
                array("i", sizes[first * 4 : after * 4]),
            )

    def records(self) -> Iterator[Record]:
        """The records, one after the other."""
        heads = self.heads
        columns = (
            heads["physical_offset"], heads["total_size"], heads["queue_id"],
            heads["queue_offset"], heads["sys_flag"], self.stored_ms,
            self.topic_at, self.topic_at + self.topic_length + PROPERTIES_LENGTH_BYTES, self.ends,
        )  # fmt: skip
        for each in zip(*(column.tolist() for column in columns), strict=True):
            yield Record._make((*each[:6], self.view, *each[6:]))


class StretchWalk(LogWalk):
    """A walk that takes stretches where it can, and examines singly the records between them."""

    _at_once = _RECORDS_AT_ONCE
    """How many records are read for the next stretch; few where there is much damage."""

    def __init__(
        self, files: MappedFileQueue, queues: Iterable[ConsumeQueue], *, check_crc: bool
    ) -> None:
        super().__init__(files, queues, check_crc=check_crc)
        self._compiled = compiled_walk()

    def batches(self, start: int, end: int = END) -> Iterator[SoundRecords]:
        """Yields stretches, and single records where a stretch has ended."""
        self.position = start
        while self.position < end:
            if (found := self._stretch(end)) is not None:
                yield found
                continue
            records = list(islice(self.records(self.position, end), _AROUND_DOUBT))
            yield RecordBatch(records)
            if len(records) < _AROUND_DOUBT:
                return

    def pass_all(self, start: int) -> int:
        """Walks from `start` to where nothing more is proven; returns the number of records."""
        return 0 if self._goes_to_known_end(start) else sum(map(len, self.batches(start)))

    def names_records(self, items: memoryview, start: int, end: int) -> bool:
        """Whether these items name records of one file of the log; or each is examined."""
        offsets = np.frombuffer(items, _ITEM)["physical_offset"].astype(np.int64)
        offsets = offsets[(offsets >= start) | (offsets < 0)]
        if not len(offsets):
            return True
        file = self._files.find(int(offsets[0]))
        if file is None:
            return False
        at = offsets - file.from_offset
        written = min(file.wrote_bytes, end - file.from_offset)
        if at.min() < 0 or at.max() > written - _HEAD.itemsize:
            return False
        heads = _read(np.frombuffer(file.view, np.uint8), at, _HEAD)
        is_record = heads["physical_offset"] == offsets
        return bool((is_record & np.isin(heads["magic"], list(MAGICS))).all())

    def _stretch(self, end: int) -> Stretch | None:
        file = self._files.find(self.position)
        if file is None:
            return None
        base = file.from_offset
        at, check_crc = self.position - base, self._check_crc
        if self._compiled is not None:
            found = packed_stretch(self._compiled, file, at, end - base, check_crc=check_crc)
        else:
            found = read_stretch(file, at, end - base, self._at_once, check_crc=check_crc)
        if found is None:
            self._at_once = _AROUND_DOUBT
            return None
        self.last_ms = int(found.stored_ms[-1])
        self.newest_ms = max(self.newest_ms, int(found.stored_ms.max()))
        self.position = base + found.end
        self._at_once = min(2 * self._at_once, _RECORDS_AT_ONCE)
        return found


def read_stretch(
    file: MappedFile, position: int, end: int, at_most: int, *, check_crc: bool
) -> Stretch | None:
    """The sound records from a position of the file on, at which one is believed to begin.

    They begin before `end` and are at most `at_most`, or as many as are read together if that is
    fewer; there may be more behind them. None when the first one is doubtful.
    """
    view = file.view
    buffer = np.frombuffer(view, np.uint8)
    if at_most < _RECORDS_AT_ONCE:
        starts = _starts(view, position, end, at_most)
    else:
        starts = _starts_in_lanes(file, position, end)
    heads = _read(buffer, starts, _HEAD)
    hosts = heads["sys_flag"] // record.BORN_HOST_IPV6 & _HOSTS
    body_at = starts + _FIXED_BYTES[hosts]
    is_sound = (heads["magic"] == record.MAGIC_V1) | (heads["magic"] == record.MAGIC_V2)
    is_sound &= heads["physical_offset"] == starts + file.from_offset
    count = _leading(is_sound & (body_at < len(view)))
    starts, heads, body_at = starts[:count], heads[:count], body_at[:count]
    body_length = _read(buffer, body_at - _BODY_LENGTH.itemsize, _BODY_LENGTH).astype(np.int64)
    ends = starts + heads["total_size"]
    body_end = body_at + body_length
    is_long = heads["magic"] == record.MAGIC_V2
    topic_at = body_end + np.where(is_long, _V2_BYTES, _V1_BYTES)
    is_sound = (body_length >= 0) & (topic_at + PROPERTIES_LENGTH_BYTES <= ends)
    count = _leading(is_sound & (ends + _BLANK_BYTES <= len(view)))
    topic_length = buffer[body_end[:count]].astype(np.int64)
    if is_long[:count].any():
        both = _unsigned(buffer, body_end[:count])
        topic_length = np.where(is_long[:count], both, topic_length)
    properties_at = topic_at[:count] + topic_length + PROPERTIES_LENGTH_BYTES
    count = _leading(properties_at <= ends[:count])
    properties_length = _unsigned(buffer, properties_at[:count] - PROPERTIES_LENGTH_BYTES)
    count = _leading(properties_at[:count] + properties_length == ends[:count])
    if check_crc:
        is_right = _crcs(view, body_at[:count], body_end[:count]) == heads["body_crc"][:count]
        count = _leading(is_right | (body_length[:count] == 0))
        count = _not_torn(view, topic_at[:count], properties_at, ends)
    if not count:
        return None
    stored_ms = _read(buffer, starts[:count] + _STORED_AT[hosts[:count]], _STORED)
    found = starts, ends, stored_ms.astype(np.int64), topic_at, topic_length
    return Stretch(view, heads[:count], *(column[:count] for column in found))


def packed_stretch(
    walk: PackedWalk, file: MappedFile, position: int, end: int, *, check_crc: bool
) -> Stretch | None:
    """The same as the kernel's walk finds them, except for those that reach beyond `end`; None,
    too, if it fails.
    """
    view = file.view
    try:
        packed = walk(view, file.from_offset, position, min(end, len(view)), check_crc)[2]
    except RuntimeError:
        return None
    if not packed:
        return None
    rows = np.frombuffer(packed, _PACKED)
    starts = rows["physical_offset"] - file.from_offset
    topics = rows["topic_at"].astype(np.int64), rows["topic_length"].astype(np.int64)
    return Stretch(view, rows, starts, starts + rows["total_size"], rows["stored_ms"], *topics)


def _starts(view: memoryview, position: int, end: int, at_most: int) -> Ints:
    """The positions at which records begin, if their sizes are right."""
    starts: list[int] = []
    append, unpack = starts.append, _SIZE.unpack_from
    last = min(end - 1, len(view) - _HEAD.itemsize)
    for _ in repeat(None, at_most):
        if position > last:
            break
        (size_bytes,) = unpack(view, position)
        if size_bytes <= 0:
            break
        append(position)
        position += size_bytes
    return np.array(starts, np.int64)


def _starts_in_lanes(file: MappedFile, position: int, end: int) -> Ints:
    """The same, searched in parallel from several places at which records seem to begin.

    What is found from one of these counts if the records before it lead there.
    """
    view = file.view
    last = min(end - 1, len(view) - _HEAD.itemsize)
    span_end = min(position + _LANES * _LANE_BYTES, last + 1)
    if span_end <= position:
        return np.empty(0, np.int64)
    firsts = [position]
    for guess in range(position + _LANE_BYTES, span_end, _LANE_BYTES):
        found = next_head(file.map(), file.from_offset, max(guess, firsts[-1] + 1), span_end)
        if found < 0:
            break
        firsts.append(found)
    at = np.array(firsts, np.int64)
    after = np.append(at[1:], span_end)
    reached = at.copy()
    """The position at which the next record of each lane would begin."""
    lanes = np.arange(len(at))
    buffer, steps = np.frombuffer(view, np.uint8), []
    while len(lanes):
        sizes = _read(buffer, at, _SIZE_KIND).astype(np.int64)
        if not (is_record := sizes > 0).all():
            lanes, at, sizes = lanes[is_record], at[is_record], sizes[is_record]
        steps.append(at)
        at = at + sizes
        reached[lanes] = at
        if not (goes_on := at < after[lanes]).all():
            lanes, at = lanes[goes_on], at[goes_on]
    joined = _leading(reached[:-1] == after[:-1]) if len(reached) > 1 else 0
    starts = np.sort(np.concatenate(steps))
    return starts[: int(np.searchsorted(starts, after[joined]))]


def _crcs(view: memoryview, body_at: Ints, body_end: Ints) -> Ints:
    places = zip(body_at.tolist(), body_end.tolist(), strict=True)
    return np.array([crc32(view[at:end]) for at, end in places], np.int64) & _CRC_MASK


def _not_torn(view: memoryview, topic_at: Ints, properties_at: Ints, ends: Ints) -> int:
    """How many of the first records have no zeroed page in their text."""
    count = len(topic_at)
    has_page = ((ends[:count] - 1) & -PAGE_BYTES) >= topic_at
    for row in np.flatnonzero(has_page).tolist():
        if is_torn(view, int(topic_at[row]), int(properties_at[row]), int(ends[row])):
            return int(row)
    return count


def _leading(is_sound: Mask) -> int:
    """How many are true before the first that is false."""
    return len(is_sound) if is_sound.all() else int(is_sound.argmin())


def _topic_words(stretch: Stretch) -> NDArray[np.uint64]:
    """The topics as rows of words; the bytes behind the end of a topic are zero."""
    lengths = stretch.topic_length
    count = max(-(-int(lengths.max()) // _WORD_BYTES), 1)
    buffer = np.frombuffer(stretch.view, np.uint8)
    size_bytes = count * _WORD_BYTES
    # Where a row would reach beyond the end of the file, it is read from a copy of the end.
    last = max(len(buffer) - size_bytes, 0)
    near = np.flatnonzero(stretch.topic_at > last)
    at = np.minimum(stretch.topic_at, last)
    words = _read(buffer, at, np.dtype((np.void, size_bytes))).view(np.uint64)
    words = words.reshape(len(lengths), count)
    for row in near.tolist():
        rest = bytes(stretch.view[int(stretch.topic_at[row]) :])
        words[row] = np.frombuffer(rest[:size_bytes].ljust(size_bytes, b"\0"), np.uint64)
    for number in range(count):
        kept = np.clip(lengths - number * _WORD_BYTES, 0, _WORD_BYTES)
        words[:, number] &= _FIRST_BYTES[kept]
    return words


def _read(buffer: Bytes, at: Ints, kind: np.dtype[Any]) -> NDArray[Any]:
    """The values that begin at each of these positions, all of which are in the buffer."""
    size_bytes = kind.itemsize
    if len(buffer) < size_bytes:
        return np.empty(0, kind)
    # Elements overlap, one beginning at each byte, so all values are copied in one step.
    each_byte: NDArray[np.void] = np.ndarray(
        (len(buffer) - size_bytes + 1,), f"V{size_bytes}", buffer, strides=(1,)
    )
    return each_byte[at].view(kind)


def _unsigned(buffer: Bytes, at: Ints) -> Ints:
    """Big-endian integers of two bytes."""
    return buffer[at].astype(np.int64) << 8 | buffer[at + 1]


def _bytes_of(column: NDArray[np.int64], kind: type) -> bytes:
    """The column in the machine's byte order."""
    return column.astype(kind).tobytes()
