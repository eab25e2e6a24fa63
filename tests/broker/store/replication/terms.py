# SPDX-License-Identifier: Apache-2.0
"""A log of a master with epochs, the feeds of its slaves, and what these report."""

from __future__ import annotations

from typing import Any

from tests.broker.store.replication.test_feed import FILE_BYTES, Log
from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.replication.epochs import Epoch, EpochTable
from txrocketmq.broker.store.replication.in_sync import BrokersInSync
from txrocketmq.broker.store.replication.term_feed import TermFeed
from txrocketmq.broker.store.replication.term_frames import (
    GREETING_CODEC,
    HANDSHAKE,
    STATED_REPORT_CODEC,
    TRANSFER,
)

EPOCHS = [Epoch(1, 0), Epoch(3, 6_000)]


def greeting(broker_id: int, last_only: int = 0, learner: int = 0) -> bytes:
    return GREETING_CODEC.pack(HANDSHAKE, last_only, learner, broker_id)


def report(offset: int) -> bytes:
    return STATED_REPORT_CODEC.pack(TRANSFER, offset)


class Mastery:
    """A master with the id 1."""

    def __init__(self, start: int = 0, end: int = 10_000, **settings: Any) -> None:
        self.log = Log(start, end)
        settings = {
            "mapped_file_size_commit_log": FILE_BYTES,
            "broker_role": "SYNC_MASTER",
            **settings,
        }
        self.config = StoreConfig(**settings)
        self.epochs = EpochTable(MemoryFiles(), "/epochs")
        for each in EPOCHS:
            self.epochs.begin(each)
        self.brokers = BrokersInSync(
            self.config, self.epochs, lambda: self.log.max_physical_offset, 1
        )

    def feed(self, steady_ms: int = 0) -> TermFeed:
        made = self.brokers.new_feed(self.log, "10.0.0.1:5", steady_ms)
        assert isinstance(made, TermFeed)
        return made

    def slave(self, broker_id: int, steady_ms: int = 0, **flags: int) -> TermFeed:
        """One that has all of the log."""
        made = self.feed(steady_ms)
        made.reported(greeting(broker_id, **flags), steady_ms)
        made.sent(len(b"".join(made.pieces(0, steady_ms))), steady_ms)
        made.reported(report(self.log.max_physical_offset), steady_ms)
        return made
