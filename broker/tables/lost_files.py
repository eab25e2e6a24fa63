# SPDX-License-Identifier: Apache-2.0
"""Files of `config/` that were lost, or are ahead of the log: as far as possible it is made up for.

The tables and the store are compared when all of them are open. Java: has no counterpart; a broker
there goes on with what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass

from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.subscription import SubscriptionGroups, is_system_group
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.life import Life


@dataclass(frozen=True, slots=True)
class LostFiles:
    """Compares topics, groups and offsets with the queues of the store."""

    topics: Topics
    groups: SubscriptionGroups
    offsets: ConsumerOffsets
    store: MessageStore

    def life(self) -> Life:
        """They are looked for when the store is open."""
        return Life("lost files", opens=lambda now: self.restore(after_crash=now.after_crash))

    def restore(self, *, after_crash: bool = False) -> list[str]:
        """Makes up for lost files, once the store is open; returns warnings about them."""
        store = self.store
        queue_nums = {name: max(store.queue_ids(name), default=0) + 1 for name in store.topics()}
        said = self._lost_topics(queue_nums, after_crash=after_crash)
        said += self._offsets_ahead(after_crash=after_crash)
        queues = sum(
            store.max_offset(name, each) > store.min_offset(name, each)
            for name in queue_nums
            for each in store.queue_ids(name)
        )
        return said + self._lost_groups(queues) if queues else said

    def _lost_topics(self, queue_nums: dict[str, int], *, after_crash: bool) -> list[str]:
        restored = self.topics.restore(
            queue_nums, after_crash=after_crash, has_batches=self.store.has_batches
        )
        if not restored:
            return []
        return [
            (
                f"topics.json did not name {restored} topics that have queues in the store: they"
                " were created again, with default permissions and as many queues as have had"
                " messages"
            )
        ]

    def _offsets_ahead(self, *, after_crash: bool) -> list[str]:
        if self.store.max_physical_offset <= 0 and any(
            offset > 0 for _, its in self.offsets.entries() for offset in its.values()
        ):
            return [
                (
                    "consumerOffset.json has offsets of messages that were consumed, but the store"
                    " has no log: is another volume mounted there, or none? Nothing has been"
                    " changed, but new messages are accepted"
                )
            ]
        if after_crash and (behind := self.offsets.set_back(self.store.max_offset)):
            return [
                (
                    f"{behind} offsets of groups were beyond the ends of their queues, whose last"
                    " messages were not durable yet: the groups continue at the ends"
                )
            ]
        return []

    def _lost_groups(self, queues: int) -> list[str]:
        """Returns warnings about lost groups and offsets; `queues` have messages."""
        said: list[str] = []
        groups = {name for name in self.groups.all() if not is_system_group(name)}
        is_missing = self.groups.is_missing
        if is_missing:
            lost = len({key.split("@")[1] for key, _ in self.offsets.entries()} - groups)
            said.append(
                f"subscriptionGroup.json is missing, and so is its .bak: the {lost} groups that"
                " have offsets, and all others that existed, are created again with default"
                " settings when their consumers connect"
            )
        if self.offsets.is_empty and (groups or is_missing):
            said.append(
                f"consumerOffset.json holds no offsets, though there are {len(groups)} groups and"
                f" {queues} queues with messages: the groups begin like new ones"
            )
        return said
