# SPDX-License-Identifier: Apache-2.0
"""What follows from records that were read back from the log.

Java: DispatchRequest.
"""

from __future__ import annotations

from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.log.dispatch import Units
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue


class RecordsFollowing:
    """The consequences of records that lie one after the other; see dispatch.Following."""

    __slots__ = ("copies", "end_offset", "entries", "start_offset", "stored_ms", "units")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.stored_ms = 0
        self.units: list[Units] = []
        self.copies: list[Units] = []
        self.entries: list[IndexEntry] = []

    def queues(self) -> list[ConsumeQueue]:
        """The queues that get units."""
        return [queue for queue, _, _ in self.units + self.copies]
