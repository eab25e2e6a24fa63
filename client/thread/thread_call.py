# SPDX-License-Identifier: Apache-2.0
"""A call that one thread of the program hands to the client's thread, which begins it there.

A thread that waits for the result does so at a bare lock, which takes a fraction of the time that a
future of the standard library and its condition take.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from twisted.python.failure import Failure

from txrocketmq.client.thread.handover import Handover
from txrocketmq.client.thread.pending_calls import Begin, Cancellable

_NOTHING: Final = object()
"""Stands for a result that is not there yet."""


class ThreadCall:
    """See the module; any thread may cancel the call. One thread may wait if it `is_awaited`."""

    __slots__ = ("_handover", "_is_over", "_outcome", "_running")

    def __init__(self, handover: Handover, *, is_awaited: bool) -> None:
        self._handover = handover
        self._running: Cancellable | None = None
        if is_awaited:
            self._is_over = threading.Lock()  # looked up here, as gevent may replace it
            self._is_over.acquire()
            self._outcome: Any = _NOTHING

    def begin(
        self,
        begin: Begin,
        settle: Callable[[Any], None] | None,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        """Begins the call, in the client's thread, for `settle` or for the thread that waits.

        It keeps no arguments, as there may be many calls.
        """
        settle = settle or self._settle
        try:
            self._running = begin(settle, *arguments, **named)
        except BaseException:  # noqa: BLE001 - it is raised where somebody waits for it
            settle(Failure())

    def _settle(self, outcome: Any) -> None:
        self._outcome = outcome
        self._running = None  # which has this method: together they would be a circle
        self._is_over.release()

    def cancel(self) -> None:
        """Cancels the call unless it is over."""
        self._handover.call(self._cancel)

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def wait(self, timeout_s: float) -> bool:
        """Whether the result is there within `timeout_s`, after `result` was interrupted."""
        return self._outcome is not _NOTHING or self._is_over.acquire(timeout=timeout_s)

    def result(self) -> Any:
        """Waits for the result and returns it, or raises the error of a Failure."""
        self._is_over.acquire()
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Failure):
            try:
                raise outcome.value or RuntimeError("a failure without an error")
            finally:
                del outcome  # otherwise the traceback would keep the error alive
        return outcome
