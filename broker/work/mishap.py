# SPDX-License-Identifier: Apache-2.0
"""Mishaps: what happens to waiting messages out of the ordinary, so that people should know."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from txrocketmq.remoting.primitives.listeners import tell_all


class Mishap(NamedTuple):
    """What happened to waiting messages out of the ordinary, told by the first one of them."""

    number: int
    """How many messages."""
    queue_id: int = 0
    """The queue in which they wait."""
    offset: int = -1
    """The first one's place: its offset in the queue, or its position in the timer log."""
    topic: str = ""
    """The topic for which the first one is meant."""
    why: str = ""
    """What the store says, or why it can never be delivered."""
    key: str = ""
    """The first one's unique key."""


MishapListener = Callable[[Mishap], object]


def tell(listeners: list[MishapListener], mishap: Mishap) -> None:
    """Tells all listeners, also when one of them fails."""
    tell_all(listeners, mishap)
