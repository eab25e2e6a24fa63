# SPDX-License-Identifier: Apache-2.0
"""Topics of a slave that the master made after the last copy of its topics.

Their messages have come with the log, and senders were told that they are stored, but the topics
are copied every ten seconds only. If such a slave becomes the master, or acts as one, nobody could
read them. So it creates the topics when it stops in order, and when it begins to act; the next copy
replaces them by what the master has, if there is one.

A topic without a name in the table may also be one that was deleted: its queues stay on a slave
until the log has lost their messages. What was stored before the last copy was asked for belongs to
such a topic. After a crash there is no telling, and the start creates all (lost_files.py).

Java: has no counterpart; the topics are missing there until somebody creates them.
"""

from __future__ import annotations

from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import AtStop, Life, Opening


class NewTopics:
    """Creates topics that have messages which came after the last copy."""

    def __init__(self, topics: Topics, store: MessageStore) -> None:
        self._topics = topics
        self._store = store
        self._asked_at = self._known_to = 0
        """Where this slave's log ended when the topics were asked for, and when those were asked
        for that it has."""

    def life(self) -> Life:
        """They are created at the end."""
        return Life(
            "new topics of the master",
            opens=self._opened,
            at_stop=(AtStop("creating new topics", lambda _: finished(self.create())),),
        )

    def _opened(self, _: Opening) -> tuple[str, ...]:
        self._known_to = self._store.max_physical_offset
        return ()

    def asked(self) -> None:
        """Notes that the topics of the master are asked for now."""
        self._asked_at = self._store.max_physical_offset

    def copied(self) -> None:
        """Notes that they are known as they were then."""
        self._known_to = self._asked_at

    def create(self) -> Steps[None]:
        """Creates those that are not known yet, and looks at one topic in each step."""
        created = 0
        for name in self._store.topics():
            yield
            if self._topics.get(name) is None and self._store.end_of(name) > self._known_to:
                queues = {name: max(self._store.queue_ids(name), default=0) + 1}
                created += self._topics.restore(
                    queues, after_crash=True, has_batches=self._store.has_batches
                )
        if created:
            notices.created_new_topics(created)
