# SPDX-License-Identifier: Apache-2.0
"""The interface of what runs tasks, and the outcome of a task.

A task that ends with an error of ours ends alone, the others go on: doing it again would not help.
Any other error (a network, a disk) is the business of what runs the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from txrocketmq.spark.errors import SparkSourceError

Task = Callable[[], Any]
"""Picklable, as is what it gives."""


class Outcome(NamedTuple):
    """What became of a task: what it gave, or its error."""

    given: Any
    error: SparkSourceError | None

    def result(self) -> Any:
        """What it gave; its error is raised."""
        if self.error is not None:
            raise self.error
        return self.given


Runner = Callable[[Sequence[Task]], Iterator[tuple[int, Outcome]]]
"""Runs tasks, however; gives the number of each in the sequence and its outcome as they end. They
are begun in their order. Who stops listening stops what is not done."""


class Rate(NamedTuple):
    """How fast logs may be read."""

    bytes_per_second: int
    """By all tasks together that run at a time."""
    tasks_at_once: int
    """How many those are at most."""

    def of_each(self, tasks: int) -> int:
        """Bytes in a second for each of so many tasks."""
        return max(self.bytes_per_second // min(self.tasks_at_once, tasks), 1)


def run_here(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """Runs tasks in this process, one after the other."""
    for number, task in enumerate(tasks):
        yield number, outcome_of(task)


def outcome_of(task: Task) -> Outcome:
    """Runs a task; errors that are not ours are raised."""
    try:
        return Outcome(task(), None)
    except SparkSourceError as error:
        return Outcome(None, error)
