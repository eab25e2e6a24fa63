# SPDX-License-Identifier: Apache-2.0
"""Progress that may be saved once the log is durable.

What the broker has done by itself is in the log: the messages that it delivered, the questions that
it asked, the records of pops. How far it has got is in a file. If a crash took what is in the log
and left the file, nobody would do it again; so progress is saved only when the log is durable up to
where it ended when the progress was noted. Then a crash repeats something, and loses nothing.

Delay levels, half messages, the revival of popped messages, timers and check points keep their
progress like this.

Java: has no counterpart; progress is saved there when a period is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

P = TypeVar("P")


class Flushed(Protocol):
    """What is durable."""

    @property
    def flushed_offset(self) -> int:
        """Up to where the log is durable."""


class Log(Protocol):
    """A log, as far as this module is concerned with it."""

    @property
    def flush(self) -> Flushed:
        """What is durable of it."""

    @property
    def max_physical_offset(self) -> int:
        """Where it ends now."""


class DurableProgress(Generic[P]):
    """Progress, in the order in which it was noted, which waits until the log is durable."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting: deque[tuple[int, P]] = deque()
        """Up to where the log has to be durable, and the progress."""

    def __len__(self) -> int:
        """How much progress waits."""
        return len(self._waiting)

    def is_durable(self, end: int) -> bool:
        """Whether the log is durable up to this offset."""
        return self._log.flush.flushed_offset >= end

    def note(self, progress: P, end: int | None = None) -> int:
        """Has progress wait until the log is durable up to `end`, or to its end now; returns it.

        `end` never decreases from call to call, as the log does not.
        """
        if end is None:
            end = self._log.max_physical_offset
        self._waiting.append((end, progress))
        return end

    def take(self) -> list[P]:
        """Returns the progress that may be saved by now, and keeps it no longer."""
        flushed, waiting = self._log.flush.flushed_offset, self._waiting
        taken: list[P] = []
        while waiting and waiting[0][0] <= flushed:
            taken.append(waiting.popleft()[1])
        return taken

    def latest(self, present: Callable[[], P]) -> P | None:
        """Returns progress to save now, the latest that there is; None if there is none.

        `present` returns the progress as it is now. That is noted if none waits; so this, which is
        to be called again and again, keeps one at a time, however often it is called. If the whole
        log is durable, the present progress is.
        """
        if self.is_durable(self._log.max_physical_offset):
            self._waiting.clear()
            return present()
        if not self._waiting:
            self.note(present())
        taken = self.take()
        return taken[-1] if taken else None

    def forget(self) -> None:
        """Forgets all that waits, as it does not count any more."""
        self._waiting.clear()
