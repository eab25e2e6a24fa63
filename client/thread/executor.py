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
from operator import length_hint
from typing import Any, Final, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.remoting.host.clock import Clock

LOOK_MS: Final = 5
QUICK_CALLS: Final = 50
"""If a member makes this many calls in LOOK_MS, another one would not make them sooner."""

log = Logger()


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

    def take(self, make: Callable[[Any], Errand], of: Sequence[Any]) -> None:
        """Queues calls; they begin in this order, though several may run at once.

        For each element of `of`, a list or a range, `make` makes the errand when it is called: one
        that waited would be an object more for the garbage collector to look after. Crews whose
        function runs in threads call `make` there.

        Raises RuntimeError if nobody can make the calls; they then wait until `clear` is called.
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


class Row:
    """Calls that came together; of each element that is `left`, `make` makes the errand.

    `left` is the iterator of a list or a range: several threads may draw from it, and each element
    is drawn once.
    """

    __slots__ = ("left", "make")

    def __init__(self, make: Callable[[Any], Errand], of: Sequence[Any]) -> None:
        self.make = make
        self.left = iter(of)


class Rows:
    """The calls that have not begun; any thread may draw from the first row."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()

    def __bool__(self) -> bool:
        """Whether calls wait."""
        row = self.first()
        return row is not None and (length_hint(row.left) > 0 or len(self._rows) > 1)

    def add(self, row: Row) -> None:
        """Adds a row."""
        self._rows.append(row)

    def first(self) -> Row | None:
        """Returns the first row, which may just have become empty, or None if there is none."""
        try:
            return self._rows[0]
        except IndexError:
            return None

    def drop(self, row: Row) -> None:
        """Removes a row that has become empty, unless another thread has done so."""
        with suppress(ValueError):
            self._rows.remove(row)

    def clear(self) -> list[Errand]:
        """Draws everything that is left, and returns its errands."""
        drawn: list[Errand] = []
        while (row := self.first()) is not None:
            drawn += map(row.make, row.left)
            self.drop(row)
        return drawn


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
        self._rows = Rows()
        self._lock = threading.Lock()
        self._members = 0
        """The number of threads that work or were requested."""
        self._is_watched = False
        self._begun = 0
        """How many calls have begun so far; a few may be missing, as members count side by side."""
        self._seen = 0
        """What `_begun` was at the last check, at `_looked_ms`."""
        self._looked_ms = 0

    def take(self, make: Callable[[Any], Errand], of: Sequence[Any]) -> None:
        """See Crew."""
        self._rows.add(Row(make, of))
        with self._lock:  # otherwise the last member might be about to leave
            is_idle = not self._members
        if is_idle:
            self._ask_for_another()
        self._watch()

    def clear(self) -> list[Errand]:
        """See Crew."""
        return self._rows.clear()

    def _watch(self) -> None:
        if self._rows and self._members < self._most and not self._is_watched:
            self._is_watched = True
            self._seen = self._begun
            self._looked_ms = self._clock.steady_ms()
            self._clock.later(LOOK_MS, self._look)

    def _look(self) -> None:
        self._is_watched = False
        members, begun = self._members, self._begun - self._seen
        took_ms = max(self._clock.steady_ms() - self._looked_ms, LOOK_MS)  # the check may come late
        if begun * LOOK_MS < members * QUICK_CALLS * took_ms:
            with suppress(RuntimeError):  # no further thread can be had; the present ones go on
                for _ in range(members):
                    self._ask_for_another()
        self._watch()

    def _ask_for_another(self) -> None:
        with self._lock:
            if self._members >= self._most or not self._rows or self._ending.has_begun:
                return
            self._members += 1
        try:
            self._submit(self._work)
        except RuntimeError:  # no thread can be had now
            with self._lock:
                self._members -= 1
            raise

    def _work(self) -> None:
        try:
            self._make_calls()
        except BaseException:  # noqa: BLE001 - no memory, for example; the other calls go on
            log.failure("a thread that calls {function} failed", function=self._function)
            with self._lock:
                self._members -= 1
            with suppress(RuntimeError):  # no thread can be had; `take` will try again
                self._ask_for_another()

    def _make_calls(self) -> None:
        rows, ending = self._rows, self._ending
        while not ending.has_begun:
            row = rows.first()
            if row is not None:
                self._call(row)
                continue
            with self._lock:
                if not rows:
                    self._members -= 1
                    return

    def _call(self, row: Row) -> None:
        """Makes the calls of a row, from which other members may draw as well."""
        function, put, ending = self._function, self._outbox.put, self._ending
        make, steady_ms = row.make, self._clock.steady_ms
        now_ms = steady_ms()
        for each in row.left:
            self._begun += 1
            errand = make(each)
            if errand.begin(now_ms):
                try:
                    errand.answer = function(*errand.arguments)
                except Exception as error:  # noqa: BLE001 - whoever has made the errand is told
                    errand.error = error
                except BaseException as error:  # noqa: BLE001 - no member may be lost by it
                    errand.error = RuntimeError(f"the function raised {error!r}")
                errand.ended_ms = now_ms = steady_ms()
            put(errand)
            if ending.has_begun:
                return
        self._rows.drop(row)
