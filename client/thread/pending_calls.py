# SPDX-License-Identifier: Apache-2.0
"""Results of calls that were begun and not waited for.

A coroutine function that returns a `Started` begins something, from which each face makes its own
kind of future. A function that is marked with `begun_by` has a second form: a method that begins
the same work and calls back with the result, for faces that do not need a coroutine.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_MARK: Final = "_begun_by"
_ROOM: Final = "_room_of"


class Started(Generic[T]):
    """Something that has begun; a coroutine function would wait for a bare Deferred."""

    def __init__(self, result: Deferred[T]) -> None:
        self.result = result


class Cancellable(Protocol):
    """Something that has begun and can be cancelled."""

    def cancel(self) -> object:
        """Cancels it, unless it is over."""


Begin = Callable[..., Cancellable | None]
"""Begins something. The first argument is called once, with the result or with a Failure. The
result None means that it is over already. If it raises, nothing was begun."""


WayToBegin = Callable[[Any], Begin | None]
"""Returns the method of an object of the core that begins the work, or None if it cannot be used.
"""


class Room(Protocol):
    """What may have so much to begin that callers should wait, who do not wait for results."""

    @property
    def is_behind(self) -> bool:
        """Whether it has; any thread may ask."""

    def caught_up(self) -> Coroutine[Deferred[Any], Any, None]:
        """Waits until it has less to do; to be called in the client's thread."""


def begun_by(
    method: str,
    *,
    unless: Callable[[Any], bool] | None = None,
    room: Callable[[Any], Room] | None = None,
) -> Callable[[F], F]:
    """Marks a coroutine function for which another method begins the same work.

    `room` returns what holds up callers of a function that gives a `Started`.
    """
    method_of: WayToBegin = attrgetter(method)

    def usable(core: Any) -> Begin | None:
        return None if unless is not None and unless(core) else method_of(core)

    def mark(function: F) -> F:
        setattr(function, _MARK, method_of if unless is None else usable)
        setattr(function, _ROOM, room)
        return function

    return mark


def way_to_begin(function: Callable[..., Any]) -> WayToBegin | None:
    """Returns the mark of `begun_by`, or None."""
    return getattr(function, _MARK, None)


def room_of(function: Callable[..., Any]) -> Callable[[Any], Room] | None:
    """Returns the function `room` of the mark of `begun_by`, or None."""
    return getattr(function, _ROOM, None)


def begun(begin: Begin, *arguments: Any, **named: Any) -> Deferred[Any]:
    """Returns a Deferred of what is begun; cancelling it cancels that."""
    running: Cancellable | None = None

    def cancel(_: object) -> None:
        if running is not None:
            running.cancel()

    result: Deferred[Any] = Deferred(cancel)
    running = begin(result.callback, *arguments, **named)
    return result
