# SPDX-License-Identifier: Apache-2.0
"""Whole records in a buffer, and their fields as columns.

Nothing is read before it is asked for: filters look at a few numbers, and only the records that
pass are decoded. One step of numpy gathers the first 88 bytes of each record, `RECORD_FIXED`. Where
a host is IPv6, the fields after it lie further on, and are moved to their usual places. Numbers
come as arrays in the machine's byte order.

Java: CommitLog.checkMessageAndReturnSize, MessageDecoder.
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import dtype
from txrocketmq.spark.arrow import arrays
from txrocketmq.spark.arrow.gather import (
    AROUND_BYTES,
    BEFORE_BYTES,
    around,
    encode,
    gather,
    utf8,
)
from txrocketmq.spark.arrow.walk import HEAD_BYTES, Buffer, Positions
from txrocketmq.spark.arrow.words import words

_FIXED: Final = dtype(record.RECORD_FIXED)
_FIXED_IPV6: Final = {
    record.BORN_HOST_IPV6: dtype(record.RECORD_FIXED_BORN_IPV6),
    record.STORE_HOST_IPV6: dtype(record.RECORD_FIXED_STORE_IPV6),
    record.BORN_HOST_IPV6 | record.STORE_HOST_IPV6: dtype(record.RECORD_FIXED_BOTH_IPV6),
}
_ANY_IPV6: Final = record.BORN_HOST_IPV6 | record.STORE_HOST_IPV6
_KEPT_OF_IPV6: Final = {
    flag: np.concatenate(
        [
            np.arange(_FIXED[name].itemsize) + layout.fields[name][1]
            for name in _FIXED.names or ()
            if layout.fields is not None
        ]
    )
    for flag, layout in _FIXED_IPV6.items()
}
"""Which bytes of a head with IPv6 hosts make one with IPv4 hosts; the addresses are cut off."""
_Rows: TypeAlias = slice | Positions
_Number = TypeVar("_Number", np.int32, np.int64)


class RecordLayout(NamedTuple):
    """Positions of the body, the topic and the properties of each record in the buffer, in bytes.

    Where `inconsistent` is true, the lengths do not add up to the record's size, and positions and
    lengths are 0. `parts_size` is the sum of the lengths, as far as the buffer reaches.
    """

    body_at: Positions
    body_length: Positions
    topic_at: Positions
    topic_length: Positions
    properties_at: Positions
    properties_length: Positions
    parts_size: Positions
    inconsistent: NDArray[np.bool_]
    topic_around: NDArray[np.void]
    """The bytes around each topic, for `gather`: they were read with the topic's length."""


class _HeadField(Generic[_Number]):
    """A field of `RECORD_FIXED` for all records, in the machine's byte order."""

    def __set_name__(self, owner: type[Records], name: str) -> None:
        self._name = name

    def __get__(self, records: Records, owner: type[Records]) -> NDArray[_Number]:
        column = records.heads[self._name]
        numbers: NDArray[_Number] = column.astype(column.dtype.newbyteorder("="))
        return numbers


class _LayoutField:
    """A column of the `RecordLayout` for all records."""

    def __set_name__(self, owner: type[Records], name: str) -> None:
        self._name = name

    def __get__(self, records: Records, owner: type[Records]) -> Positions:
        column: Positions = getattr(records.layout, self._name)
        return column


