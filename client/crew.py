# SPDX-License-Identifier: Apache-2.0
"""Whoever makes the calls of a function of the program, elsewhere than where the client runs.

A crew gets many calls at once, makes up to `most` of them at the same time, and tells the client of
all that have ended with one wake-up. The first member takes one call after the other; another one
comes as soon as a member begins a call while more of them wait. So listeners that return at once
are called in a row by one thread, and those that block have as many as they may.

Java: the thread pool of a ConsumeMessageService, and its queue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred


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
        crew: Callable[[int, Ended, Callable[[], int]], Crew],
    ) -> None:
        """`call` makes one call; `crew` a crew: of how many, whom to tell, the steady clock."""
        self._call = call
        self.crew = crew

    def __call__(self, *arguments: Any) -> Deferred[Any]:
        return self._call(*arguments)


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
        steady_ms: Callable[[], int],
    ) -> None:
        self._steady_ms = steady_ms
        self._function = function
        self._most = most
        self._submit = submit
        self._outbox = outbox
        self._errands: deque[Errand] = deque()
        self._lock = threading.Lock()
        self._members = 0
        self._is_coming = False
        """Whether a member was asked for that has not come yet; one at a time is asked for."""

    def take(self, errands: Sequence[Errand]) -> None:
        """See Crew."""
        self._errands.extend(errands)
        self._ask_for_another()

    def clear(self) -> list[Errand]:
        """See Crew."""
        return taken_from(self._errands)

    def _ask_for_another(self) -> None:
        with self._lock:
            if self._is_coming or self._members >= self._most or not self._errands:
                return
            self._is_coming = True
            self._members += 1
        try:
            self._submit(self._work)
        except RuntimeError:  # no thread can be had now
            with self._lock:
                self._is_coming = False
                self._members -= 1
                is_alone = not self._members
            if is_alone:
                raise

    def _work(self) -> None:
        with self._lock:
            self._is_coming = False
        errands, function, put = self._errands, self._function, self._outbox.put
        steady_ms = self._steady_ms
        now_ms = steady_ms()
        while True:
            try:
                errand = errands.popleft()
            except IndexError:
                with self._lock:
                    if not errands:
                        self._members -= 1
                        return
                continue
            if errands and not self._is_coming and self._members < self._most:
                self._ask_for_another()
            if errand.begin(now_ms):
                try:
                    errand.answer = function(*errand.arguments)
                except Exception as error:  # noqa: BLE001 - whoever has made the errand is told
                    errand.error = error
                except BaseException as error:  # noqa: BLE001 - no member may be lost by it
                    errand.error = RuntimeError(f"the function raised {error!r}")
                errand.ended_ms = now_ms = steady_ms()
            put(errand)
