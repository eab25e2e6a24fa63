# SPDX-License-Identifier: Apache-2.0
"""What a thread of the program waits for, and the client's thread brings: once, to that one alone.

A lock is enough for that, which takes a fraction of the time that a future of the standard library
and its condition take.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from twisted.python.failure import Failure

_NOTHING: Final = object()
"""The outcome of what has none yet."""


class Awaited:
    """See the module."""

    __slots__ = ("_is_awaited", "_outcome")

    def __init__(self) -> None:
        self._is_awaited = Lock()
        self._is_awaited.acquire()
        self._outcome: Any = _NOTHING

    def settle(self, outcome: Any) -> None:
        """In the client's thread: a result or a Failure."""
        self._outcome = outcome
        self._is_awaited.release()

    def wait(self, timeout_s: float) -> bool:
        """Whether it has come, or comes in that time: for whoever was interrupted in `result`."""
        return self._outcome is not _NOTHING or self._is_awaited.acquire(timeout=timeout_s)

    def result(self) -> Any:
        """Waits for the result, and gives it or raises what it is a failure of."""
        self._is_awaited.acquire()
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Failure):
            try:
                raise outcome.value or RuntimeError("a failure without an error")
            finally:
                del outcome  # else the error would hold itself by its traceback
        return outcome
