# SPDX-License-Identifier: Apache-2.0
"""How far the log has been written, synced and copied, and what counts as confirmed.

The log has marks: `written`, `durable` (its bytes survive a crash of the machine) and
`acknowledged` (the slaves that are connected have them). A `Policy` says which of them senders wait
for and which of them consumers may see; this is the only place where ASYNC_FLUSH differs from
SYNC_FLUSH, and ASYNC_MASTER from SYNC_MASTER. A waiting sender has a `Ticket`; all tickets that a
mark passes are resolved at once.

Java: CommitLog.handleDiskFlushAndHA, GroupCommitService, GroupTransferService,
MessageStore.getConfirmOffset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

from txrocketmq.broker.store.formats.config import SYNC_FLUSH, SYNC_MASTER, StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.primitives.listeners import tell_all

_OK: Final = PutStatus.PUT_OK


class Marks(Protocol):
    """The offsets of the log that a policy decides by."""

    @property
    def written(self) -> int:
        """The offset up to which the log is written."""

    @property
    def durable(self) -> int:
        """The offset up to which the log survives a loss of power."""

    @property
    def acknowledged(self) -> Sequence[int]:
        """The offsets up to which the connected slaves have the log, the highest one first."""

    @property
    def members(self) -> int | None:
        """How many brokers of the name there are, counting this one; None if that is not asked."""


class Policy(Protocol):
    """Decides what is confirmed."""

    @property
    def timeout_ms(self) -> int:
        """How long a sender waits, in ms."""

    @property
    def syncs(self) -> bool:
        """Whether senders wait for the disk."""

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        """The status for a sender whose messages end at this offset; None when it has to wait.

        This is only called for senders that wait (the property WAIT).
        """

    def promised(self, marks: Marks, end_offset: int) -> PutStatus:
        """What a sender that begins to wait is told when it has waited successfully: PUT_OK, or
        what is missing already, so that it only waits for the rest.
        """

    def reached(self, marks: Marks, promised: PutStatus) -> int:
        """The offset up to which waiting senders are told what they were promised."""

    def late(self, marks: Marks, end_offset: int, promised: PutStatus) -> PutStatus:
        """The status for a sender whose time is up."""

    def visible(self, marks: Marks) -> int:
        """The offset up to which consumers see messages."""

    def lacks_brokers(self, marks: Marks) -> bool:
        """Whether senders that wait are refused, since too few brokers have the log."""


class AsyncFlush:
    """Confirms what is written."""

    timeout_ms = 0
    syncs = False

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        return _OK

    def promised(self, marks: Marks, end_offset: int) -> PutStatus:
        return _OK

    def reached(self, marks: Marks, promised: PutStatus) -> int:
        return marks.written

    def late(self, marks: Marks, end_offset: int, promised: PutStatus) -> PutStatus:
        return _OK

    def visible(self, marks: Marks) -> int:
        return marks.written

    def lacks_brokers(self, marks: Marks) -> bool:
        return False


class SyncFlush:
    """Confirms what is durable; with readUnCommitted, consumers see all that is written."""

    syncs = True

    def __init__(self, config: StoreConfig) -> None:
        self._config = config

    @property
    def timeout_ms(self) -> int:
        return self._config.sync_flush_timeout

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        return _OK if end_offset <= marks.durable else None

    def promised(self, marks: Marks, end_offset: int) -> PutStatus:
        return _OK

    def reached(self, marks: Marks, promised: PutStatus) -> int:
        return marks.durable

    def late(self, marks: Marks, end_offset: int, promised: PutStatus) -> PutStatus:
        return PutStatus.FLUSH_DISK_TIMEOUT

    def visible(self, marks: Marks) -> int:
        return marks.written if self._config.read_un_committed else marks.durable

    def lacks_brokers(self, marks: Marks) -> bool:
        return False


class OtherBrokers:
    """What policies have in common that confirm what another one confirms here, as soon as other
    brokers have it as well. What consumers see does not depend on these.
    """

    def __init__(self, config: StoreConfig, here: Policy) -> None:
        self._config = config
        self._here = here
        self.syncs = here.syncs

    @property
    def timeout_ms(self) -> int:
        """How long a sender waits, in ms."""
        return max(self._config.slave_timeout, self._here.timeout_ms)

    def visible(self, marks: Marks) -> int:
        """The offset up to which consumers see messages."""
        return self._here.visible(marks)


def acknowledged_by(marks: Marks, brokers: int) -> int:
    """The offset up to which so many brokers have the log, counting this one; -1 if fewer do."""
    slaves = brokers - 1
    if not slaves:
        return marks.written
    return marks.acknowledged[slaves - 1] if slaves <= len(marks.acknowledged) else -1


class SyncMaster(OtherBrokers):
    """Confirms what another policy confirms here, as soon as slaves have it as well.

    With inSyncReplicas it is 5.x's meaning: so many brokers, counting this one, or
    FLUSH_SLAVE_TIMEOUT. Without it, it is that of 4.9: any slave, or SLAVE_NOT_AVAILABLE if there
    is none near enough. If the disk and the slaves are both late, the slaves count.

    With inSyncReplicas and enableSlaveActingMaster, senders are refused before anything is stored
    while there are fewer brokers in sync than have to have the messages; and with
    enableAutoInSyncReplicas fewer have to, down to minInSyncReplicas, which then counts without
    inSyncReplicas as well, as 1 is the original's default of that. (The original decides that
    when a message is put; here those who wait for a slave that goes are told at once.)
    """

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        here = self._here.waits(marks, end_offset)
        if here is None or self._replicated(marks) >= end_offset:
            return here
        promised = self.promised(marks, end_offset)
        return here if here is not _OK else None if promised is _OK else promised

    def promised(self, marks: Marks, end_offset: int) -> PutStatus:
        acknowledged = marks.acknowledged
        if self._wanted(marks) or (
            acknowledged and end_offset - acknowledged[0] < self._config.ha_slave_fallbehind_max
        ):
            return _OK
        return PutStatus.SLAVE_NOT_AVAILABLE

    def reached(self, marks: Marks, promised: PutStatus) -> int:
        here = self._here.reached(marks, promised)
        return here if promised is not _OK else min(here, self._replicated(marks))

    def late(self, marks: Marks, end_offset: int, promised: PutStatus) -> PutStatus:
        if promised is not _OK:
            return promised
        if self._replicated(marks) < end_offset:
            return PutStatus.FLUSH_SLAVE_TIMEOUT
        return self._here.late(marks, end_offset, promised)

    def lacks_brokers(self, marks: Marks) -> bool:
        members = marks.members
        return members is not None and self._wanted(marks) > self._in_sync(marks, members)

    def _in_sync(self, marks: Marks, members: int) -> int:
        """How many brokers have nearly all of the log, counting this one."""
        least = marks.written - self._config.ha_max_gap_not_in_sync
        return min(members, 1 + sum(each > least for each in marks.acknowledged))

    def _wanted(self, marks: Marks) -> int:
        """How many brokers have to have a message, counting this one; 0 with 4.9's meaning."""
        config = self._config
        wanted = config.in_sync_replicas
        if not config.enable_auto_in_sync_replicas:
            return wanted
        members, least = marks.members, config.min_in_sync_replicas
        if members is None or (not wanted and least < 2):
            return wanted
        return max(min(wanted, self._in_sync(marks, members)), least)

    def _replicated(self, marks: Marks) -> int:
        """The offset up to which enough slaves have the log."""
        return acknowledged_by(marks, self._wanted(marks) or 2)


