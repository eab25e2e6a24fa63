# SPDX-License-Identifier: Apache-2.0
"""How far the log has been written and synced, and what counts as confirmed.

The log has three marks: `written`, `durable` (its bytes survive the machine) and `replicated` (the
replicas have them). A `Policy` says which of them senders wait for and which of them consumers may
see; this is the only place where ASYNC_FLUSH differs from SYNC_FLUSH, and where waiting for
replicas goes. Whoever waits has a `Ticket`; all tickets that a mark passes are answered at once.

Java: CommitLog.handleDiskFlushAndHA, GroupCommitService, MessageStore.getConfirmOffset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from txrocketmq.broker.store.config import SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.put_message import PutStatus


class Marks(Protocol):
    """What a policy decides by: offsets of the log."""

    @property
    def written(self) -> int:
        """The log is written up to there."""

    @property
    def durable(self) -> int:
        """The log survives a loss of power up to there."""

    @property
    def replicated(self) -> int:
        """Notes that the required replicas have the log up to there."""


class Policy(Protocol):
    """What is confirmed."""

    @property
    def timeout_ms(self) -> int:
        """How long a sender waits."""

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        """What a sender is told at once, whose messages end there; None when he has to wait.

        Only senders that want to wait are asked about (the property WAIT).
        """

    def reached(self, marks: Marks) -> int:
        """Senders who wait for what ends up to there are told PUT_OK."""

    def late(self, marks: Marks, end_offset: int) -> PutStatus:
        """The answer to a sender whose time is up."""

    def visible(self, marks: Marks) -> int:
        """Consumers see messages up to there."""


class AsyncFlush:
    """What is written is confirmed."""

    timeout_ms = 0

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        return PutStatus.PUT_OK

    def reached(self, marks: Marks) -> int:
        return marks.written

    def late(self, marks: Marks, end_offset: int) -> PutStatus:
        return PutStatus.PUT_OK

    def visible(self, marks: Marks) -> int:
        return marks.written


class SyncFlush:
    """What is durable is confirmed; consumers see all with readUnCommitted."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config

    @property
    def timeout_ms(self) -> int:
        return self._config.sync_flush_timeout

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        return PutStatus.PUT_OK if end_offset <= marks.durable else None

    def reached(self, marks: Marks) -> int:
        return marks.durable

    def late(self, marks: Marks, end_offset: int) -> PutStatus:
        return PutStatus.FLUSH_DISK_TIMEOUT

    def visible(self, marks: Marks) -> int:
        return marks.written if self._config.read_un_committed else marks.durable


def policy_of(config: StoreConfig) -> Policy:
    """What the settings want."""
    if config.flush_disk_type == SYNC_FLUSH:
        return SyncFlush(config)
    return AsyncFlush()


class Ticket:
    """Somebody who waits for the log to be confirmed up to an offset."""

    __slots__ = ("_listener", "deadline_ms", "end_offset", "outcome")

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.deadline_ms: int | None = None
        """Set when the time is next looked at, so that whoever waits need not know it."""
        self.outcome: PutStatus | None = None
        self._listener: Callable[[PutStatus], None] | None = None

    def then(self, listener: Callable[[PutStatus], None]) -> None:
        """Calls the listener once, now or later, with what became of the messages."""
        self._listener = listener
        if self.outcome is not None:
            listener(self.outcome)

    def resolve(self, outcome: PutStatus) -> None:
        """Gives the outcome."""
        self.outcome = outcome
        if self._listener is not None:
            self._listener(outcome)


class CommitPoint:
    """The marks of a log and those who wait for them; see the module.

    Each of `on_demand` is called when somebody begins to wait and nobody did before: one of them
    has to see to it that the marks move.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.written = 0
        """The log is written up to there."""
        self.durable = 0
        self.replicated = 0
        self.on_demand: list[Callable[[], None]] = []
        self._waiting: deque[Ticket] = deque()

    @property
    def visible(self) -> int:
        """Consumers see messages up to there."""
        return self.policy.visible(self)

    @property
    def is_wanted(self) -> bool:
        """Whether any sender waits."""
        return bool(self._waiting)

    def outcome(self, end_offset: int) -> PutStatus | Ticket:
        """What became of messages that end there, for a sender who waits, or a ticket for it."""
        status = self.policy.waits(self, end_offset)
        if status is not None:
            return status
        ticket = Ticket(end_offset)
        was_wanted = bool(self._waiting)
        self._waiting.append(ticket)
        if not was_wanted:
            for heard in self.on_demand:
                heard()
        return ticket

    def moved(self) -> None:
        """Notifies those who waited for a mark that has moved."""
        reached = self.policy.reached(self)
        while self._waiting and self._waiting[0].end_offset <= reached:
            self._waiting.popleft().resolve(PutStatus.PUT_OK)

    def expire(self, steady_ms: int) -> None:
        """Tells those whose time is up; to be called every second or so, by a steady clock."""
        for ticket in reversed(self._waiting):
            if ticket.deadline_ms is not None:
                break
            ticket.deadline_ms = steady_ms + self.policy.timeout_ms
        while self._waiting and (self._waiting[0].deadline_ms or steady_ms) <= steady_ms:
            ticket = self._waiting.popleft()
            ticket.resolve(self.policy.late(self, ticket.end_offset))
