# SPDX-License-Identifier: Apache-2.0
"""Where the log of a store ends, while a broker may be writing it.

Files are made at full size, so their length tells nothing. The newest unit of the consume queues
names a record that was complete when it was dispatched; from there the log is walked on. Without
queues the walk begins at the last file that holds anything. The last record counts only if it
matches its CRC, since a record that is being written already has its head.

What the broker itself would cut off at its next start does not count: with queues the log ends at
the first place after the last dispatched record where no record is. Without queues damage cannot be
told from the end, so whole records after it count.

Java: DefaultMessageStore.recover, CommitLog.recoverNormally and recoverAbnormally.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.threads import asked
from txrocketmq.spark.arrow.walk import Buffer, Stop, walk
from txrocketmq.spark.log.boundaries import next_record
from txrocketmq.spark.log.resync import whole_bytes
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.store import Segment, Store

_WINDOW_BYTES: Final = 8 << 20
_FIRST_REMOTE_WINDOW_BYTES: Final = 256 << 10
"""The first read from a remote log; each next one is twice as large."""
_MOST_QUEUES: Final = 4096
_ASKED_AT_ONCE: Final = 8
"""The number of queues of a remote store that are asked at once."""
_NEAR_BYTES: Final = 1 << 20
"""A remote log is walked over this distance, rather than that one more queue is asked."""
_FREE_ROUNDS: Final = 16
_ROUND_BYTES: Final = 8 << 20
"""After so many rounds of questions, each next one has to spare so much more of the walk."""
_PROBE_BYTES: Final = 64 << 10
_PROBED_BYTES: Final = 4096
"""Bytes that are read at each probed place, of which there is one every _PROBE_BYTES."""
_MOST_VERIFIED: Final = 16
_HEAD_BYTES: Final = 64
"""Enough of a record to recognize it: its offset and both times."""
_MOST_KNOWN: Final = 64


class TailRecord(NamedTuple):
    """The last record that was found: where it starts, and its first bytes."""

    start: int
    head: bytes


_known: dict[str, TailRecord] = {}
"""The last record found, by store: a stream asks again and again, and goes on from there."""


def end_of_log(store: Store) -> int:
    """Returns the offset after the last whole record; the log's first offset if there is none.

    A damaged record that a queue names counts as well, since it has to be reported and not ignored.
    """
    store = store.at_once()
    segments = store.segments()
    if not segments:
        return 0
    key = _key(store)
    known = _known.get(key)
    is_known = known is not None and _is_still(store, segments, known)
    dispatched = [] if is_known else newest_units(store)
    start = known.start if known and is_known else _start(store, segments, dispatched)
    starts, end, reason = _walked(store, segments, start)
    is_torn = reason in (Stop.BAD, Stop.PARTIAL)
    while starts and not _is_whole(store, starts[-1]):
        end = starts.pop()
        is_torn = True
    if starts:
        _keep(key, TailRecord(starts[-1], store.read(starts[-1], _HEAD_BYTES)))
    if is_known and is_torn:
        dispatched = newest_units(store)
    for place, size in dispatched:
        if (
            segments[0].first_offset <= place
            and place + size > end
            and _is_written(store, place, size)
        ):
            return place + size
    return end


def last_record(store: Store) -> TailRecord | None:
    """Returns the last record that `end_of_log` has found in this process."""
    return _known.get(_key(store))


def remember(store: Store, last: TailRecord | None) -> None:
    """Lets `end_of_log` go on from a record that it has found in another process."""
    if last is not None and _key(store) not in _known:
        _keep(_key(store), last)


def _key(store: Store) -> str:
    return f"{store.uri}\0{store.files}"


def _keep(key: str, last: TailRecord) -> None:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = last


def _is_whole(store: Store, place: int) -> bool:
    """Returns whether the last record is complete, and not only begun.

    The CRC covers only the body. A zero byte in topic or properties means that they are not written
    yet; such a record counts when a queue names it, when others follow, or when the broker has
    ended.
    """
    message = store.message_at(place)
    if message is None:
        return False
    data = store.read(place, message.store_size)
    one = Records(np.frombuffer(data, np.uint8), np.zeros(1, np.int64), place)
    topic_at, length = int(one.topic_at[0]), int(one.topic_length[0])
    texts = data[topic_at : topic_at + length] + data[int(one.properties_at[0]) :]
    if message.topic and 0 not in texts:
        return True
    return store.queue_kind != "files" and not store.files.exists(f"{store.path}/abort")


def _is_written(store: Store, place: int, size: int) -> bool:
    segment = store.segment_of(place)
    if segment is None or place + size > segment.end:
        return False
    return any(store.read(place, min(size, _HEAD_BYTES)))


def _start(store: Store, segments: list[Segment], dispatched: list[tuple[int, int]]) -> int:
    """Returns a place at which a record is known to begin, as late as can be told cheaply."""
    first, last = segments[0].first_offset, segments[-1].end
    for place, _ in dispatched[:_MOST_VERIFIED]:
        if first <= place < last and store.message_at(place) is not None:
            return place
    for segment in reversed(segments):
        if any(store.read(segment.first_offset, 8)):
            return segment.first_offset
    return first


def _is_still(store: Store, segments: list[Segment], known: TailRecord) -> bool:
    """Returns whether the known record is still there; a slave's log may have been written anew."""
    if not segments[0].first_offset <= known.start < segments[-1].end:
        return False
    try:
        return store.read(known.start, _HEAD_BYTES) == known.head
    except FileNotFoundError:
        return False


