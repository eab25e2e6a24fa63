# SPDX-License-Identifier: Apache-2.0
"""The life of a part of the broker: that of any server's part, and work that takes many turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.slices import Sliced
from txrocketmq.remoting.host.life import (
    AtStop,
    Beat,
    Gauge,
    Hears,
    Life,
    Opening,
    Period,
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
