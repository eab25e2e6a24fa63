# SPDX-License-Identifier: Apache-2.0
"""What the faces for programs without Twisted have in common: the client runs in a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from txrocketmq.client.faces.faces import Life, remember
from txrocketmq.client.thread import leftovers as forgotten
from txrocketmq.client.thread.reactor_thread import ReactorThread, settle_future

END_MS: Final = 3_000
"""How long the shutdown of a forgotten object may take at the end of the program."""


class ThreadedFace:
    """Base of faces whose core works in the client's thread."""

    _core_class: type

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._thread = ReactorThread.take()
        try:
            self._life: Life = self._thread.ask(
                lambda: Life(
                    self._core_class, self._thread.instances, arguments, settings, self._adapt
                )
            )
        except BaseException:
            self._thread.leave()
            raise
        self._has_left = False

    def __del__(self) -> None:
        if not getattr(self, "_has_left", True) and not self._life.is_started:
            self._thread.call_there(self._life.abandon)
            self._leave()

    def _begin_life(self) -> None:
        """Notes that the program has to shut the object down."""
        remember(self, self._life, self._end_at_exit)

    def _end_life(self) -> None:
        """Notes that the object was shut down, or could not be started."""
        forgotten.closed(self)
        self._leave()

    def _is_of_parent(self) -> bool:
        """Whether the process was forked after the start: the parent shuts the object down then."""
        if self._thread.is_alive:
            return False
        forgotten.closed(self)
        self._has_left = True
        return True

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self._thread.leave()

    def _end_at_exit(self) -> None:
        future: Future[Any] = Future()
        with suppress(Exception):
            self._thread.begin(self._life.shutdown, lambda outcome: settle_future(future, outcome))
            future.result(END_MS / 1000)

    def _adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes a function of the program one that the core can wait for."""
        raise NotImplementedError
