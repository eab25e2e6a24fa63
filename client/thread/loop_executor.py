# SPDX-License-Identifier: Apache-2.0
"""Calls coroutine functions and plain functions of a program in its event loop.

All calls that are handed over come with one wake-up of the loop, and what has ended goes back with
one. The loop gets its turn after a slice of time. A loop that ends cancels its tasks: nothing is
said of those, so that their messages are as if they had not come, and no more calls begin.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from txrocketmq.client.thread.executor import Errand, Outbox, Row, Rows
from txrocketmq.client.thread.handover import Handover

SLICE_S: Final = 0.02
"""For how long calls are begun in a row before the loop gets its turn."""
CANCELLED_S: Final = 1.0
"""A call whose task was cancelled counts as failed if the loop still runs after this time."""


class LoopCrew:
    """Calls a function in a loop; `to_loop` passes calls to that loop."""

    def __init__(
        self,
        function: Callable[..., Any],
        most: int,
        to_loop: Handover,
        outbox: Outbox,
        steady_ms: Callable[[], int],
    ) -> None:
        self._function = function
        self._most = most
        self._to_loop = to_loop
        self._outbox = outbox
        self._steady_ms = steady_ms
        self._rows = Rows()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._cancelled = 0
        """The number of calls that were cancelled just now, perhaps because the loop ends."""

    def take(self, make: Callable[[Any], Errand], of: Sequence[Any]) -> None:
        """See Crew."""
        self._rows.add(Row(make, of))
        self._to_loop.call(self._go_on)

    def clear(self) -> list[Errand]:
        """See Crew."""
        return self._rows.clear()

    def _go_on(self) -> None:
        until_s = time.monotonic() + SLICE_S
        while len(self._tasks) < self._most and not self._cancelled:
            if time.monotonic() > until_s:
                asyncio.get_running_loop().call_soon(self._go_on)
                return
            row = self._rows.first()
            if row is None:
                return
            for each in row.left:
                self._call(row.make(each))
                break
            else:
                self._rows.drop(row)

    def _call(self, errand: Errand) -> None:
        if not errand.begin(self._steady_ms()):
            self._outbox.put(errand)
            return
        try:
            answer = self._function(*errand.arguments)
        except Exception as error:  # noqa: BLE001 - whoever has made the errand is told
            self._end(errand, None, error)
            return
        if not hasattr(answer, "__await__"):
            self._end(errand, answer, None)
            return
        task = asyncio.ensure_future(answer)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._done(errand, done))

    def _done(self, errand: Errand, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self._cancelled += 1
            task.get_loop().call_later(CANCELLED_S, self._was_cancelled, errand)
        elif (error := task.exception()) is None:
            self._end(errand, task.result(), None)
        else:
            known = error if isinstance(error, Exception) else RuntimeError(repr(error))
            self._end(errand, None, known)
        self._go_on()

    def _was_cancelled(self, errand: Errand) -> None:
        self._cancelled -= 1
        self._end(errand, None, RuntimeError("the task of the function was cancelled"))
        self._go_on()

    def _end(self, errand: Errand, answer: Any, error: Exception | None) -> None:
        errand.answer, errand.error = answer, error
        errand.ended_ms = self._steady_ms()
        self._outbox.put(errand)
