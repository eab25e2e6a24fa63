# SPDX-License-Identifier: Apache-2.0
"""Results of calls that were begun and not waited for.

A coroutine function that returns a `Started` begins something, from which each face makes its own
kind of future. A function that is marked with `begun_by` has a second form: a method that begins
the same work and calls back with the result, for faces that do not need a coroutine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_MARK: Final = "_begun_by"


class Started(Generic[T]):
    """`result` fires when it is done; a Deferred alone would be waited for."""

    def __init__(self, result: Deferred[T]) -> None:
        self.result = result


class Cancellable(Protocol):
    """What was begun."""

    def cancel(self) -> object:
        """Ends it, unless it is over."""


Begin = Callable[..., Cancellable | None]
"""Begins something with the arguments after the first one, which is called with the result or with
a Failure, once. None: it is over. What raises an exception was not begun."""


class Begun(NamedTuple):
    """The method that begins the same, and when it does not."""

    method: str
    unless: Callable[[Any], bool] | None

    def of(self, core: Any) -> Begin | None:
        """That of an object of the core."""
        if self.unless is not None and self.unless(core):
            return None
        begin: Begin = getattr(core, self.method)
        return begin


def begun_by(method: str, *, unless: Callable[[Any], bool] | None = None) -> Callable[[F], F]:
    """Marks a coroutine function whose result, or that of its Started, another method begins."""

    def mark(function: F) -> F:
        setattr(function, _MARK, Begun(method, unless))
        return function

    return mark


def way_to_begin(function: Callable[..., Any]) -> Begun | None:
    """What a function was marked with."""
    return getattr(function, _MARK, None)


def begun(begin: Begin, *arguments: Any, **named: Any) -> Deferred[Any]:
    """A Deferred of what is begun; raises what could not be begun."""
    running: Cancellable | None = None

    def cancel(_: object) -> None:
        if running is not None:
            running.cancel()

    result: Deferred[Any] = Deferred(cancel)
    running = begin(result.callback, *arguments, **named)
    return result
