# SPDX-License-Identifier: Apache-2.0
"""Runs work that may block in threads, and tells the reactor's thread how it ended.

Whoever stops a service waits for all of the work, but not for ever: `do_here` does in the reactor's
thread what no other thread has finished by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.logger import Logger

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Done

Work = Callable[[], None]

log = Logger()


class Threads:
    """Runs work in threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[Deferred[Any], Work] = {}

    @property
    def running(self) -> list[Deferred[Any]]:
        """Deferreds of the work in progress; each fires when its work and `done` have ended."""
        return list(self._running)

    def run(self, work: Work, done: Done) -> None:
        """Does work in a thread, then calls `done` in the reactor's thread."""
        running: Deferred[Any] = Deferred()
        self._running[running] = work
        running.addCallbacks(lambda _: done(None), lambda why: done(why.value))
        running.addErrback(lambda why: log.failure("a step after work in a thread failed", why))
        running.addBoth(lambda _: self._running.pop(running))
        maybeDeferred(self._clock.in_thread, work).addBoth(
            lambda result: None if running.called else running.callback(result)
        )

    def run_or_do(self, work: Work, done: Done) -> None:
        """Like `run`, but does the work in the reactor's thread if no other thread can be had.

        It is for work that others wait for.
        """
        begun = False

        def begins() -> None:
            nonlocal begun
            begun = True
            work()

        def ended(error: Exception | None) -> None:
            if error is not None and not begun:
                error = None
                try:
                    work()
                except Exception as own:  # noqa: BLE001 - it is handed to whoever asked
                    error = own
            done(error)

        self.run(begins, ended)

    def read_ahead(self, work: Work, done: Done) -> None:
        """Like `run`, for work that reads, and logs its failure."""

        def read(error: Exception | None) -> None:
            if error is not None:
                log.error("reading ahead failed: {error}", error=error)
            done(error)

        self.run(work, read)

    def end(self, others: Iterable[Deferred[Any]], at_most_ms: int) -> Deferred[None]:
        """Fires when all work and all `others` have ended, and after so many ms at the latest.

        Work that has not ended by then is done here, and the others are cancelled.
        """
        waiting: Deferred[Any] = DeferredList([*others, *self._running], consumeErrors=True)

        def too_late() -> None:
            self.do_here()
            waiting.cancel()

        late = self._clock.later(at_most_ms, too_late)

        def ended(_: Any) -> None:
            if late.active():
                late.cancel()

        return waiting.addBoth(ended)

    def do_here(self) -> None:
        """Does in this thread what no other has finished; some of it may then be done twice."""
        for running, work in list(self._running.items()):
            if not running.called:
                maybeDeferred(work).addBoth(running.callback)
