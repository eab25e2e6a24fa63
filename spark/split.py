# SPDX-License-Identifier: Apache-2.0
"""The pieces of stores that one task reads.

They travel from the planner to the tasks: small, pickled.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.store import Store


def even_parts(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """A range cut into so many parts of about one size, from and to before; none is empty."""
    edges = [start + (end - start) * number // count for number in range(count + 1)]
    return [(low, high) for low, high in pairwise(edges) if low < high]


class LogRange(NamedTuple):
    """The records that start in [start, end) of a commit log, bytes."""

    store: Store
    start: int
    end: int
    first_is_boundary: bool
    """A record, or a blank, is known to begin at `start`; else the next one is looked for."""
    with_light_queues: bool = False
    """Those that are wanted are read with it: see `spark.light_queues`."""


class QueuePicks(NamedTuple):
    """The records of some queues that start in [start, end) of a commit log.

    The task reads the queues' units, so that the split stays small whatever is in them.
    """

    store: Store
    start: int
    end: int
    queues: tuple[tuple[str, int], ...]
    """Topic and number of the queue; a light queue is alone."""

    @property
    def light_queue(self) -> str | None:
        """The light queue whose messages the records are read as."""
        topic = self.queues[0][0]
        return topic if topic.startswith(LMQ_PREFIX) else None


class CoveredPicks(NamedTuple):
    """Of the records that start in [start, end) those that conditions or a stream's options want.

    The task finds them by all the consume queues, as far as these account for every byte of the
    log, and by the log itself where they do not: see `spark.covered`.
    """

    store: Store
    start: int
    end: int
    first_is_boundary: bool
    """As of a LogRange."""


Split = LogRange | QueuePicks | CoveredPicks
