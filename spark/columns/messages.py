# SPDX-License-Identifier: Apache-2.0
"""Messages of records: bodies decompressed, batches that are kept as one record taken apart.

A record is one message, but for an inner batch, whose body is the messages of a batch as a producer
sent it: they have the numbers of the record, and each its own flag, body and properties, and the
next queue offset.

Java: MessageDecoder.decodeMessage, decodeMessages; PullAPIWrapper.processPullResult.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.compression import CompressionError, decompress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.packing import fixed
from txrocketmq.spark.columns.gather import Bytes, Positions
from txrocketmq.spark.columns.spans import Spans
from txrocketmq.spark.records import Records

INNER_BATCH: Final = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
"""Both, as consumers look for them."""

_ENTRY_HEAD: Final = fixed(record.BATCH_ENTRY_HEAD)
_FLAG: Final = _ENTRY_HEAD.names.index("flag")
_PROPERTIES_LENGTH: Final = fixed(record.PROPERTIES_LENGTH)


@dataclass
class Messages:
    """Messages, one a row; rows of one inner batch have the same record."""

    records: Records
    """The record of each row."""
    body: Spans
    properties: Spans
    body_size: NDArray[Any]
    """As stored."""
    flag: NDArray[Any]
    queue_offset: NDArray[Any]

    def __len__(self) -> int:
        return len(self.records)


class Undecodable(NamedTuple):
    """A record of which no messages can be made: its row, and why."""

    row: int
    reason: str
    detail: str


def plain_messages(records: Records) -> Messages:
    """A message of each record, with the bodies as they are stored."""
    buffers = (records.buffer,)
    return Messages(
        records,
        Spans(buffers, records.body_at, records.body_length),
        Spans(buffers, records.properties_at, records.properties_length),
        records.body_length.copy(),
        records.flag,
        records.queue_offset,
    )


def unpacked_messages(
    records: Records, rows: Positions, max_body_bytes: int, max_bytes: int
) -> Iterator[tuple[Messages, list[Undecodable]]]:
    """Messages of the records, of which those in `rows` are compressed or inner batches.

    Comes in parts, so that one holds at most `max_bytes` of bodies made here, if no single body is
    larger; with each part come those of its records that were left out, by their row in `records`.
    """
    flags = records.sys_flag
    bodies = Spans((records.buffer,), records.body_at, records.body_length)
    part = _Part(0)
    for row in rows.tolist():
        try:
            unpacked = _unpacked(bodies.bytes_of(row), int(flags[row]), max_body_bytes)
        except CompressionError as error:
            part.left_out.append(Undecodable(row, "decompress", str(error)))
            continue
        except _BatchError as error:
            part.left_out.append(Undecodable(row, "length", str(error)))
            continue
        if part.size_bytes and part.size_bytes + len(unpacked.body) > max_bytes:
            yield part.messages(records, row), part.left_out
            part = _Part(row)
        part.add(row, unpacked)
    yield part.messages(records, len(records)), part.left_out


class _Entry(NamedTuple):
    """A message of a batch; positions are in the body of the batch."""

    flag: int
    body_at: int
    body_length: int
    properties_at: int
    properties_length: int


class _Unpacked(NamedTuple):
    """A body as it was before it was compressed, and its messages if it is a batch."""

    body: bytes
    entries: list[_Entry] | None


class _BatchError(ValueError):
    """The body of an inner batch that is none."""


def _unpacked(body: bytes, sys_flag: int, max_body_bytes: int) -> _Unpacked:
    if sys_flag & MessageSysFlag.COMPRESSED and body:
        body = decompress(body, sys_flag, max_body_bytes)
    is_batch = sys_flag & INNER_BATCH == INNER_BATCH
    return _Unpacked(body, _entries(body) if is_batch else None)


def _entries(body: bytes) -> list[_Entry]:
    """The messages of a batch. As the original does, sizes, magics and CRCs are passed over."""
    entries: list[_Entry] = []
    at = 0
    while at < len(body):
        try:
            flag, body_length = _ENTRY_HEAD.struct.unpack_from(body, at)[_FLAG:]
            body_at = at + _ENTRY_HEAD.size
            (properties_length,) = _PROPERTIES_LENGTH.struct.unpack_from(
                body, body_at + max(0, body_length)
            )
        except struct.error:
            raise _BatchError(f"message {len(entries)} of the inner batch is cut short") from None
        properties_at = body_at + body_length + _PROPERTIES_LENGTH.size
        at = properties_at + properties_length
        if body_length < 0 or properties_length < 0 or at > len(body):
            raise _BatchError(f"message {len(entries)} of the inner batch does not fit in it")
        entries.append(_Entry(flag, body_at, body_length, properties_at, properties_length))
    return entries


class _Part:
    """Records from the row `start` on, some of them unpacked."""

    def __init__(self, start: int) -> None:
        self.size_bytes = 0
        self.left_out: list[Undecodable] = []
        self._start = start
        self._unpacked: list[tuple[int, _Unpacked]] = []

    def add(self, row: int, unpacked: _Unpacked) -> None:
        """The record of this row was unpacked."""
        self._unpacked.append((row, unpacked))
        self.size_bytes += len(unpacked.body)

    def messages(self, records: Records, end: int) -> Messages:
        """All messages up to the row `end`."""
        counts = np.ones(end - self._start, np.int64)
        for undecodable in self.left_out:
            counts[undecodable.row - self._start] = 0
        for row, (_, entries) in self._unpacked:
            if entries is not None:
                counts[row - self._start] = len(entries)
        chosen = records.slice(self._start, end)
        if (counts != 1).any():
            chosen = chosen.take(np.repeat(np.arange(len(counts)), counts))
        first = np.cumsum(counts) - counts
        made = plain_messages(chosen)
        body, properties = made.body.with_buffer(self._buffer()), made.properties
        if any(entries is not None for _, (_, entries) in self._unpacked):
            properties = properties.with_buffer(body.buffers[-1])
        at = 0
        for row, (plain, entries) in self._unpacked:
            out = int(first[row - self._start])
            if entries is None:
                body.put(out, at, len(plain))
            for number, entry in enumerate(entries or ()):
                body.put(out + number, at + entry.body_at, entry.body_length)
                properties.put(out + number, at + entry.properties_at, entry.properties_length)
                made.body_size[out + number] = entry.body_length
                made.flag[out + number] = entry.flag
                made.queue_offset[out + number] += number
            at += len(plain)
        made.body, made.properties = body, properties
        return made

    def _buffer(self) -> Bytes:
        return np.frombuffer(b"".join(each.body for _, each in self._unpacked), np.uint8)
