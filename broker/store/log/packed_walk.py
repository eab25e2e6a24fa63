# SPDX-License-Identifier: Apache-2.0
"""Walks over many records at once, whose facts come as packed rows.

`walk` is the plain form in Python, by which the compiled one is judged: it finds exactly the
records that RecordWalk finds. Only the compiled form is worth being called; without it, whoever
wants records takes them one by one.

Java: CommitLog.checkMessageAndReturnSize, for one record.
"""

from __future__ import annotations

from collections.abc import Callable
from mmap import mmap
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from txrocketmq.broker.store.formats.scan import (
    PROPERTIES_LENGTH_BYTES,
    Record,
    RecordWalk,
)
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.process.compiled_kernel import wanted_kernel

MOST_RECORDS: Final = 16_384
ROW: Final = Struct("=qqqqiiiiii")
"""Log offset, queue offset, store time in ms, hash of the tag, size, queue id, system flag, where
the topic is, how many bytes it has, and whether the properties are plain."""
ROW_LONGS: Final = ROW.size // 8
STORED_MS: Final = 2
"""The index of the store time among the 64-bit integers of a row."""
_MOST_PAIRS: Final = 64
_NOT_PLAIN: Final = frozenset({
    names.DELAY, names.INNER_MULTI_DISPATCH, names.INNER_MULTI_QUEUE_OFFSET, names.INNER_NUM,
})  # fmt: skip

PackedWalk: TypeAlias = Callable[["mmap | memoryview", int, int, int, bool], tuple[int, int, bytes]]


def compiled_walk() -> PackedWalk | None:
    """The compiled form of `walk`; None if there is none."""
    kernel = wanted_kernel()
    walk: PackedWalk | None = None if kernel is None else kernel.walk
    return walk


class _Bytes(NamedTuple):
    """A file of the log, or a part of one."""

    view: memoryview
    from_offset: int


def walk(
    data: mmap | memoryview,
    from_offset: int,
    start: int,
    end: int,
    check_crc: bool,  # noqa: FBT001 - as in the compiled form
) -> tuple[int, int, bytes]:
    """Walks over a file's records from one position to another, no more than MOST_RECORDS.

    Returns where the next record would start, how many there were, and their rows.
    """
    rows: list[bytes] = []
    position = start
    for found in RecordWalk(
        _Bytes(memoryview(data), from_offset), start, check_crc=check_crc, end=end
    ):
        rows.append(_row(found))
        position = found.end
        if len(rows) == MOST_RECORDS:
            break
    return position, len(rows), b"".join(rows)


def _row(found: Record) -> bytes:
    tags = _plain_tags(bytes(found.properties))
    return ROW.pack(
        found.physical_offset, found.queue_offset, found.store_timestamp_ms, tags_code(tags),
        found.size_bytes, found.queue_id, found.sys_flag, found.topic_at,
        found.properties_at - PROPERTIES_LENGTH_BYTES - found.topic_at, tags is not None,
    )  # fmt: skip


def _plain_tags(text: bytes) -> str | None:
    """The tag in plain properties, or an empty text; None when they are not plain.

    They are not if one of them makes more of a record than a unit with the hash of its tag, if a
    name comes twice, or if a name or a value is missing.
    """
    try:
        pairs = [pair.split("\x01") for pair in text.decode().split("\x02")]
    except UnicodeDecodeError:
        return None
    if pairs[-1] == [""]:
        pairs.pop()
    if len(pairs) > _MOST_PAIRS or any(len(pair) != 2 or not all(pair) for pair in pairs):
        return None
    found = {name: value for name, value in pairs}  # noqa: C416 - lists are no pairs for mypy
    if len(found) != len(pairs) or not _NOT_PLAIN.isdisjoint(found):
        return None
    return found.get(names.TAGS, "")
