# SPDX-License-Identifier: Apache-2.0
"""The life of a part of the broker: that of any server's part, and work that takes many turns.

Java: has no counterpart; each ServiceThread there has the time that it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.slices import Sliced, Slices
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import (
    AtStop,
    Beat,
    Gauge,
    Hears,
    Life,
    Opening,
    Period,
    Periodic,
    Table,
    Tick,
)

__all__ = [
    "EXPIRE_MS",
    "OFTEN_MS",
    "SECOND_MS",
    "AtStop",
    "Beat",
    "Gauge",
    "Hears",
    "Life",
    "LongWork",
    "Opening",
    "Period",
    "SlicedBeat",
    "Table",
    "Tick",
    "WalkBeat",
]

OFTEN_MS = 100
"""The period of what is to be prompt, such as delayed messages, in ms."""
SECOND_MS = 1_000
EXPIRE_MS = 10_000
"""How often what has expired is looked for, in ms."""


@dataclass(frozen=True, slots=True)
class SlicedBeat:
    """Work that goes on for as long as there is some, in slices (slices.py)."""

    period_ms: Period
    work: Sliced
    first_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WalkBeat:
    """Steps over much, in turns with all other walks (walks.py).

    `steps` gets the times of the wall clock and of the steady clock in ms; it returns None if there
    is nothing to do. `what` names the work if it fails, and `because` what it causes.
    """

    period_ms: Period
    what: str
    steps: Callable[[int, int], Steps[Any] | None]
    because: str = ""
    first_ms: int | None = None


class LongWork:
    """What beats do that take many turns.

    `call_soon` calls a function in a later turn, `failed` hears which walk failed, and why, and
    `attributed` has what happens in steps attributed to a cause.
    """

    def __init__(
        self,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], object],
        walks: Walks,
        failed: Callable[[str, Exception], None],
        attributed: Callable[[Steps[Any], str], Steps[None]],
    ) -> None:
        self._clock = clock
        self._call_soon = call_soon
        self._walks = walks
        self._failed = failed
        self._attributed = attributed

    def of(self, beat: Periodic) -> Callable[[], object] | None:
        """Returns what is done at a beat; None if it takes one turn."""
        match beat:
            case SlicedBeat(work=work):
                clock = self._clock
                return Slices(work, clock.now_ms, clock.steady_ms, self._call_soon).begin
            case WalkBeat():
                return partial(self._walk, beat)
        return None

    def _walk(self, beat: WalkBeat) -> None:
        steps = beat.steps(self._clock.now_ms(), self._clock.steady_ms())
        if steps is not None:
            if beat.because:
                steps = self._attributed(steps, beat.because)
            self._walks.run(steps, partial(self._failed, beat.what))
