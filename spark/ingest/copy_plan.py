# SPDX-License-Identifier: Apache-2.0
"""Decides what a run copies, from what the table and the stores contain. It does no I/O.

A split ends where a file of the log ends, so that no task has to search for the start of a record;
it has several files if they are small, and smaller splits are made only on demand. Log that was
deleted before it was copied is an error unless the user accepts the loss. Offsets are bytes in the
broker's commit log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from txrocketmq.spark.arrow.errors import DataLossError, StoreError
from txrocketmq.spark.planning.split import even_parts, joined


class LostRange(NamedTuple):
    """A range of a broker's log that is gone, but should have been copied."""

    broker: str
    """Its cluster and name: `Store.key`, as in the other classes here."""
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.broker} [{self.start}, {self.end})"


class CopiedRange(NamedTuple):
    """How much of a broker's log is in the table."""

    next: int
    """The first offset that is not in the table."""
    fingerprint: str = ""
    """The fingerprint of the log before `next`; see `spark.fingerprint`."""
    start: int = 0
    """The first offset that is in the table."""


class IngestSplit(NamedTuple):
    """What one task takes: the records that start in [start, end)."""

    broker: str
    start: int
    end: int
    first_is_boundary: bool
    """Whether a record, or the blank that ends a file, is known to start at `start`."""

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run copies: the splits of one broker after the other, each log in its order."""

    splits: tuple[IngestSplit, ...]
    lost: tuple[LostRange, ...] = ()
    """Ranges that were gone before the run began, and whose loss was accepted."""

    @property
    def size_bytes(self) -> int:
        """The size of all splits, in bytes of log."""
        return sum(split.size_bytes for split in self.splits)


class StoreBounds(NamedTuple):
    """What a store has at one moment."""

    uri: str
    broker: str
    start: int
    """The first offset that is still there."""
    end: int
    """End of the last whole record."""
    segment_starts: Sequence[int]
    """The first offsets of the files of the log, ascending."""


class Wishes(NamedTuple):
    """How a run is to be divided and limited."""

    split_bytes: int | None = None
    """Files of the log are cut into splits of about this size; None: one split for each file, or
    for several small ones.
    """
    max_bytes: int | None = None
    """About so much of each broker's log is copied; the next run takes the rest. None: all."""
    allow_data_loss: bool = False
    check_crc: bool = False


def plan_run(
    stores: Sequence[StoreBounds], positions: Mapping[str, CopiedRange], wishes: Wishes
) -> Plan | None:
    """Returns the plan of a run; None when nothing is new. Raises StoreError, DataLossError."""
    splits: list[IngestSplit] = []
    lost: list[LostRange] = []
    for store in stores:
        start = _start(store, positions.get(store.broker), lost, wishes)
        end = _end(store, start, wishes.max_bytes)
        if end > start:
            splits += _splits(store, start, end, wishes.split_bytes)
    return Plan(tuple(splits), tuple(lost)) if splits or lost else None


def _start(
    store: StoreBounds, position: CopiedRange | None, lost: list[LostRange], wishes: Wishes
) -> int:
    """Returns where to go on. Raises StoreError for a changed log, DataLossError for lost parts."""
    if position is None:
        return store.start
    if position.next > store.end:
        raise StoreError(
            f"the log of {store.broker} in {store.uri} ends at {store.end}, but the table has"
            f" it up to {position.next}: it is another broker's store, or was cut and rewritten;"
            " write it to another table"
        )
    if position.next >= store.start:
        return position.next
    gone = LostRange(store.broker, position.next, store.start)
    if not wishes.allow_data_loss:
        raise DataLossError(
            f"the log of {store.broker} in {store.uri} begins at {store.start}, but the table"
            f" has it only up to {position.next}: {gone.end - gone.start} bytes were deleted before"
            " they were taken; with --allow-data-loss the run continues without them"
        )
    lost.append(gone)
    return store.start


def _end(store: StoreBounds, start: int, max_bytes: int | None) -> int:
    """Returns the log's end, or that of the last file within `max_bytes`, at least of one file."""
    if max_bytes is None or store.end - start <= max_bytes:
        return store.end
    later = [each for each in store.segment_starts if start < each <= store.end]
    within = [each for each in later if each - start <= max_bytes]
    return within[-1] if within else later[0] if later else store.end


def _splits(
    store: StoreBounds, start: int, end: int, split_bytes: int | None
) -> Iterator[IngestSplit]:
    inside = [each for each in store.segment_starts if start < each < end]
    files = zip([start, *inside], [*inside, end], strict=True)
    for first, last in joined(files, split_bytes):
        count = 1 if split_bytes is None else max(1, (last - first) // split_bytes)
        for cut, until in even_parts(first, last, count):
            yield IngestSplit(store.broker, cut, until, cut == first)
