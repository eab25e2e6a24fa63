# SPDX-License-Identifier: Apache-2.0
"""What is derived from the records of the log: units of queues, items of the index.

Whoever writes records, or reads them back from the log, makes a `Following` of them; the store
gives it to a list of dispatchers, each of which keeps its own structure up to date. The encoder of
the log makes it on the way (commit_log.py), reput makes it from the records (reput.py), and a
property test holds the two equal. Which records are shown at all is decided here and nowhere
else.

Java: CommitLogDispatcher, CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex,
DispatchRequest.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

from txrocketmq.broker.store.consume_queue import ConsumeQueue
from txrocketmq.broker.store.index_file import IndexEntry
from txrocketmq.remoting.message.flags import MessageSysFlag

TRANSACTION_MASK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
DECIDING: Final = TRANSACTION_MASK
"""The bits of a system flag that decide; a message without any of them is shown everywhere."""
_NO_UNIT: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE


def enters_queue(sys_flag: int) -> bool:
    """Whether a message has a unit in its queue: not half messages, nor those rolled back."""
    return not sys_flag & _NO_UNIT


def is_indexed(sys_flag: int) -> bool:
    """Whether a message is found by its keys: not one that was rolled back."""
    return sys_flag & TRANSACTION_MASK != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def visibility(sys_flag: int) -> tuple[bool, bool]:
    """Whether a message enters its queue, and whether it is indexed."""
    return enters_queue(sys_flag), is_indexed(sys_flag)


Units: TypeAlias = tuple[ConsumeQueue, int, list[int]]
"""Units that follow on each other: their queue, the offset of the first one in it, and their fields
(physical offset, size in bytes, tags code), one message after the other. A message has zeros that
is in the record of the one before it: see batch_queue.py."""


class Following:
    """What follows from the records between two offsets of the log.

    `units` has the units of the queues in the order of the log, `copies` those of light queues,
    which name the same messages once more, `entries` what is to be indexed, and `stored_ms` is when
    the last of the records was stored.
    """

    __slots__ = ("copies", "end_offset", "entries", "start_offset", "stored_ms", "units")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.stored_ms = 0
        self.units: list[Units] = []
        self.copies: list[Units] = []
        self.entries: list[IndexEntry] = []


class Dispatcher(Protocol):
    """Brings one structure up to date; being given the same records again changes nothing.

    Raises OSError when the disk has no room. The records are then given to it again later.
    """

    def __call__(self, following: Following) -> None: ...


def dispatch_units(following: Following) -> None:
    """Writes the units into their queues."""
    _dispatch_all(following.units, following.stored_ms)


def dispatch_copies(following: Following) -> None:
    """Writes the units of light queues into those."""
    _dispatch_all(following.copies, following.stored_ms)


def _dispatch_all(rows: list[Units], stored_ms: int) -> None:
    for queue, first_offset, units in rows:
        if first_offset == queue.max_offset and units[0] >= queue.max_physical_offset:
            queue.append(units, stored_ms)
            continue
        # Some of them are there already, or some before them are missing.
        queue.dispatch_all(first_offset, units, stored_ms)
