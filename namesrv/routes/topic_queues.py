# SPDX-License-Identifier: Apache-2.0
"""The queues of all topics, by topic and broker name.

When a broker leaves or a topic is deleted, nobody finds it from that moment on, however many queues
it has; what is then left in the tables is cleaned up in steps. Invariant: a topic that is found has
at least one QueueData. Java: RouteInfoManager.topicQueueTable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import filterfalse
from typing import Final

from txrocketmq.remoting.protocol.body.route import QueueData

_TOPICS_A_STEP: Final = 8
_NAMES_A_STEP: Final = 64


class TopicQueues:
    """What brokers have registered of topics."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, QueueData]] = {}
        self._topics_of: dict[str, dict[str, None]] = {}
        """The topics of each broker name: the reverse of `_queues`."""
        self._leaving: dict[str, list[dict[str, None]]] = {}
        """By names of brokers that have left: their topics, whose queues are still in `_queues`.
        What such a broker registers since then is in `_topics_of`; all other queues of it count no
        more."""
        self._deleted: list[tuple[str, list[str]]] = []
        """Deleted topics, and the brokers that still have them in `_topics_of`."""

    def __len__(self) -> int:
        """How many topics there are, or some more while there is something to clean up."""
        return len(self._queues)

    def put(self, topic: str, queues: QueueData) -> None:
        """Adds or replaces the queues of a topic at a broker."""
        self._queues.setdefault(topic, {})[queues.broker_name] = queues
        self._topics_of.setdefault(queues.broker_name, {})[topic] = None

    def has(self, topic: str, broker_name: str) -> bool:
        """Whether a broker has the topic."""
        return topic in self._topics_of.get(broker_name, ()) and broker_name in self._queues.get(
            topic, ()
        )

    def of(self, topic: str) -> Mapping[str, QueueData]:
        """The queues of a topic by broker name."""
        queues = self._queues.get(topic, {})
        if not self._leaving:
            return queues
        return {
            name: each
            for name, each in queues.items()
            if name not in self._leaving or topic in self._topics_of.get(name, ())
        }

    def topics_of(self, broker_name: str) -> list[str]:
        """The topics of a broker at this moment."""
        return list(self._topics_of.get(broker_name, ()))

    def topics(
        self, wanted: Callable[[Mapping[str, QueueData]], bool] | None = None
    ) -> Iterator[list[str]]:
        """The names of topics, after some of them were looked at; `wanted` is asked about the
        queues of each, as they are then.
        """
        some: list[str] = []
        looked_at = 0
        for topic in list(self._queues):
            if wanted is None and not self._leaving:
                some.append(topic)
            else:
                queues = self.of(topic)
                looked_at += 3 + len(queues) // 4
                if queues and (wanted is None or wanted(queues)):
                    some.append(topic)
            looked_at += 1
            if looked_at >= _NAMES_A_STEP:
                yield some
                some, looked_at = [], 0
        yield some

    def set_perm(
        self,
        broker_name: str,
        change: Callable[[int], int],
        goes_on: Callable[[], bool] = lambda: True,
    ) -> Generator[None, None, int]:
        """Changes the permission of a broker's topics, some in each step; returns how many."""
        count = 0
        for looked_at, topic in enumerate(self.topics_of(broker_name), 1):
            if self.has(topic, broker_name):
                queue = self._queues[topic][broker_name]
                self.put(topic, dataclasses.replace(queue, perm=change(queue.perm)))
                count += 1
            if looked_at % _TOPICS_A_STEP == 0:
                yield
                if not goes_on():
                    break
        return count

    def remove(self, topic: str, broker_name: str) -> None:
        """Removes the queues of a topic at one broker."""
        queues = self._queues.get(topic, {})
        queues.pop(broker_name, None)
        if not queues:
            self._queues.pop(topic, None)
        self._forget_topic_of(broker_name, topic)

    def delete(self, topic: str, brokers: AbstractSet[str] | None) -> None:
        """Removes a topic everywhere, or at some brokers."""
        queues = self._queues.pop(topic, {})
        names: Iterable[str] = queues
        if brokers is not None:
            names = queues.keys() & brokers
            kept = list(filterfalse(brokers.__contains__, queues))
            if kept:
                self._queues[topic] = dict(zip(kept, map(queues.__getitem__, kept), strict=True))
        if names:
            self._deleted.append((topic, list(names)))

    def leave(self, broker_name: str) -> None:
        """Removes a broker with all of its queues."""
        topics = self._topics_of.pop(broker_name, None)
        if topics:
            self._leaving.setdefault(broker_name, []).append(topics)

    # -------------------------------------------------------------- cleaning

    @property
    def is_to_clean(self) -> bool:
        """Whether something is left for `cleaning`."""
        return bool(self._leaving or self._deleted)

    def cleaning(self) -> Generator[None, None, None]:
        """Removes what nobody finds any more, some of it in each step."""
        while self._deleted:
            topic, names = self._deleted.pop()
            for count, name in enumerate(names, 1):
                if name not in self._queues.get(topic, ()):
                    self._forget_topic_of(name, topic)
                if count % _TOPICS_A_STEP == 0:
                    yield
            yield
        while self._leaving:
            name, lives = next(iter(self._leaving.items()))
            yield from self._forget_lives(name, lives)
            del self._leaving[name]
            yield

    def _forget_lives(self, name: str, lives: list[dict[str, None]]) -> Generator[None, None, None]:
        count = 0
        while lives:
            topics = lives[0]
            while topics:
                topic, _ = topics.popitem()
                queues = self._queues.get(topic)
                if queues is not None and topic not in self._topics_of.get(name, ()):
                    queues.pop(name, None)
                    if not queues:
                        del self._queues[topic]
                count += 1
                if count % _TOPICS_A_STEP == 0:
                    yield
            del lives[0]

    def _forget_topic_of(self, broker_name: str, topic: str) -> None:
        topics = self._topics_of.get(broker_name, {})
        topics.pop(topic, None)
        if not topics:
            self._topics_of.pop(broker_name, None)
