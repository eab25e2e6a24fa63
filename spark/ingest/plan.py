# SPDX-License-Identifier: Apache-2.0
"""What a run takes, from what the table has and what the stores have. Pure.

A split ends where a file of the log ends, so that no task has to look for the start of a record;
smaller ones only when asked for. What is gone before it was taken is an error unless accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from txrocketmq.spark.errors import DataLossError, StoreError
from txrocketmq.spark.ingest.documents import Lost, Plan, Position, Split


class StoreBounds(NamedTuple):
    """What a store has at a moment."""

    uri: str
    broker_name: str
    start: int
    """The first offset that is there."""
    end: int
    """End of the last whole record."""
    segment_starts: Sequence[int]
    """First offsets of the files of the log, ascending."""


class Wishes(NamedTuple):
    """How a run is cut."""

    split_bytes: int | None = None
    """Cut files of the log further, to about this size."""
    max_bytes: int | None = None
    """Take about so much of each broker's log and leave the rest to the next run."""
    allow_data_loss: bool = False
    check_crc: bool = False


def plan_run(
    run: int,
    plan_id: str,
    now_ms: int,
    stores: Sequence[StoreBounds],
    positions: Mapping[str, Position],
    wishes: Wishes,
) -> Plan | None:
    """The plan of a run; None when nothing is new. StoreError, DataLossError: see `_start`."""
    splits: list[Split] = []
    lost: list[Lost] = []
    ends: dict[str, Position] = {}
    for store in stores:
        start = _start(store, positions.get(store.broker_name), lost, wishes)
        end = _end(store, start, wishes.max_bytes)
        if end > start:
            splits += _splits(store, start, end, wishes.split_bytes)
        if end > start or (lost and lost[-1].broker_name == store.broker_name):
            ends[store.broker_name] = Position(end)
    if not ends:
        return None
    return Plan(run, plan_id, now_ms, tuple(splits), ends, tuple(lost), wishes.check_crc)


def _start(store: StoreBounds, position: Position | None, lost: list[Lost], wishes: Wishes) -> int:
    """Where to go on. StoreError when the log is another one, DataLossError when a part is gone."""
    if position is None:
        return store.start
    if position.next > store.end:
        raise StoreError(
            f"the log of {store.broker_name} in {store.uri} ends at {store.end}, but the table has"
            f" it up to {position.next}: it is another broker's store, or was cut and rewritten;"
            " write it to another table"
        )
    if position.next >= store.start:
        return position.next
    gone = Lost(store.broker_name, position.next, store.start)
    if not wishes.allow_data_loss:
        raise DataLossError(
            f"the log of {store.broker_name} in {store.uri} begins at {store.start}, but the table"
            f" has it only up to {position.next}: {gone.end - gone.start} bytes were deleted before"
            " they were taken; --allow-data-loss goes on without them"
        )
    lost.append(gone)
    return store.start


def _end(store: StoreBounds, start: int, max_bytes: int | None) -> int:
    """The end of the log, or of the last file within `max_bytes`, but at least of one file."""
    if max_bytes is None or store.end - start <= max_bytes:
        return store.end
    later = [each for each in store.segment_starts if start < each <= store.end]
    within = [each for each in later if each - start <= max_bytes]
    return within[-1] if within else later[0] if later else store.end


def _splits(store: StoreBounds, start: int, end: int, split_bytes: int | None) -> Iterator[Split]:
    inside = [each for each in store.segment_starts if start < each < end]
    for first, last in zip([start, *inside], [*inside, end], strict=True):
        for cut, until in _pieces(first, last, split_bytes):
            yield Split(store.broker_name, cut, until, cut == first)


def _pieces(first: int, last: int, split_bytes: int | None) -> Iterator[tuple[int, int]]:
    count = 1 if split_bytes is None else max(1, (last - first) // split_bytes)
    cuts = [first + (last - first) * number // count for number in range(count)]
    yield from zip(cuts, [*cuts[1:], last], strict=True)