class Records:
    """Records that lie wholly in `buffer`, at the positions `starts`.

    For records of a log, `first_offset` is the physical offset of buffer[0]. `read` are the
    HEAD_BYTES at each start, if they have been read before.
    """

    def __init__(
        self,
        buffer: Buffer,
        starts: Positions,
        first_offset: int = 0,
        *,
        read: NDArray[np.void] | None = None,
        heads: NDArray[np.void] | None = None,
        layout: RecordLayout | None = None,
    ) -> None:
        self.buffer = buffer
        self.starts = starts
        self.first_offset = first_offset
        self._read = read
        self._heads = heads
        self._layout = layout
        self._topics: tuple[NDArray[np.int64], list[str]] | None = None
        self._light_queue: str | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def slice(self, start: int, end: int) -> Records:
        """Returns the records from number `start` up to, not including, `end`."""
        return self.take(slice(start, end))

    def where(self, mask: NDArray[np.bool_]) -> Records:
        """The records for which the mask is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, rows: _Rows) -> Records:
        """The records with these numbers, in this order."""
        chosen = Records(
            self.buffer,
            self.starts[rows],
            self.first_offset,
            read=None if self._read is None or self._heads is not None else self._read[rows],
            heads=None if self._heads is None else self._heads[rows],
            layout=self._layout and RecordLayout._make(each[rows] for each in self._layout),
        )
        if self._topics is not None:
            chosen._topics = (self._topics[0][rows], self._topics[1])
        chosen._light_queue = self._light_queue
        return chosen

    def in_light_queue(self, topic: str, queue_offset: NDArray[np.int64]) -> Records:
        """Returns the records with the topic and offsets that a light queue's consumers see."""
        heads = self.heads.copy()
        heads["queue_id"], heads["queue_offset"] = 0, queue_offset
        seen = Records(self.buffer, self.starts, self.first_offset, heads=heads, layout=self.layout)
        seen._light_queue = topic
        return seen

    @property
    def heads(self) -> NDArray[np.void]:
        """The fields of `RECORD_FIXED` as they lie in the buffer, big-endian; of an IPv6 host the
        address is cut off, see `ipv6_heads`.
        """
        if self._heads is None:
            self._heads = self._gathered_heads()
        return self._heads

    def _gathered_heads(self) -> NDArray[np.void]:
        heads = words(self.buffer, self.starts, HEAD_BYTES) if self._read is None else self._read
        for flag, rows in _ipv6_rows(heads.view(_FIXED)):
            long = self.ipv6_heads(rows, flag).view(np.uint8).reshape(len(rows), -1)
            kept = np.take(long, _KEPT_OF_IPV6[flag], axis=1)
            heads[rows] = kept.view(heads.dtype).ravel()
        return heads.view(_FIXED)

    def ipv6_heads(self, rows: Positions, flag: int) -> NDArray[np.void]:
        """Returns the heads of records that all have these IPv6 bits in `sys_flag`."""
        layout = _FIXED_IPV6[flag]
        return words(self.buffer, self.starts[rows], layout.itemsize).view(layout)

    total_size = _HeadField[np.int32]()
    magic = _HeadField[np.int32]()
    body_crc = _HeadField[np.int32]()
    queue_id = _HeadField[np.int32]()
    flag = _HeadField[np.int32]()
    queue_offset = _HeadField[np.int64]()
    physical_offset = _HeadField[np.int64]()
    sys_flag = _HeadField[np.int32]()
    born_timestamp = _HeadField[np.int64]()
    store_timestamp = _HeadField[np.int64]()
    reconsume_times = _HeadField[np.int32]()
    prepared_transaction_offset = _HeadField[np.int64]()

    body_at = _LayoutField()
    body_length = _LayoutField()
    topic_at = _LayoutField()
    topic_length = _LayoutField()
    properties_at = _LayoutField()
    properties_length = _LayoutField()
    parts_size = _LayoutField()

    @property
    def layout(self) -> RecordLayout:
        """The positions of the variable parts."""
        if self._layout is None:
            self._layout = _layout_of(self)
        return self._layout

    def inconsistent(self) -> NDArray[np.bool_]:
        """Returns which records have an unknown magic, or lengths that do not add up to their size.

        Such records are damaged, and their other fields mean nothing.
        """
        return self.layout.inconsistent

    def topics(self) -> tuple[NDArray[np.int64], list[str]]:
        """Returns the code of each record's topic, and the topics by code."""
        if self._topics is None:
            codes, distinct = encode(self.topic_texts())
            self._topics = (codes, utf8(distinct).to_pylist())
        return self._topics

    def topic_texts(self) -> pa.BinaryArray:
        """Returns the topic of each record as bytes."""
        if self._light_queue is not None:
            return arrays.of_bytes([self._light_queue.encode()] * len(self))
        layout = self.layout
        return gather([self.buffer], layout.topic_at, layout.topic_length, near=layout.topic_around)


def _layout_of(records: Records) -> RecordLayout:
    buffer = records.buffer
    heads = records.heads
    starts = records.starts
    is_v1 = records.magic == record.MAGIC_V1
    sizes = records.total_size
    body_length = heads["body_length"].astype(np.int64)
    body_at = starts + _FIXED.itemsize
    for flag, rows in _ipv6_rows(heads):
        body_at[rows] += _FIXED_IPV6[flag].itemsize - _FIXED.itemsize
    # Positions are clipped to the buffer so that any lengths can be read; checked at the end.
    last = max(0, len(buffer) - 2)
    body_end = body_at + body_length
    topic_length_at = _clipped(body_end, last)
    topic_at = topic_length_at + 1
    topic_around = around(buffer, topic_at)
    topic_length = topic_around.view(np.int8)[BEFORE_BYTES - 1 :: AROUND_BYTES].astype(np.int64)
    is_known = is_v1
    if not is_v1.all():
        rows = np.flatnonzero(~is_v1)
        topic_at[rows] += 1
        topic_around[rows] = around(buffer, topic_at[rows])
        topic_length[rows] = _int16(buffer, topic_length_at[rows])
        is_known = is_v1 | (records.magic == record.MAGIC_V2)
    topic_end = topic_at + topic_length
    properties_length_at = _clipped(topic_end, last)
    properties_at = properties_length_at + 2
    properties_length = _int16(buffer, properties_length_at)
    parts_size = properties_at + properties_length - starts
    consistent = is_known & (parts_size == sizes) & (starts + sizes <= len(buffer))
    consistent &= (body_length | topic_length | properties_length) >= 0
    consistent &= (body_end == topic_length_at) & (topic_end == properties_length_at)
    inconsistent = ~consistent
    columns = (body_at, body_length, topic_at, topic_length, properties_at, properties_length)
    if not consistent.all():
        for column in columns:
            column[inconsistent] = 0
    return RecordLayout(*columns, parts_size, inconsistent, topic_around)


def _clipped(at: Positions, last: int) -> Positions:
    """Clips positions to [0, last]; usually there is nothing to clip."""
    if len(at) and (at.min() < 0 or at.max() > last):
        return np.clip(at, 0, last)
    return at


def _ipv6_rows(heads: NDArray[np.void]) -> list[tuple[int, Positions]]:
    """Returns the rows with IPv6 hosts, grouped by the bits in `sys_flag` that say which."""
    flags = heads["sys_flag"].astype(np.int32) & _ANY_IPV6
    rows = np.flatnonzero(flags)
    if not len(rows):
        return []
    flags = flags[rows]
    return [(flag, rows[flags == flag]) for flag in np.unique(flags).tolist()]


def _int16(buffer: Buffer, at: Positions) -> Positions:
    """Reads big-endian numbers of two bytes at these positions."""
    high = buffer[at].view(np.int8).astype(np.int64)
    return (high << 8) | buffer[at + 1]
