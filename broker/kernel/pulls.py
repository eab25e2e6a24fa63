# SPDX-License-Identifier: Apache-2.0
"""The reference of a kernel's pulls: which pull the bytes of a read begin with, and its answer.

A place is learned from the header of a pull that was decoded as usual. A later header with the same
key, so that only its opaque and two offsets differ (header_holes.py), is of the same place. If that
was learned of an account, it is only taken from the same origin, which stands for an address, and
if it is signed as it should be. What such a pull gets is no business of a kernel; but once it is
known which units of a queue a pull is to be answered with, a kernel finds their records in the log,
and makes the head of the answer.

This is the plain form in Python, by which compiled ones are judged: it is not made to be fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from txrocketmq.broker.kernel.header_holes import pull_holes_of
from txrocketmq.broker.kernel.signatures import SigningAccounts
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.packed import FoundRecords
from txrocketmq.remoting import formats as wire
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed, picked

MOST_PLACES: Final = 4_096
"""How many places are kept; no other is learned then."""
MOST_COPIED_BYTES: Final = 64 * 1024
"""Records that lie apart are copied behind the head if they have no more bytes than this."""
COPIED_BYTES: Final = 4 * 1024
"""Those that lie together are copied if they have no more than this."""
_HEAD: Final = picked(record.RECORD_HEAD, "total_size", "magic", "physical_offset")
_UNIT: Final = fixed(formats.CONSUME_QUEUE_UNIT).struct
_PREFIX: Final = fixed(wire.FRAME_PREFIX).struct
_INT: Final = fixed(wire.BINARY_VALUE_LENGTH).struct
_HEADER_MASK: Final = 0xFFFFFF
_MOST_SIZE: Final = (1 << 31) - 2
_JSON_PIECES: Final = 5


class ReferencePulls:
    """The places of pulls that were learned."""

    def __init__(self) -> None:
        self._places: dict[tuple[Any, ...], tuple[int, int | None]] = {}
        """The number of each place, and that of who signs its pulls."""
        self._accounts = SigningAccounts()

    def add_account(self, key: bytes) -> int:
        """Adds an account by its secret, as HMAC uses it; returns its number."""
        return self._accounts.add(key)

    def wipe(self) -> None:
        """Forgets all places and accounts."""
        self._places.clear()
        self._accounts.wipe()

    def learn(self, kind: int, header: bytes, origin: int, account: int | None) -> int | None:
        """Learns the place of a header; returns its number, which is the next one or a known one.

        None if such headers cannot be told from others, or if there are MOST_PLACES.
        """
        holes = pull_holes_of(kind, header)
        if holes is None or not self._accounts.may_learn(holes.signed, origin, account):
            return None
        key = origin, *holes.key
        if key not in self._places and len(self._places) >= MOST_PLACES:
            return None
        return self._places.setdefault(key, (len(self._places), account))[0]

    def take(self, data: bytes, at: int, origin: int) -> tuple[int, int, int, int, int] | None:
        """Takes the pull from an origin that begins at a place: where it goes, where it ends, its
        opaque, where in the queue it begins, and how far its group has come. None if something else
        begins there.
        """
        if len(data) - at < _PREFIX.size:
            return None
        length, mark = _PREFIX.unpack_from(data, at)
        header_at, end = at + _PREFIX.size, at + 4 + length
        if end > len(data) or header_at + (mark & _HEADER_MASK) != end:
            return None
        holes = pull_holes_of(mark >> 24, data[header_at:end])
        place = None if holes is None else self._places.get((origin, *holes.key))
        if holes is None or place is None:
            return None
        number, account = place
        if not self._accounts.accepts(holes.signed, account, b""):
            return None
        return number, end, holes.opaque, holes.queue_offset, holes.commit_offset


def pull_answer(  # noqa: PLR0913, PLR0917 - as in the compiled form
    units: memoryview, log: memoryview, from_offset: int, end: int, least: int, magic: int,
    most: int, most_bytes: int, pieces: list[bytes], opaque: int, offsets: tuple[int, int, int], /,
) -> FoundRecords | None:  # fmt: skip
    """Answers a pull by the records that the units of a queue name: see PullAnswer.

    Raises ValueError if the pieces are of no known form, or if the file is not so long.
    """
    if len(pieces) not in {_JSON_PIECES, _JSON_PIECES + 1} or not 0 <= end <= len(log):
        raise ValueError("there have to be 5 or 6 pieces, and a file that is so long")
    if not len(units) or len(units) % _UNIT.size:
        return None
    count = size_bytes = 0
    is_full = False
    places: list[tuple[int, int]] = []
    for start, size, _ in _UNIT.iter_unpack(units):
        if start < least or not _HEAD.size <= size <= _MOST_SIZE:
            return None
        is_full = is_full or (count > 0 and (count >= most or size_bytes + size > most_bytes))
        if is_full:
            continue
        at = start - from_offset
        if (
            at < 0
            or at + size > end
            or _HEAD.unpack_from(log, at) != (size, magic, start)
            or not log[at + size - 1]
        ):
            return None
        count, size_bytes = count + 1, size_bytes + size
        if places and places[-1][1] == at:
            places[-1] = places[-1][0], at + size
        else:
            places.append((at, at + size))
    first, least_offset, end_offset = offsets
    head = _head(pieces, opaque, (first + count, least_offset, end_offset), size_bytes)
    if head is None:
        return None
    if size_bytes > (MOST_COPIED_BYTES if len(places) > 1 else COPIED_BYTES):
        return count, size_bytes, head, places
    whole = b"".join([head, *(log[begin:stop] for begin, stop in places)])
    return count, size_bytes, whole, []


def _head(
    pieces: list[bytes], opaque: int, offsets: tuple[int, int, int], size_bytes: int
) -> bytes | None:
    """The head of an answer; None if its frame would be too long."""
    values = [b"%d" % offset for offset in offsets]
    kind = SerializeType.JSON if len(pieces) == _JSON_PIECES else SerializeType.ROCKETMQ
    if kind == SerializeType.JSON:
        header = b"".join(_around(pieces, [*values, b"%d" % opaque]))
    else:
        before, between, *names, behind = pieces
        fields = b"".join(
            [
                name + _INT.pack(len(value)) + value
                for name, value in zip(names, values, strict=True)
            ]
        )
        fields += behind
        header = b"".join([before, _INT.pack(opaque), between, _INT.pack(len(fields)), fields])
    length = 4 + len(header) + size_bytes
    if length > wire.MAX_FRAME_BYTES - 4:
        return None
    return _PREFIX.pack(length, kind << 24 | len(header)) + header


def _around(pieces: list[bytes], values: list[bytes]) -> Iterator[bytes]:
    for piece, value in zip(pieces, values, strict=False):
        yield piece
        yield value
    yield pieces[-1]
