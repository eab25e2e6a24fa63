# SPDX-License-Identifier: Apache-2.0
"""The turns of peers: how long requests are served before everything else comes.

In one turn of the reactor, requests of all peers together are served for some five milliseconds.
Whoever has more to be served then waits for a later turn, and so do those that were not read yet:
what they have sent stays in their sockets. So nobody waits long, however many requests others have
sent at once.

Those that wait have their turns one after another, a millisecond each, in three rows: one for those
that have sent little, and one for those that have sent a lot, or have had a part of it served. So a
peer with one request does not wait for a hundred with ten thousand each. This is the way of fair
queues for packets (RFC 8290), where flows that send little come before those that send much. But
a hundred new peers may each send a little that costs much. So those that have sent little, and are
known for reads that cost little, have a row before these. Each row gets at least one turn at a
time, and half of the time that those before it have left, so nobody waits for ever.

What is measured is the work of peers alone, with the clock of the process. When a turn of the
reactor ends is found out by a call that the reactor makes at the beginning of the next, which is
wanted only now and then: after each millisecond of work. Java: has no counterpart; its pools of
threads divide the processors among requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Final, Protocol

TURN_S: Final = 0.005
"""For how many seconds requests are served in one turn of the reactor."""
SHARE_S: Final = 0.001
"""How many seconds of a turn one of those that wait has."""
LITTLE_BYTES: Final = 4_096
"""One that has sent no more than this has sent little."""
LIGHT_READS: Final = 3
"""After how many reads, less those that make up for long turns, one is known for costing little."""
MOST_LIGHT_READS: Final = 64
"""How many reads are remembered at most."""
LONG_TURN: Final = 8
"""How many reads make up for a turn of more than SHARE_S."""
_NOTED_S: Final = 0.001
"""After how much work it is to be found out when the turn of the reactor ends, in seconds."""


class Waits(Protocol):
    """One that has more to be done for it."""

    def take_turn(self) -> None:
        """Does some of what there is to do, while `goes_on`, and joins again if there is more."""

    def took_long(self) -> None:
        """Hears that its turn has taken more than SHARE_S of the processor."""

    def give_up(self) -> None:
        """Ends, because its turn has failed."""


class Turns:
    """Divides the time of the reactor among peers.

    `timer` returns the seconds of a clock that nobody sets, and `cpu_timer` those that this thread
    had the processor; `soon` calls a function at the beginning of the next turn of the reactor.
    `failed` is told of turns that raise.
    """

    def __init__(
        self,
        timer: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
        failed: Callable[[Exception], None],
        cpu_timer: Callable[[], float] | None = None,
    ) -> None:
        self.timer = timer
        self._soon = soon
        self._failed = failed
        self._cpu_timer = cpu_timer or timer
        self.spent_s = 0.0
        """How long peers were served in this turn of the reactor, or a little more."""
        self._share_s = TURN_S
        self.began_s = 0.0
        """When the peer that is served now began to be."""
        self.noted_s = _NOTED_S
        """After how much work `find_out` is to be called."""
        self._is_due = False
        self._known: OrderedDict[Waits, None] = OrderedDict()
        """Those that sent little, and are known for it."""
        self._first: OrderedDict[Waits, None] = OrderedDict()
        """Others that sent little."""
        self._others: OrderedDict[Waits, None] = OrderedDict()
        """Those that sent a lot, and have had a part of it served."""

    @property
    def waiting(self) -> int:
        """The number of those that wait for their turn."""
        return len(self._known) + len(self._first) + len(self._others)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be served in this turn of the reactor, which is when `spent_s`
        has reached TURN_S.
        """
        return self.spent_s >= TURN_S

    def begins(self) -> None:
        """Begins to serve a peer."""
        self.began_s = self.timer()

    def goes_on(self) -> bool:
        """Returns whether the peer that is served now may go on."""
        return self.timer() - self.began_s < min(TURN_S - self.spent_s, self._share_s)

    def ends(self) -> None:
        """Counts the work for a peer."""
        self.spent_s += self.timer() - self.began_s
        if self.spent_s > self.noted_s:
            self.find_out()

    def join(self, waits: Waits, size_bytes: int, *, is_known: bool = False) -> None:
        """Lets one wait for its turn, which has at least so many bytes that wait, and may be known
        for reads that cost little.
        """
        if size_bytes > LITTLE_BYTES:
            row = self._others
        else:
            row = self._known if is_known else self._first
        row[waits] = None
        self.find_out()

    def waits(self, one: Waits) -> bool:
        """Returns whether one waits for its turn."""
        return one in self._known or one in self._first or one in self._others

    def leave(self, waits: Waits) -> None:
        """Removes one that needs no turn any more."""
        self._known.pop(waits, None)
        self._first.pop(waits, None)
        self._others.pop(waits, None)

    def find_out(self) -> None:
        """Has it found out when the next turn of the reactor begins."""
        if not self._is_due:
            self._is_due, self.noted_s = True, inf
            self._soon(self._next)

    def _next(self) -> None:
        """Begins a turn of the reactor, with those that have waited."""
        self._is_due, self.noted_s = False, _NOTED_S
        self.spent_s = 0.0
        if not self.waiting:
            return
        self.find_out()
        known, first, others = self._known, self._first, self._others
        self._share_s = SHARE_S
        try:
            self._serve_row(known, others_wait=bool(first or others))
            self._serve_row(first, others_wait=bool(others))
            self._serve_row(others, others_wait=False)
            while (row := known or first) and not self.is_over:
                self._serve(row)
        finally:
            self._share_s = TURN_S

    def _serve_row(self, row: OrderedDict[Waits, None], *, others_wait: bool) -> None:
        """Serves at least one of a row, and those for which there is time."""
        until_s = (self.spent_s + TURN_S) / 2 if others_wait else TURN_S
        if row:
            self._serve(row)
        while row and self.spent_s < until_s:
            self._serve(row)

    def _serve(self, row: OrderedDict[Waits, None]) -> None:
        waits, _ = row.popitem(last=False)
        # Whoever gets an answer may take the processor right away, so others would seem to take
        # long.
        began_s = self._cpu_timer()
        try:
            waits.take_turn()
            if self._cpu_timer() - began_s > SHARE_S:
                waits.took_long()
        except Exception as error:  # noqa: BLE001 - one of them must not end the turns of others
            self._failed(error)
            waits.give_up()


def _never(_: object) -> None:
    raise AssertionError("turns without a clock do not end")


ENDLESS: Final = Turns(float, _never, _never)
"""For peers that are no strangers: they are served at once. No time passes on its clock."""
