# SPDX-License-Identifier: Apache-2.0
"""Topics of which a slave has messages, but which are not in the table that it copied.

The master may have made them after the last copy of its topics.

Their messages have come with the log, and senders were told that they are stored, but the topics
are copied every ten seconds only. If such a slave becomes the master, or acts as one, nobody could
read them. So it creates the topics when it stops in order, and when it begins to act; the next copy
replaces them by what the master has, if there is one.

Or the master has deleted them. What was stored before the last copy was asked for belongs to such a
topic, and its queues are removed. Otherwise, if the topic is made again, its queues would go on
behind the old messages. Two copies in succession have to lack it, since a page of a table that
changes meanwhile may skip a topic. The table has to be there as a whole, and has to name a topic
that is not a system topic: a master that has lost its topics takes nothing away. After a crash
there is no telling, and the start creates all (lost_files.py); the next copies end that.

Java: has no counterpart. New topics are missing there until somebody creates them, and queues of
deleted ones stay until a slave is sent CLEAN_UNUSED_TOPIC.
"""

from __future__ import annotations

from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import AtStop, Life, Opening
from txrocketmq.remoting.message.topics import LMQ_PREFIX


class NewTopics:
    """Creates topics that have messages which came after the last copy, and removes the queues of
    those that were deleted before it.
    """

    def __init__(self, topics: Topics, store: MessageStore) -> None:
        self._topics = topics
        self._store = store
        self._asked_at = self._known_to = 0
        """Where this slave's log ended when the topics were asked for, and when those were asked
        for that it has."""
        self._is_removal_due = True
        self._missing: set[str] = set()
        """Topics with queues that the last copy lacked."""

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

    def copied(self, *, are_others: bool = True) -> None:
        """Notes that they are known as they were then, and whether that is a change."""
        self._known_to = self._asked_at
        self._is_removal_due |= are_others

    def remove(self) -> Steps[None]:
        """Removes the queues of topics that this copy and the one before it lack; looks at one
        topic in each step.

        What of the log is not in queues yet may belong to such a topic. Then it is all looked at
        once more after the next copy, and so it is if a topic has messages that came since.
        """
        if not self._is_removal_due:
            return
        missing, self._missing = self._missing, set()
        if not (yield from self._is_any_known()):
            return
        self._is_removal_due = self._store.dispatched_offset < self._known_to
        removed = 0
        for name in self._store.topics():
            yield
            if self._topics.get(name) is not None or self._is_own(name):
                continue
            if self._store.end_of(name) <= self._known_to and name in missing:
                removed += self._store.delete_topic(name, self._known_to)
                continue
            self._is_removal_due = True
            if self._store.end_of(name) <= self._known_to:
                self._missing.add(name)
        if removed:
            notices.removed_topics(removed)

    def _is_any_known(self) -> Steps[bool]:
        for each in self._topics.all():
            yield
            if not self._is_own(each):
                return True
        return False

    def _is_own(self, name: str) -> bool:
        return self._topics.is_system(name) or name.startswith(LMQ_PREFIX)

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
