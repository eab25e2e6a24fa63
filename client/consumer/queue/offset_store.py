# SPDX-License-Identifier: Apache-2.0
"""The offsets of a group in each queue, kept by the brokers.

Offsets are noted in memory as messages are consumed, and told to the brokers every few seconds and
at the end. What a crash loses is consumed once more.

Java: OffsetStore, RemoteBrokerOffsetStore.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from txrocketmq.client.base.errors import MQBrokerError, MQClientError
from txrocketmq.client.consumer.queue.queue_life import Marks
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue


class OffsetStore(Protocol):
    """Keeps the offsets of one group."""

    marks: Marks
    """Messages that were seen, which tell whether the offsets count the queues that there are."""

    def note(self, queue: MessageQueue, offset: int) -> None:
        """Notes that all messages before `offset` are consumed; never moves an offset back."""

    def noted(self, queue: MessageQueue) -> int | None:
        """Returns the noted offset, or None if there is none."""

    def set(self, queue: MessageQueue, offset: int) -> None:
        """Notes the offset at which the group continues, even if that is further back."""

    async def load(self) -> None:
        """Makes sure that what is stored can be read."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset, or None if there is none."""

    async def persist(self, queues: Collection[MessageQueue]) -> None:
        """Stores the noted offsets of these queues."""

    async def commit(self, queue: MessageQueue) -> None:
        """Stores the noted offset of a queue and waits until that is done; raises errors."""

    def forget(self, queue: MessageQueue) -> None:
        """Forgets the noted offset of a queue, which no longer belongs to this client."""

    def table(self, topic: str) -> dict[MessageQueue, int]:
        """Returns the noted offsets of a topic (cloneOffsetTable)."""


class NotedOffsets:
    """Notes offsets in memory, as every store does."""

    def __init__(self) -> None:
        self._noted: dict[MessageQueue, int] = {}
        self.marks: Marks = {}

    def note(self, queue: MessageQueue, offset: int) -> None:
        """Notes that all messages before `offset` are consumed; never moves an offset back."""
        if offset > self._noted.get(queue, -1):
            self._noted[queue] = offset

    def noted(self, queue: MessageQueue) -> int | None:
        """Returns the noted offset, or None if there is none."""
        return self._noted.get(queue)

    def set(self, queue: MessageQueue, offset: int) -> None:
        """Notes the offset at which the group continues, even if that is further back."""
        self._noted[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Forgets the noted offset of a queue, which no longer belongs to this client."""
        self._noted.pop(queue, None)

    def table(self, topic: str) -> dict[MessageQueue, int]:
        """Returns the noted offsets of a topic (cloneOffsetTable)."""
        return {queue: at for queue, at in self._noted.items() if queue.topic == topic}


class BrokerOffsets(NotedOffsets):
    """The offsets of one group; see the module."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        super().__init__()
        self._instance = instance
        self._group = group

    async def load(self) -> None:
        """Does nothing, because the broker has the offsets."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the broker's offset of a queue, or None if it has none.

        Raises MQBrokerError, BrokerNotExist and the errors of the connection.
        """
        address = await self._instance.address_to_subscribe(queue)
        try:
            return await self._instance.api.consumer_offset(address, self._group, queue)
        except MQBrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def persist(self, queues: Collection[MessageQueue]) -> None:
        """Sends the noted offsets of these queues to the brokers, even those that were sent before.

        There is no answer, and a broker that restarts may have lost what it was sent before.
        """
        for queue in queues:
            offset = self._noted.get(queue)
            if offset is None:
                continue
            try:
                address = await self._instance.address_to_subscribe(queue)
            except (MQClientError, RemotingError):
                continue  # it is sent the next time, or the messages are consumed again
            self._instance.api.commit_offset(address, self._group, queue, offset)

    async def commit(self, queue: MessageQueue) -> None:
        """Sends the noted offset of a queue to the broker, and waits for its answer."""
        offset = self._noted.get(queue)
        if offset is not None:
            address = await self._instance.address_to_subscribe(queue)
            await self._instance.api.commit_offset_and_wait(address, self._group, queue, offset)
