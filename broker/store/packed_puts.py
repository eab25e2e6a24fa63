# SPDX-License-Identifier: Apache-2.0
"""Puts runs of sends that a kernel took from the bytes of a read: see formats/packed.py.

It is a part of the store (message_store.py), which puts all other messages; what follows from both
is dispatched in the same way.

Java: has no counterpart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.packed import PackedRows, SendRun
from txrocketmq.broker.store.get.stored_messages import StoredMessages
from txrocketmq.broker.store.index.packed_index import RunEntries
from txrocketmq.broker.store.log.commit_point import CommitPoint
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.queues.packed_queue import PackedQueue
from txrocketmq.broker.store.upkeep.flush import Flush
from txrocketmq.broker.store.upkeep.record_dispatch import Confirmed

INDEX_BATCH: Final = 256
"""How many entries are collected before the index is written."""
_NS_PER_MS: Final = 1_000_000


class PackedPuts(StoredMessages, ABC):
    """The part of a store that puts them; without `new_rows`, which makes the rows of a kernel, it
    puts none.
    """

    flush: Flush
    commit: CommitPoint
    _confirmed: Confirmed
    _put_error: OSError | None

    def __init__(
        self, config: StoreConfig, files: Files, new_rows: Callable[[], PackedRows] | None
    ) -> None:
        super().__init__(config, files, new_rows)
        self._new_rows = new_rows

    @property
    @abstractmethod
    def writeable(self) -> bool:
        """Whether messages can be put."""

    @abstractmethod
    def _write_index(self, now_ms: int) -> None:
        """Writes what waits for the index."""

    def append_run(
        self, run: SendRun, table: object, born: bytes, host: bytes, now_ms: int
    ) -> PackedRun | None:
        """Stores a run of sends that a kernel took from the bytes of a read.

        `born` and `host` are the addresses of the sender and of the broker, packed. All messages
        are stored, with all that `append` does; or none, and None is returned: then the same sends
        have to come one by one, and are stored or refused as such.
        """
        started_ns = perf_counter_ns()
        if self._new_rows is None or not self.writeable:
            return None
        flush, index = self.flush, self._index
        rows = self._new_rows() if self.config.message_index_enable else None
        try:
            if now_ms < flush.log_timestamp_ms:
                flush.clock_set_back(now_ms)
            packed = self._log.append_run(run, table, born, host, now_ms, rows)
        except Exception:  # noqa: BLE001 - nothing is stored, and whoever puts them one by one hears why
            return None
        if packed is None:
            return None
        messages = run.messages
        packed.entries = range(messages) if rows is None else RunEntries(rows, messages)
        self._put_error = None
        confirmed = self._confirmed
        flush.log_timestamp_ms = now_ms
        self.commit.written = packed.end_offset
        confirmed.add(packed)
        flush.queues_timestamp_ms = confirmed.shown_ms
        if index.pending.count >= INDEX_BATCH:
            self._write_index(now_ms)
        elapsed_ms = (perf_counter_ns() - started_ns) // _NS_PER_MS
        self.stats.put(messages, run.size_bytes, 0, elapsed_ms)
        return packed

    def packed_queue(self, topic: str, queue_id: int) -> PackedQueue | None:
        """The queue for runs of a kernel; None if there is none, or not one of plain units."""
        queue = self._queues.plain.get(topic, {}).get(queue_id)
        if queue is None or queue.is_light or queue.ext is not None:
            return None
        return PackedQueue(queue)

    @property
    def queues_given_up(self) -> int:
        """How many queues were given up: after that, a PackedQueue may be one of them."""
        return self._queues.given_up
