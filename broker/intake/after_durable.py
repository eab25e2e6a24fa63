# SPDX-License-Identifier: Apache-2.0
"""Messages that end others, stored only when everything written before is durable.

A power cut may cost any page that was not synced, and spare the one behind it. A message that says
that another is done with, or was put elsewhere, must therefore not be durable before that other
one: it would end what nobody has. So it waits here, and who asks in between has to remember that it
is coming. What a crash costs here was not ended: it is done once more. That it may cost little, a
sync is wanted when the first has waited for `SYNC_MS`, however long flushIntervalCommitLog is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.store.put_message import PutMessage, PutStatus

MAX_WAITING: Final = 100_000
"""Messages that may wait before `is_full`: some seconds of what one thread can take."""
SYNC_MS: Final = 50
"""How soon a sync is wanted: a compromise between what a kill costs and many small syncs."""
MAX_BATCH: Final = 256
"""Messages that are put in one write, and in one turn of the reactor."""

Message = InnerMessage | PutMessage
Heard = Callable[[PutStatus], None]


class AfterDurable:
    """The messages that wait. `call_soon` calls a function in a later turn of the reactor."""

    def __init__(
        self,
        intake: Intake,
        clock: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._intake = intake
        self._store = intake.store
        self._now_ms = clock
        self._call_soon = call_soon
        self._waiting: deque[tuple[int, Message, Heard | None]] = deque()
        """Where the log has to be durable up to, the message, and who wants to hear of it."""
        self._is_called = False
        self._is_wanted = False
        self.on_wanted: list[Callable[[], object]] = []
        """Called when a sync is wanted within `SYNC_MS`, and not called again before it is done."""
        self._store.flush.on_durable.append(self._durable)

    def __len__(self) -> int:
        """How many messages wait."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether so many wait that nothing more should be begun: the disk does not keep up."""
        return len(self._waiting) >= MAX_WAITING

    def put(self, messages: Sequence[Message], heard: Heard | None = None) -> None:
        """Has messages put when the log is durable up to where it ends now.

        `heard` is called with what became of each, once it is put.
        """
        end = self._store.max_physical_offset
        self._waiting.extend((end, message, heard) for message in messages)
        self._want()

    def put_all(self) -> None:
        """Puts all that need not wait any more, here and now: the broker stops."""
        while self._put_some():
            pass

    def _want(self) -> None:
        if self._waiting and not self._is_wanted:
            self._is_wanted = True
            for heard in self.on_wanted:
                heard()

    def _durable(self) -> None:
        self._is_wanted = False
        self._begin()
        if self._waiting and self._waiting[-1][0] > self._store.flush.flushed_offset:
            self._want()

    def _begin(self) -> None:
        if not self._is_called and self._is_due():
            self._is_called = True
            self._call_soon(self._turn)

    def _is_due(self) -> bool:
        waiting = self._waiting
        return bool(waiting) and waiting[0][0] <= self._store.flush.flushed_offset

    def _turn(self) -> None:
        self._is_called = False
        if self._put_some():
            self._begin()

    def _put_some(self) -> bool:
        """Puts a batch; whether there was any."""
        batch: list[tuple[Message, Heard | None]] = []
        while len(batch) < MAX_BATCH and self._is_due():
            batch.append(self._waiting.popleft()[1:])
        if not batch:
            return False
        statuses = self._intake.take([message for message, _ in batch], self._now_ms())
        for (_, heard), status in zip(batch, statuses, strict=True):
            if heard is not None:
                heard(status)
        return True
