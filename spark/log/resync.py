# SPDX-License-Identifier: Apache-2.0
"""Where reading continues if the place of the next record is not known.

This is needed for a split that begins anywhere, and after a damaged record. A body may hold whole
records, even with the offsets of the very places where they lie; none of them may be taken for a
message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Buffer, Stop, Walk, candidates, walk

LONGEST_RECORD_BYTES: Final = (4 << 20) + (1 << 17)
"""The longest record that a broker stores, unless its maxMessageSize was raised."""

_HEAD: Final = fixed(record.RECORD_HEAD)
_TOPIC_LENGTH_V1: Final = fixed(record.TOPIC_LENGTH_V1)
_TOPIC_LENGTH_V2: Final = fixed(record.TOPIC_LENGTH_V2)
_PROPERTIES_LENGTH: Final = fixed(record.PROPERTIES_LENGTH)


def whole_bytes(rest: Buffer, room: int, max_record_bytes: int) -> int:
    """Returns how many bytes to read so that the record which begins with `rest` is complete.

    Returns 0 if that is impossible: it is longer than `room`, the bytes from its start to the end
    of the file, or longer than the longest record.
    """
    if len(rest) >= room:
        return 0
    if len(rest) < _HEAD.size:
        return min(room, _HEAD.size)
    size: int = _HEAD.struct.unpack_from(rest.data)[0]
    return size if size <= min(room, max_record_bytes) else 0


def resync(buffer: Buffer, first_offset: int, start: int) -> int | None:
    """Returns the position of the first record at or after `start`; None when there is none.

    `first_offset` is the physical offset of buffer[0]. Records inside a body are followed by the
    rest of the record around them, which is not a record. So a place counts only if its chain of
    records is unbroken up to the buffer's end, a blank, or the end of what is written, or if it is
    longer than any record around it could be. A damaged record can be told from such a rest, and
    does not break a chain. If every chain breaks, the longest one counts that does not end at what
    is clearly a rest. For this to hold, the buffer must reach beyond the longest record.
    """
    best: int | None = None
    longest_bytes = -1
    for place, found in _chains(buffer, first_offset, start):
        if not _is_broken(buffer, first_offset, found):
            return place
        if found.stop - place > longest_bytes and not _is_rest(buffer, first_offset, found.stop):
            best, longest_bytes = place, found.stop - place
    return best


def beyond(buffer: Buffer, first_offset: int, damaged: int) -> int | None:
    """Returns where the record after the damaged one at position `damaged` starts, or None.

    Its size or the lengths of its parts may still lead to the next record, or to the blank at the
    end of the file. Otherwise it is the next record whose chain does not end at what is clearly the
    rest of a record. Near one damaged record there may be others, so a broken chain means less here
    than in `resync`.
    """
    one = Records(buffer, np.array([damaged], np.int64), first_offset)
    ends = sorted({damaged + int(one.total_size[0]), damaged + int(one.parts_size[0])})
    for end in ends:
        if damaged < end < len(buffer) and _goes_on(walk(buffer, first_offset, end, end + 1)):
            return end
    for place, found in _chains(buffer, first_offset, damaged + 1):
        is_broken = _is_broken(buffer, first_offset, found)
        if not is_broken or not _is_rest(buffer, first_offset, found.stop):
            return place
    return None


def _chains(buffer: Buffer, first_offset: int, start: int) -> Iterator[tuple[int, Walk]]:
    """Yields places from `start` on that look like records, with the chain from each of them.

    Chains have a limited length; places on the chain of an earlier place are left out.
    """
    visited: set[int] = set()
    for place in candidates(buffer, first_offset, start):
        if place not in visited:
            found = walk(buffer, first_offset, place, place + LONGEST_RECORD_BYTES)
            yield place, found
            visited.update(found.starts.tolist())


def _goes_on(found: Walk) -> bool:
    """Returns whether a record or a blank lies where a walk began."""
    return len(found.starts) > 0 or found.reason in (Stop.PARTIAL, Stop.BLANK)


def _is_broken(buffer: Buffer, first_offset: int, found: Walk) -> bool:
    """Returns whether a chain ended at something that is neither a record nor a damaged one."""
    if found.reason is not Stop.BAD:
        return False
    stop = found.stop
    if stop + _HEAD.size <= len(buffer):
        fields = _HEAD.fields(buffer.data, stop)
        if (
            fields["magic"] in (record.MAGIC_V1, record.MAGIC_V2)
            or fields["physical_offset"] == first_offset + stop
        ):
            return False
    last = Records(buffer, found.starts[-1:], first_offset)
    return not last.inconsistent().any()


def _is_rest(buffer: Buffer, first_offset: int, place: int) -> bool:
    """Returns whether a topic and properties lie there, followed by what may follow a record."""
    there = buffer.data
    for topic_length in (_TOPIC_LENGTH_V1, _TOPIC_LENGTH_V2):
        topic_at = place + topic_length.size
        if topic_at > len(buffer):
            continue
        properties_length_at = topic_at + topic_length.struct.unpack_from(there, place)[0]
        properties_at = properties_length_at + _PROPERTIES_LENGTH.size
        if not topic_at <= properties_length_at <= len(buffer) - _PROPERTIES_LENGTH.size:
            continue
        (length,) = _PROPERTIES_LENGTH.struct.unpack_from(there, properties_length_at)
        end = properties_at + length
        if length >= 0 and end <= len(buffer):
            found = walk(buffer, first_offset, end, end + 1)
            if found.reason is not Stop.BAD:
                return True
    return False
