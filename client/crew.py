# SPDX-License-Identifier: Apache-2.0
"""Whoever makes the calls of a function of the program, elsewhere than where the client runs.

A crew gets many calls at once, makes up to `most` of them at the same time, and tells the client of
all that have ended with one wake-up. The first member takes one call after the other. Whether that
is too slow is looked at every `LOOK_MS`: as long as calls wait that take some time each, the
members double. So listeners that return at once are called by one thread, in the order of the
messages, and those that block soon have as many threads as they may.

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
"""If a member makes so many calls within that time, no other one would make them sooner."""


class Errand(Protocol):
    """A call that is to be made, and then what came of it: an answer, or what was raised."""

    answer: Any
    error: Exception | None
    ended_ms: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the function is called with."""

    def begin(self, steady_ms: int) -> bool:
        """Called where the call is made, just before it; False: it is not wanted any more."""


Ended = Callable[[Sequence[Any]], None]
"""Called where the client runs, with errands that have ended."""


class Crew(Protocol):
    """See the module."""

    def take(self, errands: Sequence[Errand]) -> None:
        """These calls are to be made, in this order as far as several are not made at once.

        Raises RuntimeError where nobody can make them; they wait then, until they are cleared.
        """

    def clear(self) -> list[Errand]:
        """Forgets the calls that have not begun, and gives them back."""


class Elsewhere:
    """A function of the program that runs elsewhere: called by itself, or by a crew."""

    def __init__(
        self,
        call: Callable[..., Deferred[Any]],
        crew: Callable[[int, Ended, Clock], Crew],
    ) -> None:
        """`call` makes one call; `crew` a crew: of how many, whom to tell, the client's clock."""
        self._call = call
        self.crew = crew

    def __call__(self, *arguments: Any) -> Deferred[Any]:
        return self._call(*arguments)


class Ending:
    """Whether the program ends; `has_begun` is set once, by any thread."""

    __slots__ = ("has_begun",)

    def __init__(self) -> None:
        self.has_begun = False


class Outbox:
    """What has ended, on its way to the client's thread: however much it is, with one wake-up."""

    def __init__(self, wake: Callable[[Callable[[], None]], object], ended: Ended) -> None:
        self._wake = wake
        self._ended = ended
        self._errands: deque[Errand] = deque()
        self._is_told = False

    def put(self, errand: Errand) -> None:
        """Of any thread."""
        self._errands.append(errand)
        if not self._is_told:
            self._is_told = True
            self._wake(self._empty)

    def _empty(self) -> None:
        self._is_told = False  # first: what is put from now on wakes again, or is taken here
        errands = [self._errands.popleft() for _ in range(len(self._errands))]
        if errands:
            self._ended(errands)


def taken_from(errands: deque[Errand]) -> list[Errand]:
    """All that is there, while others may take from it as well."""
    taken: list[Errand] = []
    while True:
        try:
            taken.append(errands.popleft())
        except IndexError:
            return taken


class ThreadCrew:
    """Of threads: `submit` has a function called in one of them, `wake` in the client's."""

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
        """Those that work, or were asked for."""
        self._is_watched = False
        self._given = 0
        """How many calls were there to be made so far."""
        self._begun = 0
        """How many of them had begun at the last look, which was at `_looked_ms`."""
        self._looked_ms = 0

    def take(self, errands: Sequence[Errand]) -> None:
        """See Crew."""
        self._given += len(errands)
        self._errands.extend(errands)
        with self._lock:  # else the last member might be about to leave
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
        took_ms = max(self._clock.steady_ms() - self._looked_ms, LOOK_MS)  # it may come late
        if (begun - self._begun) * LOOK_MS < members * QUICK_CALLS * took_ms:
            with suppress(RuntimeError):  # no thread can be had: those that are there go on
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
