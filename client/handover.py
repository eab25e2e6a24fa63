# SPDX-License-Identifier: Apache-2.0
"""Calls that one thread hands to another: whatever waits goes with one wake-up.

To wake a reactor or a loop is a call of the system. When many calls come in a moment, as with many
sends or short listeners, it is made once for all of them; they run in their order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

log = Logger()


class Handover:
    """See the module. `wake` has a function called in the other thread, soon and in its order."""

    def __init__(self, wake: Callable[[Callable[[], None]], object]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._is_over = False
        self._waiting: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    @property
    def waiting(self) -> int:
        """How many calls have not begun."""
        return len(self._waiting)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function in the other thread, unless `wake` raises something, which is raised."""
        with self._lock:
            if self._is_over:
                return
            self._waiting.append((function, arguments))
            if len(self._waiting) > 1:
                return
            try:
                self._wake(self._run)
            except BaseException:
                self._waiting.clear()
                raise

    def close(self) -> None:
        """The other thread has ended: from now on nobody is woken, and nothing is called."""
        with self._lock:
            self._is_over = True
            self._waiting.clear()

    def _run(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        for function, arguments in calls:
            try:
                function(*arguments)
            except Exception:  # noqa: BLE001 - the others have nothing to do with it
                log.failure("a call that was handed over failed")
