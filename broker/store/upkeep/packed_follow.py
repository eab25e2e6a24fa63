# SPDX-License-Identifier: Apache-2.0
"""Finds with the compiled kernel what follows from usual records, many at a time.

Usual are records with plain properties, one unit each, and queues of plain units. What follows
from all others is found by Reput.follow, which is the reference, and finds the same for these. So
a slave keeps up with a master whose sends go through the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.index.packed_index import RunEntries
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.packed_queue import PackedQueue
from txrocketmq.remoting.process.compiled_kernel import wanted_kernel


class PackedFollow:
    """Finds it. `follow` is the kernel's, `new_rows` makes its rows, if there is an index."""

    def __init__(
        self,
        follow: Callable[..., Any],
        new_rows: Callable[[], Any] | None,
        queues: ConsumeQueues,
    ) -> None:
        self._follow = follow
        self._new_rows = new_rows
        self._queues = queues
        self._queue_of: dict[tuple[bytes, int], PackedQueue | None] = {}

    def __call__(self, file: MappedFile, offset: int, end: int) -> PackedRun | None:
        """Returns what follows from the records from this log offset on, up to a position in their
        file; None if it has to be found otherwise, for a first record that is unusual.
        """
        rows = None if self._new_rows is None else self._new_rows()
        from_offset = file.from_offset
        try:
            position, count, stored_ms, units = self._follow(
                file.view, from_offset, offset - from_offset, end, rows
            )
        except RuntimeError:  # the compiled form has failed
            return None
        found = []
        for topic, queue_id, first, packed in units:
            queue = self._queue(topic, queue_id)
            if queue is None:
                return None
            found.append((queue, first, packed))
        following = PackedRun(offset, from_offset + position, stored_ms, [])
        following.units = found
        following.entries = range(count) if rows is None else RunEntries(rows, count)
        return following if count else None

    def _queue(self, topic: bytes, queue_id: int) -> PackedQueue | None:
        """The queue, if its units are plain."""
        key = topic, queue_id
        if key not in self._queue_of:
            self._queue_of[key] = self._plain(topic.decode(), queue_id)
        return self._queue_of[key]

    def _plain(self, topic: str, queue_id: int) -> PackedQueue | None:
        try:
            queue = self._queues.open(topic, queue_id)
        except ValueError:
            return None
        if queue.is_batch or queue.is_light or queue.ext is not None:
            return None
        return PackedQueue(queue)


def packed_follow(new_rows: Callable[[], Any] | None, queues: ConsumeQueues) -> PackedFollow | None:
    """Makes it for one run of reput; None without the compiled kernel, whose rows these are."""
    kernel = wanted_kernel()
    if kernel is None or new_rows not in (None, kernel.Rows):
        return None
    return PackedFollow(kernel.follow, new_rows, queues)
