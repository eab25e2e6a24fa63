# SPDX-License-Identifier: Apache-2.0
"""Work that may block, done in threads, and how it ended.

Whoever stops waits for all of it, but not for ever: what no thread has done by then is done here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger

from txrocketmq.remoting.transport.clock import Clock

Work = Callable[[], None]
Done = Callable[[Exception | None], None]
"""Is called here, with what the work has raised."""

log = Logger()


class Threads:
    """Runs work in threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[Deferred[Any], Work] = {}

    @property
    def running(self) -> list[Deferred[Any]]:
        """Fire when what is being done now has been done, and what follows it as well."""
        return list(self._running)

    def run(self, work: Work, done: Done) -> None:
        """Does work in a thread, then `done` here."""
        running: Deferred[Any] = Deferred()
        self._running[running] = work
        running.addCallbacks(lambda _: done(None), lambda why: done(why.value))
        running.addErrback(lambda why: log.failure("what follows work in a thread failed", why))
        running.addBoth(lambda _: self._running.pop(running))
        maybeDeferred(self._clock.in_thread, work).addBoth(
            lambda result: None if running.called else running.callback(result)
        )

    def run_or_do(self, work: Work, done: Done) -> None:
        """As `run`, for work that others wait for: here if no thread can be had."""

        def ended(error: Exception | None) -> None:
            if isinstance(error, RuntimeError):
                try:
                    work()
                except Exception as again:  # noqa: BLE001 - it is handed to whoever asked
                    error = again
                else:
                    error = None
            done(error)

        self.run(work, ended)

    def do_here(self) -> None:
        """Does what no thread has done yet; all of it may be done twice."""
        for running, work in list(self._running.items()):
            if not running.called:
                maybeDeferred(work).addBoth(running.callback)