def policy_here(config: StoreConfig) -> Policy:
    """The policy for these settings without slaves."""
    return SyncFlush(config) if config.flush_disk_type == SYNC_FLUSH else AsyncFlush()


def policy_of(config: StoreConfig) -> Policy:
    """The policy for these settings."""
    here = policy_here(config)
    return SyncMaster(config, here) if config.broker_role == SYNC_MASTER else here


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

    The functions in `on_demand` are called when a sender begins to wait for the disk and none was
    waiting for it before: one of them has to see to it that the log is synced.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.written = 0
        """The offset up to which the log is written."""
        self.durable = 0
        self.acknowledged: Sequence[int] = ()
        self.members: int | None = None
        """How many brokers of the name there are, with enableSlaveActingMaster."""
        self.on_demand: list[Callable[[], None]] = []
        self._waiting: dict[PutStatus, deque[Ticket]] = {
            _OK: deque(),
            PutStatus.SLAVE_NOT_AVAILABLE: deque(),
        }
        """Those who wait, by what they were promised."""

    @property
    def visible(self) -> int:
        """The offset up to which consumers see messages."""
        return self.policy.visible(self)

    @property
    def lacks_brokers(self) -> bool:
        """Whether senders that wait are refused, since too few brokers have the log."""
        return self.members is not None and self.policy.lacks_brokers(self)

    @property
    def is_wanted(self) -> bool:
        """Whether any sender is waiting."""
        return any(self._waiting.values())

    @property
    def is_sync_wanted(self) -> bool:
        """Whether any sender is waiting for the disk."""
        return self.policy.syncs and any(
            row and row[-1].end_offset > self.durable for row in self._waiting.values()
        )

    def outcome(self, end_offset: int) -> PutStatus | Ticket:
        """The status of messages that end at this offset, or a ticket for who has to wait."""
        status = self.policy.waits(self, end_offset)
        if status is not None:
            return status
        ticket = Ticket(end_offset)
        was_wanted = self.is_sync_wanted
        self._waiting[self.policy.promised(self, end_offset)].append(ticket)
        if not was_wanted and self.is_sync_wanted:
            for heard in self.on_demand:
                heard()
        return ticket

    def moved(self) -> None:
        """Tells senders that waited for a mark which has moved."""
        for promised, row in self._waiting.items():
            if row:
                reached = self.policy.reached(self, promised)
                tell_all(_confirmed(row, reached), promised)

    def expire(self, steady_ms: int) -> None:
        """Tells senders whose time is up; to be called often, with a steady clock."""
        for promised, row in self._waiting.items():
            for ticket in reversed(row):
                if ticket.deadline_ms is not None:
                    break
                ticket.deadline_ms = steady_ms + self.policy.timeout_ms
            tell_all(self._late(promised, row, steady_ms))

    def _late(
        self, promised: PutStatus, row: deque[Ticket], steady_ms: int
    ) -> Iterator[Callable[[], None]]:
        while row and (row[0].deadline_ms or steady_ms) <= steady_ms:
            ticket = row.popleft()
            status = self.policy.late(self, ticket.end_offset, promised)
            yield partial(ticket.resolve, status)


def _confirmed(row: deque[Ticket], reached: int) -> Iterator[Callable[[PutStatus], None]]:
    while row and row[0].end_offset <= reached:
        yield row.popleft().resolve
