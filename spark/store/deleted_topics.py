# SPDX-License-Identifier: Apache-2.0
"""Which messages of a log are of topics that were deleted.

A topic that is deleted loses its queues at once, and its messages stay in the log until retention
deletes the files. Reads give these messages as all others, whatever else they ask for and however
large the log is: the log decides what the rows are, and not what happened to a topic later. So
queues may stand for the log only where they have all messages of a topic. That is from the first
message on that any of its queues has, since an earlier topic of that name lost all of them at once.
A light queue is a topic in this, too.

Java: DefaultMessageStore.deleteTopics, which leaves no trace; a broker of txrocketmq leaves a file
in the folder `deleted`, see broker/store/queues/deleted_topics.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.spark.arrow.threads import asked
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.store import Store

_NOTES: Final = "deleted"
EVERYTHING: Final = 1 << 63
"""An offset behind every log."""


def known_from(queues: Sequence[Queue]) -> int:
    """Returns the place in the log from which on the queues of a topic know all of its messages.

    It is EVERYTHING for a topic whose queues have none.
    """
    return all_known_from([queues])


def all_known_from(topics: Sequence[Sequence[Queue]], start: int = -1) -> int:
    """Returns from where on the queues of each topic know all of its messages.

    It does not matter where that is if it is not after `start`, so no more queues are asked than it
    takes to know this. It does no harm to give only some queues of a topic: the place may be a
    later one then.
    """
    found = [EVERYTHING] * len(topics)
    open_topics = list(range(len(topics)))
    at, count = 0, 1
    while open_topics:
        some = [(number, each) for number in open_topics for each in topics[number][at:][:count]]
        is_remote = any(queue.files.is_remote for _, queue in some[:1])
        places = asked(lambda each: each[1].first_physical(), some, is_remote=is_remote)
        for (number, _), place in zip(some, places, strict=True):
            found[number] = min(found[number], EVERYTHING if place is None else place)
        at, count = at + count, count * 8
        open_topics = [n for n in open_topics if found[n] > start and at < len(topics[n])]
    return max(found, default=EVERYTHING)


class DeletedTopics:
    """What a store tells about topics that were deleted, even if they were made again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._topics = store.config.topics()
        self._until: dict[str, int] = {}

    def until(self, topic: str) -> int:
        """Returns the place in the log before which messages of the topic are of a deleted one.

        That is 0 if it was never deleted, and EVERYTHING if it was and does not exist.
        """
        if topic not in self._until:
            self._until[topic] = max(self._noted(topic), self._by_queues(topic))
        return self._until[topic]

    def _by_queues(self, topic: str) -> int:
        queues = self._store.queues_of(topic)
        if not queues:
            return 0 if topic in self._topics else EVERYTHING
        if all(queue.first_offset() == 0 for queue in queues):
            return known_from(queues)
        return 0

    def _noted(self, topic: str) -> int:
        try:
            text = self._store.files.read(f"{self._store.path}/{_NOTES}/{topic}")
        except OSError:
            return 0
        return int(text) if text.isdigit() else 0
