# SPDX-License-Identifier: Apache-2.0
"""How far the log has been written and synced, and what counts as confirmed.

The log has three marks: `written`, `durable` (its bytes survive a crash of the machine) and
`replicated` (the replicas have them). A `Policy` says which of them senders wait for and which of
them consumers may see; this is the only place where ASYNC_FLUSH differs from SYNC_FLUSH, and where
waiting for replicas belongs. A waiting sender has a `Ticket`; all tickets that a mark passes are
resolved at once.

Java: CommitLog.handleDiskFlushAndHA, GroupCommitService, MessageStore.getConfirmOffset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from txrocketmq.broker.store.formats.config import SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.primitives.listeners import tell_all


class Marks(Protocol):
    """The offsets of the log that a policy decides by."""

    @property
    def written(self) -> int:
        """The offset up to which the log is written."""

    @property
    def durable(self) -> int:
        """The offset up to which the log survives a loss of power."""

    @property
    def replicated(self) -> int:
        """The offset up to which the required replicas have the log."""


class Policy(Protocol):
    """Decides what is confirmed."""

    @property
    def timeout_ms(self) -> int:
        """How long a sender waits, in ms."""

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        """The status for a sender whose messages end at this offset; None when it has to wait.

        This is only called for senders that wait (the property WAIT).
        """

    def reached(self, marks: Marks) -> int:
        """The offset up to which waiting senders are told PUT_OK."""

    def late(self, marks: Marks, end_offset: int) -> PutStatus:
        """The status for a sender whose time is up."""

    def visible(self, marks: Marks) -> int:
        """The offset up to which consumers see messages."""


class AsyncFlush:
    """Confirms what is written."""

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
    """Confirms what is durable; with readUnCommitted, consumers see all that is written."""

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
    """The policy for these settings."""
    if config.flush_disk_type == SYNC_FLUSH:
        return SyncFlush(config)
    return AsyncFlush()


class Ticket:
    """A sender that waits for the log to be confirmed up to an offset."""

    __slots__ = ("_listener", "deadline_ms", "end_offset", "outcome")

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.deadline_ms: int | None = None
        """Set by the next `expire`, so that senders need no time."""
        self.outcome: PutStatus | None = None
        self._listener: Callable[[PutStatus], None] | None = None

    def then(self, listener: Callable[[PutStatus], None]) -> None:
        """Has the listener called once with the status of the messages, at once if it is known."""
        self._listener = listener
        if self.outcome is not None:
            listener(self.outcome)

    def resolve(self, outcome: PutStatus) -> None:
        """Sets the status and calls the listener."""
        self.outcome = outcome
        if self._listener is not None:
            self._listener(outcome)


class CommitPoint:
    """The marks of a log and the senders that wait for them; see the module docstring.

    The functions in `on_demand` are called when a sender begins to wait and none was waiting
    before: one of them has to see to it that the marks move.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.written = 0
        """The offset up to which the log is written."""
        self.durable = 0
        self.replicated = 0
        self.on_demand: list[Callable[[], None]] = []
        self._waiting: deque[Ticket] = deque()

    @property
    def visible(self) -> int:
        """The offset up to which consumers see messages."""
        return self.policy.visible(self)

    @property
    def is_wanted(self) -> bool:
        """Whether any sender is waiting."""
        return bool(self._waiting)

    def outcome(self, end_offset: int) -> PutStatus | Ticket:
        """The status of messages that end at this offset, or a ticket for who has to wait."""
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
        """Tells senders that waited for a mark which has moved."""
        tell_all(self._confirmed(), PutStatus.PUT_OK)

    def _confirmed(self) -> Iterator[Callable[[PutStatus], None]]:
        reached = self.policy.reached(self)
        while self._waiting and self._waiting[0].end_offset <= reached:
            yield self._waiting.popleft().resolve

    def expire(self, steady_ms: int) -> None:
        """Tells senders whose time is up; to be called about every second, with a steady clock."""
        for ticket in reversed(self._waiting):
            if ticket.deadline_ms is not None:
                break
            ticket.deadline_ms = steady_ms + self.policy.timeout_ms
        tell_all(self._late(steady_ms))

    def _late(self, steady_ms: int) -> Iterator[Callable[[], None]]:
        while self._waiting and (self._waiting[0].deadline_ms or steady_ms) <= steady_ms:
            ticket = self._waiting.popleft()
            yield partial(ticket.resolve, self.policy.late(self, ticket.end_offset))
