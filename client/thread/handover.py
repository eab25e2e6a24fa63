# SPDX-License-Identifier: Apache-2.0
"""Calls that one thread hands to another: all calls that wait share one wake-up.

To wake a reactor or a loop is a system call. When many calls come in a moment, as with many sends
or short listeners, it is made once for all of them; they run in their order, and no more of them in
one turn than what leaves the other thread time for what it waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from twisted.logger import Logger

AT_ONCE: Final = 512
"""How many calls run in one turn of the other thread at most."""

log = Logger()


class Handover:
    """Passes calls to another thread, in which `wake` calls a function soon.

    No lock is held, because the thread that was woken would wait for it while the other one is
    still waking it.
    """

    def __init__(self, wake: Callable[[Callable[[], None]], object]) -> None:
        self._wake = wake
        self._is_woken = False
        self._is_over = False
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    @property
    def waiting(self) -> int:
        """The number of calls that have not begun."""
        return len(self._waiting)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function in the other thread; if `wake` raises, that is raised instead."""
        if self._is_over:
            return
        self._waiting.append((function, arguments))
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self._wake(self._run)
        except Exception:  # the other thread is gone
            self._is_woken = False
            self._waiting.clear()
            raise
        except BaseException:  # Ctrl-C, perhaps before the wake-up, on which other calls rely
            self._is_woken = False
            self._wake(self._run)
            raise

    def close(self) -> None:
        """Notes that the other thread has ended: calls are neither passed on nor made any more."""
        self._is_over = True
        self._waiting.clear()

    def _run(self) -> None:
        self._is_woken = False  # first, so that whatever comes from now on wakes again
        waiting = self._waiting
        for _ in range(min(len(waiting), AT_ONCE)):
            function, arguments = waiting.popleft()
            try:
                function(*arguments)
            except Exception:  # noqa: BLE001 - it must not affect the other calls
                log.failure("a call that was handed over failed")
        if waiting and not self._is_woken:
            self._is_woken = True
            self._wake(self._run)
