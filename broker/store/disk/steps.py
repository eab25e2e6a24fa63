# SPDX-License-Identifier: Apache-2.0
"""Steps: long work in pieces, between which other work is done.

    stored_ms = yield from when_in_memory(partial(store.store_time_at, topic, queue_id, offset))

A step that needs what is not in memory yields the ColdRead that loads it: the caller has that done
in a thread before it takes the next step.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Protocol, TypeVar

from txrocketmq.broker.store.disk.in_memory import ColdRead, NotInMemory

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Step = Any
"""None, or a ColdRead that is to be done before the next step. (Type checkers want a value in every
`yield` that may have one.)"""
Steps = Generator[Step, None, T]
"""A generator that pauses after each small step and returns a T. What it works on may change while
it pauses."""

MOST_READS: Final = 64
"""How often one question may wait for the disk; a search in a queue waits for each of its steps."""


class Ask(Protocol[T_co]):
    """Looks something up; with `only_in_memory`, raises NotInMemory instead of waiting for the
    disk.
    """

    def __call__(self, *, only_in_memory: bool) -> T_co: ...


def when_in_memory(ask: Ask[T]) -> Steps[T]:
    """Returns the result of `ask` as soon as all that it needs is in memory.

    In the end it is asked without that condition: on a machine with too little memory, what was
    read may be gone again.
    """
    for _ in range(MOST_READS):
        try:
            return ask(only_in_memory=True)
        except NotInMemory as cold:
            read = cold.read
        yield read
    return ask(only_in_memory=False)


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
