# SPDX-License-Identifier: Apache-2.0
"""Crews make the calls of a function of the program, outside the thread in which the client runs.

A crew gets many calls at once, makes up to `most` of them at the same time, and tells the client of
all that have ended with one wake-up. The first member takes one call after the other. Every
`LOOK_MS` the crew checks whether that is too slow: as long as calls wait that take some time each,
the number of members doubles. So listeners that return at once are called by one thread, in the
order of the messages, and those that block soon have as many threads as they may.

When the program ends, no more calls begin: Python waits for the threads before it ends, so that one
forgotten consumer would otherwise keep the program until its group has no more messages.

Java: the thread pool of a ConsumeMessageService, and its queue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from twisted.internet.defer import Deferred

from txrocketmq.remoting.transport.clock import Clock

LOOK_MS: Final = 5
QUICK_CALLS: Final = 50
"""If a member makes this many calls in LOOK_MS, another one would not make them sooner."""


class Errand(Protocol):
    """A call to be made, and afterwards its answer or the error that it raised."""

    answer: Any
    error: Exception | None
    ended_ms: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments for the function."""

    def begin(self, steady_ms: int) -> bool:
        """Called just before the call, where it is made; returns False if it is not wanted."""


Ended = Callable[[Sequence[Any]], None]
"""Called where the client runs, with the errands that have ended."""


class Crew(Protocol):
    """Makes calls elsewhere; see the module."""

    def take(self, errands: Sequence[Errand]) -> None:
        """Queues calls; they begin in this order, though several may run at once.

        Raises RuntimeError if nobody can make them; they then wait until `clear` is called.
        """

    def clear(self) -> list[Errand]:
        """Returns the calls that have not begun, and forgets them."""


class Elsewhere:
    """A function of the program that runs elsewhere, in single calls or by a crew."""

    def __init__(
        self,
        call: Callable[..., Deferred[Any]],
        crew: Callable[[int, Ended, Clock], Crew],
    ) -> None:
        """`call` makes one call; `crew` makes a crew from its size, the callback and the clock."""
        self._call = call
        self.crew = crew

    def __call__(self, *arguments: Any) -> Deferred[Any]:
        return self._call(*arguments)


class Ending:
    """Whether the program ends; any thread may set `has_begun`, once."""

    __slots__ = ("has_begun",)

    def __init__(self) -> None:
        self.has_begun = False


class Outbox:
    """Passes ended errands to the client's thread, any number of them with one wake-up."""

    def __init__(self, wake: Callable[[Callable[[], None]], object], ended: Ended) -> None:
        self._wake = wake
        self._ended = ended
        self._errands: deque[Errand] = deque()
        self._is_told = False

    def put(self, errand: Errand) -> None:
        """Adds an errand that has ended; may be called in any thread."""
        self._errands.append(errand)
        if not self._is_told:
            self._is_told = True
            self._wake(self._empty)

    def _empty(self) -> None:
        self._is_told = False  # first, so that whatever is put from now on wakes again
        errands = [self._errands.popleft() for _ in range(len(self._errands))]
        if errands:
            self._ended(errands)


def taken_from(errands: deque[Errand]) -> list[Errand]:
    """Takes everything from a deque from which other threads may take as well."""
    taken: list[Errand] = []
    while True:
        try:
            taken.append(errands.popleft())
        except IndexError:
            return taken


class ThreadCrew:
    """A crew of threads: `submit` calls a function in one, `outbox` passes on what has ended."""

    def __init__(
        self,
        function: Callable[..., Any],
        most: int,
        submit: Callable[[Callable[[], None]], object],
        outbox: Outbox,
        clock: Clock,
        ending: Ending | None = None,
    ) -> None:
        self._clock = clock
        self._ending = ending or Ending()
        self._function = function
        self._most = most
        self._submit = submit
        self._outbox = outbox
        self._errands: deque[Errand] = deque()
        self._lock = threading.Lock()
        self._members = 0
        """The number of threads that work or were requested."""
        self._is_watched = False
        self._given = 0
        """How many calls the crew was given so far."""
        self._begun = 0
        """How many of these had begun at the last check, at `_looked_ms`."""
        self._looked_ms = 0

    def take(self, errands: Sequence[Errand]) -> None:
        """See Crew."""
        self._given += len(errands)
        self._errands.extend(errands)
        with self._lock:  # otherwise the last member might be about to leave
            is_idle = not self._members
        if is_idle:
            self._ask_for_another()
        self._watch()

    def clear(self) -> list[Errand]:
        """See Crew."""
        cleared = taken_from(self._errands)
        self._given -= len(cleared)
        return cleared

    def _watch(self) -> None:
        if self._errands and self._members < self._most and not self._is_watched:
            self._is_watched = True
            self._begun = self._given - len(self._errands)
            self._looked_ms = self._clock.steady_ms()
            self._clock.later(LOOK_MS, self._look)

    def _look(self) -> None:
        self._is_watched = False
        members, begun = self._members, self._given - len(self._errands)
        took_ms = max(self._clock.steady_ms() - self._looked_ms, LOOK_MS)  # the check may come late
        if (begun - self._begun) * LOOK_MS < members * QUICK_CALLS * took_ms:
            with suppress(RuntimeError):  # no further thread can be had; the present ones go on
                for _ in range(members):
                    self._ask_for_another()
        self._watch()

    def _ask_for_another(self) -> None:
        with self._lock:
            if self._members >= self._most or not self._errands or self._ending.has_begun:
                return
            self._members += 1
        try:
            self._submit(self._work)
        except RuntimeError:  # no thread can be had now
            with self._lock:
                self._members -= 1
            raise

    def _work(self) -> None:
        errands, function, put = self._errands, self._function, self._outbox.put
        steady_ms, ending = self._clock.steady_ms, self._ending
        now_ms = steady_ms()
        while not ending.has_begun:
            try:
                errand = errands.popleft()
            except IndexError:
                with self._lock:
                    if not errands:
                        self._members -= 1
                        return
                continue
            if errand.begin(now_ms):
                try:
                    errand.answer = function(*errand.arguments)
                except Exception as error:  # noqa: BLE001 - whoever has made the errand is told
                    errand.error = error
                except BaseException as error:  # noqa: BLE001 - no member may be lost by it
                    errand.error = RuntimeError(f"the function raised {error!r}")
                errand.ended_ms = now_ms = steady_ms()
            put(errand)
