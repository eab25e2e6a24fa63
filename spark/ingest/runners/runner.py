# SPDX-License-Identifier: Apache-2.0
"""The interface of what runs tasks, and the outcome of a task.

A task that fails with a SparkSourceError fails alone, since repeating it would not help; the other
tasks go on. What happens after any other error, as of a network or a disk, is up to the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from txrocketmq.spark.arrow.errors import SparkSourceError

Task = Callable[[], Any]
"""A task; it and its result can be pickled."""


class Outcome(NamedTuple):
    """The outcome of a task: its result or its error."""

    given: Any
    error: SparkSourceError | None

    def result(self) -> Any:
        """Returns the result, or raises the error."""
        if self.error is not None:
            raise self.error
        return self.given


Runner = Callable[[Sequence[Task]], Iterator[tuple[int, Outcome]]]
"""Runs tasks, begun in their order, and yields the number and the outcome of each as it ends.
Closing the iterator stops the tasks that are left.
"""


class Rate(NamedTuple):
    """A limit on how fast logs are read."""

    bytes_per_second: int
    """The limit for all tasks that run at the same time, together."""
    tasks_at_once: int
    """How many tasks run at the same time at most."""

    def of_each(self, tasks: int) -> int:
        """Returns the limit for each of so many tasks, in bytes per second."""
        return max(self.bytes_per_second // min(self.tasks_at_once, tasks), 1)


def run_here(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """Runs tasks in this process, one after the other."""
    for number, task in enumerate(tasks):
        yield number, outcome_of(task)


def outcome_of(task: Task) -> Outcome:
    """Runs a task; raises errors that are not a SparkSourceError."""
    try:
        return Outcome(task(), None)
    except SparkSourceError as error:
        return Outcome(None, error)
