# SPDX-License-Identifier: Apache-2.0
"""The pieces of stores that one task reads.

They are pickled and sent from the planner to the tasks, so they are small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.store.store import Store

TOGETHER_BYTES: Final = 128 << 20
"""One task reads neighbouring files of up to so many bytes; the task itself costs some 40 ms."""
FILE_BYTES: Final = 512 << 10
"""To begin with a file of the log costs as much as to read so many bytes."""


def even_parts(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """Cuts a range into `count` parts of about the same size; empty parts are left out."""
    edges = [start + (end - start) * number // count for number in range(count + 1)]
    return [(low, high) for low, high in pairwise(edges) if low < high]


def joined(files: Iterable[tuple[int, int]], most: int | None = None) -> Iterator[tuple[int, int]]:
    """Joins neighbouring ranges of small files of a log; no result joins more than `most` bytes."""
    together = TOGETHER_BYTES if most is None else min(most, TOGETHER_BYTES)
    begin = after = room = 0
    for start, end in files:
        cost = max(end - start, FILE_BYTES)
        if start != after or cost > room:
            if begin < after:
                yield begin, after
            begin, room = start, together
        after = end
        room -= cost
    if begin < after:
        yield begin, after


class LogRange(NamedTuple):
    """The records that start in [start, end) of a commit log; offsets are bytes.

    Wanted light queues are read along with it: see `spark.light_queues`.
    """

    store: Store
    start: int
    end: int
    first_is_boundary: bool
    """Whether a record or a blank is known to begin at `start`; otherwise one is searched for."""


class QueuePicks(NamedTuple):
    """The records of some queues that start in [start, end) of a commit log.

    The task reads the units of the queues, so the split stays small.
    """

    store: Store
    start: int
    end: int
    queues: tuple[tuple[str, int], ...]
    """Topic and number of each queue; a light queue is always alone."""

    @property
    def light_queue(self) -> str | None:
        """The light queue whose messages the records are read as, if it is one."""
        topic = self.queues[0][0]
        return topic if topic.startswith(LMQ_PREFIX) else None


class CoveredPicks(NamedTuple):
    """The records in [start, end) that the option `where` or a stream's options want.

    The task finds them by all the consume queues, as far as these account for every byte of the
    log, and by the log itself where they do not: see `spark.covered`.
    """

    store: Store
    start: int
    end: int
    first_is_boundary: bool
    """See LogRange."""


Split = LogRange | QueuePicks | CoveredPicks
