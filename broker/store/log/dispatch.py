# SPDX-License-Identifier: Apache-2.0
"""Derives units of queues and items of the index from records, by a list of dispatchers.

Whoever writes records, or reads them back from the log, says what follows from them; a list of
dispatchers then brings each structure up to date. The encoder of the log says it while encoding
(encode.py), reput finds it in the records (reput.py), and a property test checks that both are
equal. Which records are shown at all is decided in visibility.py.

Java: CommitLogDispatcher, CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex,
DispatchRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.packed_queue import append_all

Units: TypeAlias = tuple[ConsumeQueue, int, list[int]]
"""Consecutive units: their queue, the offset of the first one in it, and their fields (log offset,
size in bytes, tags code), one message after the other. The further messages of a batch have zeros:
see batch_queue.py."""


class Following(Protocol):
    """What follows from the records between two offsets of the log.

    `units` has the units of the queues in the order of the log, `copies` those of light queues,
    which name the same messages once more, `entries` what is to be indexed, and `stored_ms` is when
    the last of the records was stored.
    """

    start_offset: int
    end_offset: int
    stored_ms: int
    units: list[Units]
    copies: list[Units]
    entries: list[IndexEntry]


class Dispatcher(Protocol):
    """Brings one structure up to date; if it gets the same records again, nothing changes.

    Raises OSError when the disk has no room. It gets the records again later.
    """

    def __call__(self, following: Following) -> None: ...


class Dispatchers:
    """The list of dispatchers, for all that dispatches: what is brought up to date, in order.

    `index_from` is where the index continues: messages before it are indexed.
    """

    def __init__(self, config: StoreConfig, index: Index) -> None:
        self.index = index
        self.index_from = 0
        self.in_order: Sequence[Dispatcher] = (self.entries, dispatch_units)
        self._config = config

    def __call__(self, following: Following) -> None:
        """Gives it to each of them."""
        for dispatcher in self.in_order:
            dispatcher(following)

    def entries(self, following: Following) -> None:
        """Gives the index the entries that it does not have yet."""
        if not self._config.message_index_enable or self.index_from >= following.end_offset:
            return
        entries = following.entries
        if self.index_from > following.start_offset:
            entries = [entry for entry in entries if entry[4] >= self.index_from]
        self.index.pending.add(entries)
        self.index_from = following.end_offset


def dispatch_units(following: Following) -> None:
    """Writes the units into their queues, and then those of light queues into these."""
    if type(following) is PackedRun:
        append_all(following.units, following.stored_ms)
        return
    _dispatch_all(following.units, following.stored_ms)
    if following.copies:
        _dispatch_all(following.copies, following.stored_ms)


def _dispatch_all(rows: list[Units], stored_ms: int) -> None:
    for queue, first_offset, units in rows:
        if first_offset == queue.max_offset and units[0] >= queue.max_physical_offset:
            queue.append(units, stored_ms)
            continue
        # Some units exist already, or some before them are missing.
        queue.dispatch_all(first_offset, units, stored_ms)
