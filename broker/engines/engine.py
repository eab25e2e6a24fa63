# SPDX-License-Identifier: Apache-2.0
"""Engines: what the broker does by itself with messages that wait.

Delay levels, timers, the check of half messages and the revival of popped messages are engines.
They run in slices (slices.py), wait for the disk by `reading`, rest on a slave, and tell what
happens to messages out of the ordinary by the same lists of listeners.

Java: has no counterpart; each of them is a ServiceThread or a timer there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from txrocketmq.broker.engines.role import Role
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.work.mishap import MishapListener
from txrocketmq.broker.work.patience import Patience, Reading


def _never() -> bool:
    return False


class Escapes(Protocol):
    """Where messages are delivered that cannot be written here (escape.py)."""

    def put(self, messages: Sequence[PutMessage], then: Callable[[list[bool]], None]) -> None:
        """Delivers messages; `then` gets which of them have arrived."""


class Engine(ABC):
    """Work on waiting messages; `tick` is to be called again and again."""

    def __init__(self, store: MessageStore, patience: Patience) -> None:
        self._role = Role(store.config)
        self.rests: Callable[[], bool] = _never
        """Whether a master does nothing yet, since it is not online."""
        self.escape: Escapes | None = None
        """Where a slave delivers that acts as master; None on a master."""
        self.escapes: Callable[[], bool] = _never
        """Whether it does so now."""
        self._works = False
        self.reading = Reading(patience)
        self.is_behind = False
        """Whether there is more to do at once than the last `tick` did."""
        self.on_unreadable: list[MishapListener] = []
        """Called when records cannot be read or understood, and are passed over."""

    def tick(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool] = _never) -> None:
        """Does what is due, until that is done or the time is up; nothing on a slave, or
        on a master that is not online yet.

        Pauses are measured by `steady_ms`.
        """
        self.is_behind = False
        if (self._role.writes or self.escapes()) and not self.rests():
            self._works = True
            self.work(now_ms, steady_ms, is_time_up)
        elif self._works:
            self.forget()

    def forget(self) -> None:
        """Forgets what was read, as a slave does not act as master any more: when it does so again,
        what the master has done counts.
        """
        self._works = False

    @abstractmethod
    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        """Does what is due, as `tick` says; sets `is_behind` if there is more to do at once."""


class DeliveryEngine(Engine):
    """An engine that delivers messages when they are due."""

    def __init__(self, store: MessageStore, patience: Patience) -> None:
        super().__init__(store, patience)
        self.on_refused: list[MishapListener] = []
        """Called when the store takes no messages for now, so that they wait on."""
        self.on_dead_letters: list[MishapListener] = []
        """Called when messages that can never go where they should are put aside for people."""
