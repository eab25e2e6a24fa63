# SPDX-License-Identifier: Apache-2.0
"""A master's side of one slave if there is a controller: as in plain mode, and a greeting before.

The slave says who it is, so that it can count as in sync, and is told the epochs of this log. Each
frame belongs to one epoch. How long ago the slave had all of the log is known by what the log ended
with when something was sent last.

Java: AutoSwitchHAConnection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.replication.epochs import Epoch, EpochTable
from txrocketmq.broker.store.replication.feed import Feed, Piece, SourceLog
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.term_frames import (
    MAX_STATED_BYTES,
    STATED_HEAD_CODEC,
    TRANSFER,
    Greeting,
    SlaveDecoder,
    welcome,
)

NOBODY: Final = -1


class TermFeed(Feed):
    """What one slave gets. `confirmed` returns up to where the log is confirmed."""

    def __init__(
        self,
        log: SourceLog,
        config: StoreConfig,
        address: str,
        steady_ms: int,
        epochs: EpochTable,
        confirmed: Callable[[], int],
    ) -> None:
        super().__init__(log, config, address, steady_ms)
        self._epochs = epochs
        self._confirmed = confirmed
        self._items = SlaveDecoder()
        self._greeting: Greeting | None = None
        self._welcome = b""
        self._mark: tuple[int, int] | None = None
        """Where the log ended when something was sent, and when that was."""
        self.caught_up_ms: int | None = None
        """When the slave had all of the log last; None before it has had it."""

    @property
    def broker_id(self) -> int:
        """The id of the slave; NOBODY before it has said it, and for one that only learns."""
        it = self._greeting
        return NOBODY if it is None or it.is_learner else it.broker_id

    @property
    def _from_last_file(self) -> bool:
        return self._greeting is not None and self._greeting.from_last_file

    def _last_report(self, data: bytes) -> int | None:
        last = None
        for item in self._items.items(data):
            if not isinstance(item, Greeting):
                last = item
            elif last is not None or self.next_offset >= 0:
                raise HaPeerError("it greets again, though it gets the log already")
            else:
                self._greeting = item
                self._welcome = welcome(self._log.max_physical_offset, [*self._epochs.entries])
                self.owes_welcome = True
        if last is not None and self._greeting is None:
            raise HaPeerError("it reports without having greeted")
        return last

    def reported(self, data: bytes, steady_ms: int) -> bool:
        """Takes bytes of the slave; returns whether it now has more or less of the log."""
        has_moved = super().reported(data, steady_ms)
        if self.acknowledged >= 0:
            if self.acknowledged == self._log.max_physical_offset:
                self.caught_up_ms, self._mark = steady_ms, None
            elif self._mark is not None and self.acknowledged >= self._mark[0]:
                self.caught_up_ms, self._mark = self._mark[1], None
        return has_moved

    def is_caught_up(self, steady_ms: int, most_ms: int) -> bool:
        """Whether the slave had all of the log at most so long ago."""
        if self.acknowledged >= self._log.max_physical_offset:
            self.caught_up_ms = steady_ms
        return self.caught_up_ms is not None and steady_ms - self.caught_up_ms <= most_ms

    def has_more(self) -> bool:
        """Whether there are bytes that could be sent now."""
        return bool(self._welcome) or super().has_more()

    def pieces(self, max_bytes: int, steady_ms: int) -> list[Piece]:
        """What is to be sent next."""
        if self._welcome:
            return [self._welcome]
        return super().pieces(max_bytes, steady_ms)

    def sent(self, count: int, steady_ms: int) -> None:
        """Hears how many bytes of what `pieces` has given out have left."""
        if self._welcome:
            self._welcome, self._wrote_ms = self._welcome[count:], steady_ms
            self.owes_welcome = bool(self._welcome)
            return
        before = self.next_offset
        super().sent(count, steady_ms)
        if self.next_offset != before and self._mark is None:
            self._mark = self._log.max_physical_offset, steady_ms

    def _head(self, offset: int, size: int) -> bytes:
        found = self._epochs.at(offset)
        epoch = Epoch(-1, 0) if found is None else found[0]
        if found is None and self._epochs.entries:
            epoch = self._epochs.entries[0]
        return STATED_HEAD_CODEC.pack(TRANSFER, size, offset, *epoch, self._confirmed())

    def _most(self, offset: int) -> int:
        found = self._epochs.at(offset)
        return MAX_STATED_BYTES if found is None else min(MAX_STATED_BYTES, found[1] - offset)
