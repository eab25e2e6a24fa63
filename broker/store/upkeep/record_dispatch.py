# SPDX-License-Identifier: Apache-2.0
"""Dispatches confirmed records to the queues and the index, in their order.

What follows from records is dispatched when they are confirmed (commit_point.py); until then it is
kept in memory. When dispatching fails, or too much would have to be kept, reput does it from the
log before anything later is shown: what was acknowledged is never invisible.

Java: DefaultMessageStore.ReputMessageService, NotifyMessageArrivingListener.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Sized
from typing import Any, Final, NamedTuple, TypeAlias

from txrocketmq.broker.store.log.commit_point import CommitPoint
from txrocketmq.broker.store.log.dispatch import Dispatchers, Following
from txrocketmq.broker.store.upkeep.reput import ALL, Reput

Arrivals: TypeAlias = Sequence[tuple[Any, ...]]
"""Rows, each of which begins with a queue that has new messages."""
_MAX_UNSEEN: Final = 65_536
"""For how many messages to be indexed the consequences are kept in memory; reput does the rest."""


class ArrivalListener(NamedTuple):
    """A function that is called with new messages, and those who wait for them: it is called as
    long as there are any.
    """

    waiting: Sized
    arrived: Callable[[Arrivals], None]


class Confirmed:
    """Dispatches records.

    The listeners in `on_arrivals` are told of rows, each of which begins with a queue that has new
    messages.
    """

    def __init__(self, commit: CommitPoint, reput: Reput, dispatchers: Dispatchers) -> None:
        self.on_arrivals: list[ArrivalListener] = []
        self.most_records = ALL
        """About how many records are dispatched from the log at once."""
        self.shown_ms = 0
        """The store time of the newest message that is shown."""
        self._commit = commit
        self._reput = reput
        self._dispatchers = dispatchers
        self._unseen: deque[Following] = deque()
        """What follows from records that are not confirmed yet."""
        self._unseen_entries = 0
        self.add: Callable[[Following], None] = self._add
        """Dispatches what follows from records just written, as soon as they are confirmed."""

    def tell(self, listener: Callable[[], None] | None) -> None:
        """Has a function called whenever records were written, before they are dispatched, so that
        others have them meanwhile; without one nothing is paid.
        """
        if listener is None:
            self.add = self._add
            return
        heard = listener

        def add(following: Following) -> None:
            try:
                heard()
            finally:
                self._add(following)

        self.add = add

    def _add(self, following: Following) -> None:
        commit = self._commit
        if self._unseen or self._reput.offset < following.start_offset:
            self._keep(following)
            self.show()
        elif commit.policy.visible(commit) < following.end_offset:
            self._keep(following)
        elif not self._show(following):
            self.show()

    def show(self) -> None:
        """Dispatches what is confirmed and not dispatched yet."""
        visible = self._commit.visible
        while self._unseen and self._unseen[0].end_offset <= visible:
            following = self._unseen.popleft()
            self._unseen_entries -= len(following.entries)
            if following.start_offset > self._reput.offset:
                self._reput_until(following.start_offset)
            if not self._show(following):
                return
        if not self._unseen:
            self._unseen_entries = 0
            if self._reput.offset < visible:
                self._reput_until(visible)

    def _keep(self, following: Following) -> None:
        if self._unseen_entries <= _MAX_UNSEEN:
            self._unseen.append(following)
        self._unseen_entries += len(following.entries)

    def _show(self, following: Following) -> bool:
        """Dispatches what follows from some records; returns False if that failed."""
        reput = self._reput
        if reput.offset != following.start_offset:
            return reput.offset > following.start_offset  # then reput was quicker
        try:
            for dispatcher in self._dispatchers.in_order:
                dispatcher(following)
        except Exception:  # noqa: BLE001 - the records are in the log: reput does it again
            return False
        reput.offset = following.end_offset
        self.shown_ms = following.stored_ms
        rows = following.units + following.copies if following.copies else following.units
        self._arrived(rows)
        return True

    def _reput_until(self, end_offset: int) -> None:
        """Dispatches from the log what has not been dispatched up to this offset."""
        try:
            touched = self._reput.run(end_offset, self.most_records)
        except (OSError, MemoryError):
            # There is no room now: the next put, flush or tick dispatches the rest.
            return
        self.shown_ms = max(self.shown_ms, self._reput.stored_ms)
        self._arrived([(queue,) for queue in touched])

    def _arrived(self, rows: Arrivals) -> None:
        for waiting, arrived in self.on_arrivals:
            if waiting:
                arrived(rows)