def newest_units(store: Store) -> list[tuple[int, int]]:
    """Returns start and size of the last records of queues, the newest first.

    If there are very many queues, or the store is remote, only some queues are asked. In a remote
    store they are as many as it takes to come near the end.
    """
    queues = store.queues()
    if store.files.is_remote:
        return _newest_remote(store, queues)
    step = -(-len(queues) // _MOST_QUEUES) or 1
    return _places(queue.last_unit() for queue in queues[::step])


def _newest_remote(store: Store, queues: Sequence[Queue]) -> list[tuple[int, int]]:
    about = _about_end(store)
    step = -(-len(queues) // _ASKED_AT_ONCE) or 1
    found: list[tuple[int, int]] = []
    for first in range(step):
        some = queues[first::step]
        found += _places(asked(lambda each: each.last_unit(about), some, is_remote=True))
        newest = max(found)[0] if found else store.min_offset()
        if about - newest <= _NEAR_BYTES + max(0, first - _FREE_ROUNDS) * _ROUND_BYTES:
            break
    return sorted(found, reverse=True)


def _places(units: Iterable[NDArray[Any] | None]) -> list[tuple[int, int]]:
    found = [
        (int(unit["physical_offset"][0]), int(unit["size"][0]))
        for unit in units
        if unit is not None
    ]
    return sorted(found, reverse=True)


def _about_end(store: Store) -> int:
    """Returns a hint of where the log ends: probes after it found nothing but zeros."""
    for segment in reversed(store.segments()):
        places = range(segment.first_offset, segment.end, _PROBE_BYTES)
        # Bisects for the first probe that reads zeros; all later ones do, too.
        count = bisect_left(places, True, key=lambda at: not any(store.read(at, _PROBED_BYTES)))  # noqa: FBT003
        if count:
            return min(segment.first_offset + count * _PROBE_BYTES, segment.end)
    return store.min_offset()


def _walked(store: Store, segments: list[Segment], start: int) -> tuple[list[int], int, Stop]:
    """Returns starts of the last records from `start` on, their end, and why the walk ended."""
    starts: list[int] = []
    end = start
    reason = Stop.END
    for segment in segments:
        if segment.end <= start:
            continue
        if segment.first_offset > start and not _begins(store, segment):
            break
        for found, stop, why in _steps(store, segment, max(start, segment.first_offset)):
            reason = why
            if len(found):
                # Keeps all records of the last step that had any, to find a whole one among them.
                starts, end = found.tolist(), stop
        if reason is not Stop.BLANK:
            break
    return starts, end, reason


def _begins(store: Store, segment: Segment) -> bool:
    """Returns whether the file was written to: brokers make the next file ahead of time."""
    try:
        return any(store.read(segment.first_offset, 8))
    except FileNotFoundError:
        return False


def _steps(
    store: Store, segment: Segment, at: int
) -> Iterator[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int, Stop]]:
    """Walks a file from a boundary on; yields offsets of records, where they end, and why."""
    data = np.empty(_WINDOW_BYTES, np.uint8)
    window = _FIRST_REMOTE_WINDOW_BYTES if store.files.is_remote else _WINDOW_BYTES
    while at < segment.end:
        asked = min(window, segment.end - at)
        window = min(2 * window, len(data))
        buffer = _read(store, segment, at, data[:asked])
        found = walk(buffer, at)
        yield found.starts + at, at + found.stop, found.reason
        at += found.stop
        if len(buffer) < asked:
            return  # the file is gone, or shorter than it was
        if found.reason is Stop.END:
            continue
        is_partial = found.reason is Stop.PARTIAL
        rest, room = buffer[found.stop :], segment.end - at
        longer = whole_bytes(rest, room, store.max_record_bytes) if is_partial else 0
        if longer:
            data = data if longer <= len(data) else np.empty(longer, np.uint8)
            window = max(window, longer)
            continue
        is_damage = found.reason is Stop.BAD or (is_partial and _is_full(store, segment))
        if not is_damage or store.queue_kind == "files":
            return
        place = next_record(store, segment, at)
        if place is None:
            return
        at = place


def _is_full(store: Store, segment: Segment) -> bool:
    """Returns whether the file has its full size; a file of a copy may be cut off anywhere."""
    others = [each.size for each in store.segments() if each != segment]
    return bool(others) and segment.size >= max(others)


def _read(store: Store, segment: Segment, at: int, data: Buffer) -> Buffer:
    try:
        got = store.files.read_into(segment.path, at - segment.first_offset, data.data)
    except FileNotFoundError:
        got = 0
    return data[:got]
