# SPDX-License-Identifier: Apache-2.0
"""Saving: keeps a file of `config/` up to date, with one write for all changes since the last.

A table of ten thousand topics is a file of several megabytes, so a change is not written on its
own. The first change begins a write in a thread; those that come while it runs are in the next
write, which begins when the first one ends. Code that promises that a change survives a crash
answers with `answer`: the reply is sent when a write that includes the change is on disk. While it
runs, very many may have come to wait for it, so they are told a few in a turn. Progress,
which changes all the time, is written with `begin_soon`: at once after a rest, and then for a small
part of the time at most. The original writes progress after fixed periods, so that a broker which
is killed before the first one does everything once more.
Counterpart of ConfigManager.persist, which writes the whole file for each change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Final

from txrocketmq.broker.work.in_thread import Done, InThread, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.primitives.listeners import tell_all

SOON_MS: Final = 500
"""The shortest period between the beginnings of two writes of `begin_soon`, in ms."""
_REST: Final = 20
"""How many times as long as the last write took such a period is at least."""
TOLD_AT_ONCE: Final = 32
"""How many are told in a turn that their changes are on disk: each is an answer that is sent."""

Listener = Callable[[Exception | None], None]


class Saving:
    """Writes one file.

    `snapshot` is called in the caller's thread; it collects what belongs into the file, at a cost
    that hardly grows with the table, and returns a function that makes the text in any thread.
    """

    def __init__(self, file: JsonFile, snapshot: Callable[[], Callable[[], bytes]]) -> None:
        self._file = file
        self._snapshot = snapshot
        self._is_running = False
        self._began_ms = -inf
        self._took_ms = 0.0
        self._waiting: list[Listener] = []
        """Listeners for changes in the write that runs now, or in the next one if none runs."""
        self._late: list[Listener] = []
        """Listeners for changes that came after the write that runs now had begun."""
        self._untold: deque[Callable[[], None]] = deque()
        """What tells the listeners of writes that have ended."""
        self.in_thread: InThread = at_once
        self.later: Callable[[Callable[[], None]], object] = lambda call: call()
        """Calls a function in the next turn."""
        self.on_end: Done = lambda _: None
        """Called after each write with its error, or None."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._file.path.name

    def begin(self) -> None:
        """Begins to write what has changed since the last write, unless a write is running."""
        if self._is_running or not self._file.is_stale:
            return
        self._is_running = True
        save = self._file.saving(self._snapshot())

        def timed() -> None:
            started_s = perf_counter()
            save()
            self._took_ms = (perf_counter() - started_s) * 1000

        self.in_thread(timed, self._ended)

    def begin_soon(self, steady_ms: int, longest_ms: int) -> None:
        """Does what `begin` does, unless the last write began a short time ago.

        After `longest_ms` it is not too early in any case, however long a write takes. A write that
        failed is tried again then.
        """
        period_ms = min(max(_REST * self._took_ms, SOON_MS), longest_ms)
        if steady_ms - self._began_ms >= period_ms and self._file.is_stale:
            if not self._is_running:
                self._began_ms = steady_ms
            self.begin()

    def _ended(self, error: Exception | None) -> None:
        self._is_running = False
        if error is not None:
            self._took_ms = inf
        self.on_end(error)
        served, self._waiting, self._late = self._waiting, self._late, []
        if self._waiting:
            self.begin()
        is_telling = bool(self._untold)
        self._untold.extend(partial(listener, error) for listener in served)
        if not is_telling:
            self._tell_some()

    def _tell_some(self) -> None:
        untold = self._untold
        some = [untold.popleft() for _ in range(min(len(untold), TOLD_AT_ONCE))]
        try:
            tell_all(some)
        finally:
            if untold:
                self.later(self._tell_some)

    def answer(self, reply: Reply[Any]) -> Reply[Any] | PendingReply:
        """Returns the reply, or a promise of it for when all changes made so far are on disk.

        If they cannot be written the answer is SYSTEM_ERROR. The changes still apply until the
        broker stops, and are written when that is possible again.
        """
        is_stale = self._file.is_stale
        if not is_stale and not self._is_running:
            return reply
        pending = PendingReply()

        def written(error: Exception | None) -> None:
            pending.resolve(reply if error is None else self._not_saved(error))

        (self._late if is_stale and self._is_running else self._waiting).append(written)
        self.begin()
        return pending

    def _not_saved(self, error: Exception) -> ResponseError:
        return ResponseError(
            ResponseCode.SYSTEM_ERROR,
            "the change is in effect, but could not be saved:"
            f" {self.name} cannot be written: {error}",
        )

    def write_now(self) -> None:
        """Writes what has changed, and returns when it is on disk; raises OSError."""
        if self._file.is_stale:
            self._file.saving(self._snapshot())()
