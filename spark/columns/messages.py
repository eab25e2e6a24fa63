# SPDX-License-Identifier: Apache-2.0
"""Makes messages of records: decompresses bodies and takes inner batches apart.

A record is one message, except for an inner batch. The body of an inner batch is a batch as the
producer sent it. Its messages share the numbers of the record, but each of them has its own flag,
body and properties, and their queue offsets are consecutive.

Java: MessageDecoder.decodeMessage, decodeMessages; PullAPIWrapper.processPullResult.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.compression import CompressionError, decompress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Positions
from txrocketmq.spark.columns.spans import Spans

INNER_BATCH: Final = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
"""The flags of an inner batch; consumers unwrap a record only if both are set."""

_ENTRY_HEAD: Final = fixed(record.BATCH_ENTRY_HEAD)
_FLAG: Final = _ENTRY_HEAD.names.index("flag")
_PROPERTIES_LENGTH: Final = fixed(record.PROPERTIES_LENGTH)
_ENTRY_BYTES: Final = _ENTRY_HEAD.size + _PROPERTIES_LENGTH.size


@dataclass
class Messages:
    """One message per row; the messages of an inner batch share one record."""

    records: Records
    """The record of each row."""
    body: Spans
    properties: Spans
    body_size: NDArray[Any]
    """The size of each body as stored, in bytes."""
    store_size: NDArray[Any]
    """Bytes in the log; the messages of an inner batch share out those of their record."""
    flag: NDArray[Any]
    queue_offset: NDArray[Any]

    def __len__(self) -> int:
        return len(self.records)


class Undecodable(NamedTuple):
    """A record from which no messages can be made: its row, and why."""

    row: int
    reason: str
    detail: str


def plain_messages(records: Records) -> Messages:
    """Returns one message for each record, with the bodies as they are stored."""
    buffers = (records.buffer,)
    return Messages(
        records,
        Spans(buffers, records.body_at, records.body_length),
        Spans(buffers, records.properties_at, records.properties_length),
        records.body_length.copy(),
        records.total_size,
        records.flag,
        records.queue_offset,
    )


def unpacked_messages(
    records: Records, rows: Positions, max_body_bytes: int, max_bytes: int
) -> Iterator[tuple[Messages, list[Undecodable]]]:
    """Yields the messages of all records; the ones in `rows` are compressed or inner batches.

    They come in parts whose unpacked bodies take at most `max_bytes`, unless one body alone is
    larger. With each part come its undecodable records, by their rows in `records`.
    """
    bodies = _stored_bodies(records, rows)
    flags = records.sys_flag[rows].tolist()
    part = _Part(0)
    for row, flag, stored in zip(rows.tolist(), flags, bodies, strict=True):
        try:
            is_packed = flag & MessageSysFlag.COMPRESSED and stored
            body = decompress(stored, flag, max_body_bytes) if is_packed else stored
            entries = _entries(body) if flag & INNER_BATCH == INNER_BATCH else None
        except CompressionError as error:
            part.left_out.append(Undecodable(row, "decompress", str(error)))
            continue
        except _BatchError as error:
            part.left_out.append(Undecodable(row, "length", str(error)))
            continue
        if part.size_bytes and part.size_bytes + len(body) > max_bytes:
            yield part.messages(records, row), part.left_out
            part = _Part(row)
        part.size_bytes += len(body)
        if entries is None:
            part.bodies[row] = body
        else:
            part.batches[row] = entries
    yield part.messages(records, len(records)), part.left_out


def _stored_bodies(records: Records, rows: Positions) -> Iterator[bytes]:
    view = records.buffer.data
    starts = records.body_at[rows]
    ends = starts + records.body_length[rows]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield view[start:end].tobytes()


class _Entry(NamedTuple):
    """A message of an inner batch."""

    flag: int
    body: bytes
    properties: bytes


class _BatchError(ValueError):
    """The body of an inner batch cannot be taken apart."""


def _entries(body: bytes) -> list[_Entry]:
    """Takes a batch apart; like the original, it ignores the sizes, magics and CRCs inside."""
    entries: list[_Entry] = []
    at = 0
    while at < len(body):
        try:
            flag, body_length = _ENTRY_HEAD.struct.unpack_from(body, at)[_FLAG:]
            body_at = at + _ENTRY_HEAD.size
            body_end = body_at + max(0, body_length)
            (properties_length,) = _PROPERTIES_LENGTH.struct.unpack_from(body, body_end)
        except struct.error:
            raise _BatchError(f"message {len(entries)} of the inner batch is cut short") from None
        properties_at = body_end + _PROPERTIES_LENGTH.size
        at = properties_at + properties_length
        if body_length < 0 or properties_length < 0 or at > len(body):
            raise _BatchError(f"message {len(entries)} of the inner batch does not fit in it")
        entries.append(_Entry(flag, body[body_at:body_end], body[properties_at:at]))
    return entries


class _Part:
    """A part of the result: the records from row `start` on, some of which are unpacked."""

    def __init__(self, start: int) -> None:
        self.size_bytes = 0
        """The size of the unpacked bodies."""
        self.bodies: dict[int, bytes] = {}
        """The unpacked bodies, by the row of the record."""
        self.batches: dict[int, list[_Entry]] = {}
        """The messages of inner batches, by the row of the record."""
        self.left_out: list[Undecodable] = []
        self._start = start

    def messages(self, records: Records, end: int) -> Messages:
        """Returns all messages up to, not including, the row `end`."""
        counts = np.ones(end - self._start, np.int64)
        for undecodable in self.left_out:
            counts[undecodable.row - self._start] = 0
        for row, entries in self.batches.items():
            counts[row - self._start] = len(entries)
        chosen = records.slice(self._start, end)
        if (counts != 1).any():
            chosen = chosen.take(np.repeat(np.arange(len(counts)), counts))
        first = np.cumsum(counts) - counts
        made = plain_messages(chosen)
        if self.bodies:
            rows = first[np.fromiter(self.bodies, np.int64) - self._start]
            made.body = made.body.replaced(rows, list(self.bodies.values()))
        if self.batches:
            rows = first[np.fromiter(self.batches, np.int64) - self._start]
            self._put_batches(records, made, rows)
        return made

    def _put_batches(self, records: Records, made: Messages, first: Positions) -> None:
        """Puts the messages of the batches into `made`; each batch starts at its row in `first`."""
        entries = [entry for batch in self.batches.values() for entry in batch]
        sizes = [len(batch) for batch in self.batches.values()]
        numbers = np.concatenate([np.arange(size) for size in sizes])
        of_record = records.total_size[list(self.batches)].tolist()
        shares = map(_shares, of_record, self.batches.values())
        rows = np.repeat(first, sizes) + numbers
        made.body = made.body.replaced(rows, [entry.body for entry in entries])
        made.properties = made.properties.replaced(rows, [entry.properties for entry in entries])
        made.body_size[rows] = [len(entry.body) for entry in entries]
        made.store_size[rows] = np.concatenate(list(shares))
        made.flag[rows] = [entry.flag for entry in entries]
        made.queue_offset[rows] += numbers


def _shares(record_bytes: int, entries: Sequence[_Entry]) -> NDArray[np.int64]:
    """Divides a record's bytes among its messages, in proportion to the bytes that each one has."""
    sizes = [_ENTRY_BYTES + len(entry.body) + len(entry.properties) for entry in entries]
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.diff(record_bytes * ends // max(int(ends[-1:].sum()), 1), prepend=0)
