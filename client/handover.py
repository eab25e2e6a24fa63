# SPDX-License-Identifier: Apache-2.0
"""Calls that one thread hands to another: whatever waits goes with one wake-up.

To wake a reactor or a loop is a call of the system. When many calls come in a moment, as with many
sends or short listeners, it is made once for all of them; they run in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

log = Logger()


class Handover:
    """See the module. `wake` has a function called in the other thread, soon and in its order.

    No lock is held, since whoever was woken would wait for it while the other one is still waking.
    """

    def __init__(self, wake: Callable[[Callable[[], None]], object]) -> None:
        self._wake = wake
        self._is_woken = False
        self._is_over = False
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    @property
    def waiting(self) -> int:
        """How many calls have not begun."""
        return len(self._waiting)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function in the other thread, unless `wake` raises something, which is raised."""
        if self._is_over:
            return
        self._waiting.append((function, arguments))
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self._wake(self._run)
        except Exception:  # nobody is there any more
            self._is_woken = False
            self._waiting.clear()
            raise
        except BaseException:  # Ctrl-C, perhaps before anybody was woken: others rely on it
            self._is_woken = False
            self._wake(self._run)
            raise

    def close(self) -> None:
        """The other thread has ended: from now on nobody is woken, and nothing is called."""
        self._is_over = True
        self._waiting.clear()

    def _run(self) -> None:
        self._is_woken = False  # first: what comes from now on wakes again, or is taken here
        waiting = self._waiting
        for _ in range(len(waiting)):
            function, arguments = waiting.popleft()
            try:
                function(*arguments)
            except Exception:  # noqa: BLE001 - the others have nothing to do with it
                log.failure("a call that was handed over failed")
