# SPDX-License-Identifier: Apache-2.0
"""What the store is given of a run of sends that was read from bytes, and of pulls.

A kernel takes whole sends out of the bytes of a read, and writes them as records into room that the
store has reserved; what follows from them, units of queues and items of the index, is packed as it
lies in files. The store sees of a kernel only what is declared here; broker/kernel has the
reference, and says which kernels there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Any, Protocol, TypeAlias

PackedUnits: TypeAlias = tuple[int, bytes, int]
"""Units of one queue, packed: the log offset of the first message, the units, and the log offset
after the last message."""
PackedEnd: TypeAlias = tuple[Any, int, int]
"""A queue, and how many messages and bytes of records a run adds to it."""
QueueUnits: TypeAlias = tuple[Any, int, PackedUnits]
"""A queue, the offset in it of the first unit, and the units: a row of dispatch.py."""

FoundRecords: TypeAlias = tuple[int, int, bytes, list[tuple[int, int]]]
"""How many messages were found, how many bytes they have, the beginning of the answer, and from
where to where in the file the rest of it lies."""


class PullAnswer(Protocol):
    """Answers a pull by the records that the units of a queue name."""

    def __call__(  # noqa: PLR0913, PLR0917 - as in the compiled form
        self, units: memoryview, log: memoryview, from_offset: int, end: int, least: int,
        magic: int, most: int, most_bytes: int, pieces: list[bytes], opaque: int,
        offsets: tuple[int, int, int], /,
    ) -> FoundRecords | None:  # fmt: skip
        """Takes as many of the first units as fit, but at least one.

        `log` is a file of the log, which begins at `from_offset` and is written up to the position
        `end`. None if anything is unusual: with a unit, or with a record that is not in this file,
        before the log offset `least`, of another magic, or perhaps damaged. `offsets` are the queue
        offset of the first unit, and where the queue begins and ends; `pieces` are what is around
        the values of the head (see pull_answers.py). Records that are few or apart are copied.
        """


class PackedRows(Protocol):
    """Future items of the index, in the order of the log."""

    def __len__(self) -> int:
        """How many items there are."""

    def add(self, entries: Sequence[Any]) -> None:
        """Adds the items of entries (index_rows.IndexEntry)."""

    def extend(self, other: Any) -> None:
        """Adds the items of other such rows, which are not used any more."""

    def put(self, mapped: mmap, slots: int, items_at: int, first: int, begin_ms: int) -> int:
        """Writes the first items into a file, and forgets them: IndexFile.put.

        The file has so many slots, and its items from `items_at` on; `first` is the number of the
        next one, and their times count from `begin_ms`. Items come first, then the header, then the
        slots. There are as many as fit, and 1024 at most; returns how many.
        """


class SendRun(Protocol):
    """Sends with which the bytes of a read begin. All of them wait for confirmation, or none."""

    @property
    def at(self) -> int:
        """How many bytes they have; what is behind them is not taken."""

    @property
    def commands(self) -> int:
        """How many requests there are."""

    @property
    def answered(self) -> int:
        """How many of them want an answer."""

    @property
    def messages(self) -> int:
        """How many messages they have."""

    @property
    def size_bytes(self) -> int:
        """How many bytes their records have."""

    @property
    def most_bytes(self) -> int:
        """How many bytes the body and the properties of one message have at most."""

    @property
    def waits(self) -> bool:
        """Whether their senders wait for confirmation."""

    def queues(self, table: Any) -> list[PackedEnd]:
        """The queues that the messages are for, in the order in which they come first."""

    def write(
        self, table: Any, mapped: mmap, at: int, offset: int, nexts: list[int], now_ms: int,
        born: bytes, host: bytes, rows: Any,
    ) -> list[QueueUnits]:  # fmt: skip
        """Writes the records into a file from a place on, which is an offset of the log.

        `nexts` has the offset of the next unit of each queue, as `queues` returns them; `born` and
        `host` are the addresses of the sender and the broker, packed. Items for the index are added
        to `rows`, unless that is None. Returns the units of each queue. Once per run.
        """

    def answers(self, table: Any, pieces: list[bytes], batch: list[bytes], host: bytes) -> bytes:
        """The answers to the requests that want one, of prepared pieces (see send_answers.py)."""

    def kinds(self) -> list[tuple[int, bool, int]]:
        """Code, whether it is one-way, and number, for each kind of these requests."""

    def ends(self) -> Sequence[tuple[int, int, int, int, bool]]:
        """The half messages that are ended: the queue, the offset in it, when they were born, in
        ms, the number in the table of where they are to go, and whether they are committed.
        """

    def halves(self) -> list[tuple[int, int]]:
        """The numbers in the table of where half messages are to go, and how many for each."""
