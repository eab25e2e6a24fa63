# SPDX-License-Identifier: Apache-2.0
"""What is derived from the records of the log: units of queues, items of the index.

Code that writes records, or reads them back from the log, makes a `Following` of them; the store
gives it to a list of dispatchers, each of which keeps its own structure up to date. The encoder of
the log makes it while encoding (commit_log.py), reput makes it from the records (reput.py), and a
property test checks that both are equal. Which records are shown at all is decided here and nowhere
else.

Java: CommitLogDispatcher, CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex,
DispatchRequest.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

from txrocketmq.broker.store.index.index_file import IndexEntry
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.remoting.message.flags import MessageSysFlag

TRANSACTION_MASK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
DECIDING: Final = TRANSACTION_MASK
"""The bits of a system flag that decide; a message without any of them is shown everywhere."""
_NO_UNIT: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE


def enters_queue(sys_flag: int) -> bool:
    """Whether a message has a unit in its queue; half and rolled back messages have none."""
    return not sys_flag & _NO_UNIT


def is_indexed(sys_flag: int) -> bool:
    """Whether a message is found by its keys; one that was rolled back is not."""
    return sys_flag & TRANSACTION_MASK != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def visibility(sys_flag: int) -> tuple[bool, bool]:
    """Whether a message enters its queue, and whether it is indexed."""
    return enters_queue(sys_flag), is_indexed(sys_flag)


Units: TypeAlias = tuple[ConsumeQueue, int, list[int]]
"""Consecutive units: their queue, the offset of the first one in it, and their fields (log offset,
size in bytes, tags code), one message after the other. The further messages of a batch have zeros:
see batch_queue.py."""


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
    """Brings one structure up to date; if it gets the same records again, nothing changes.

    Raises OSError when the disk has no room. It gets the records again later.
    """

    def __call__(self, following: Following) -> None: ...


def dispatch_units(following: Following) -> None:
    """Writes the units into their queues."""
    _dispatch_all(following.units, following.stored_ms)


def dispatch_copies(following: Following) -> None:
    """Writes the units of light queues into these."""
    _dispatch_all(following.copies, following.stored_ms)


def _dispatch_all(rows: list[Units], stored_ms: int) -> None:
    for queue, first_offset, units in rows:
        if first_offset == queue.max_offset and units[0] >= queue.max_physical_offset:
            queue.append(units, stored_ms)
            continue
        # Some units exist already, or some before them are missing.
        queue.dispatch_all(first_offset, units, stored_ms)
