# SPDX-License-Identifier: Apache-2.0
"""Steps: long work in pieces, between which other work is done.

    stored_ms = yield from when_in_memory(partial(store.store_time_at, topic, queue_id, offset))

A step that needs what is not in memory yields the ColdRead that loads it: the caller has that done
in a thread before it takes the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, TypeVar

from txrocketmq.broker.store.disk.in_memory import ColdRead, InMemory, NotYet

T = TypeVar("T")

Step = Any
"""None, or what is to come before the next step: mostly a ColdRead. (Type checkers need a value in
every `yield` that may have one.)"""
Steps = Generator[Step, None, T]
"""A generator that pauses after each small step and returns a T. Things may change meanwhile."""

MOST_READS: Final = 64
"""How often one question may wait for the disk; a search in a queue waits for each of its steps."""


def when_in_memory(ask: Callable[[], T]) -> Steps[T]:
    """Returns the result of `ask` as soon as all that it needs is in memory.

    It is asked again after each read. In the end the disk is waited for: on a machine with too
    little memory, what was read may be gone again.
    """
    return patient(lambda: _single(ask))


def patient(ask: Callable[[], Steps[T]]) -> Steps[T]:
    """Takes the steps that `ask` makes, and begins again with them whenever something had to be
    awaited; at last as above.
    """
    read: ColdRead
    left = MOST_READS
    while left:
        try:
            return (yield from ask())
        except NotYet as reason:
            awaited = reason.awaited
        if isinstance(awaited, ColdRead):
            read = awaited
            left -= 1
        yield awaited
    return (yield from _waiting(read.memory, ask()))


def as_far_as_in_memory(steps: Steps[None], has_enough: Callable[[], object]) -> Steps[None]:
    """Takes steps, but ends them where they would have to wait, if there is enough."""
    try:
        yield from steps
    except NotYet:
        if not has_enough():
            raise


def items_in_memory(items: Iterable[T]) -> Iterator[T]:
    """Yields the items before the first one that is not in memory, or not there yet for another
    reason; raises NotInMemory, or NotYet, if that is the first of all.
    """
    is_first, following = True, iter(items)
    while True:
        try:
            item = next(following)
        except StopIteration:
            return
        except NotYet:
            if is_first:
                raise
            return
        is_first = False
        yield item


def _single(ask: Callable[[], T]) -> Steps[T]:
    return ask()
    yield


def _waiting(memory: InMemory, steps: Steps[T]) -> Steps[T]:
    while True:
        with memory.waiting():
            try:
                step = next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
        yield step


def finished(steps: Steps[T]) -> T:
    """Takes all steps at once, for tests and tools that nobody waits for."""
    try:
        while True:
            read: ColdRead | None = next(steps)
            if read is not None:
                read.run()
                read.finish()
    except StopIteration as end:
        result: T = end.value
        return result
