# SPDX-License-Identifier: Apache-2.0
"""A result that one thread of the program waits for and that the client's thread sets, once.

It is built on a bare lock, which takes a fraction of the time that a future of the standard library
and its condition take.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from twisted.python.failure import Failure

_NOTHING: Final = object()
"""Stands for a result that is not there yet."""


class Awaited:
    """A result for one waiting thread; see the module."""

    __slots__ = ("_is_awaited", "_outcome")

    def __init__(self) -> None:
        self._is_awaited = Lock()
        self._is_awaited.acquire()
        self._outcome: Any = _NOTHING

    def settle(self, outcome: Any) -> None:
        """Sets the result, or a Failure; called in the client's thread."""
        self._outcome = outcome
        self._is_awaited.release()

    def wait(self, timeout_s: float) -> bool:
        """Whether the result is there within `timeout_s`, after `result` was interrupted."""
        return self._outcome is not _NOTHING or self._is_awaited.acquire(timeout=timeout_s)

    def result(self) -> Any:
        """Waits for the result and returns it, or raises the error of a Failure."""
        self._is_awaited.acquire()
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Failure):
            try:
                raise outcome.value or RuntimeError("a failure without an error")
            finally:
                del outcome  # otherwise the traceback would keep the error alive
        return outcome
