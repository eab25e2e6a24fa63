# SPDX-License-Identifier: Apache-2.0
"""The offsets of a group in each queue, kept by the brokers.

Offsets are noted in memory as messages are consumed, and told to the brokers every few seconds and
at the end. What a crash loses is consumed once more.

Java: OffsetStore, RemoteBrokerOffsetStore.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from txrocketmq.client.errors import MQBrokerError, MQClientError
from txrocketmq.client.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue


class OffsetStore(Protocol):
    """Keeps the offsets of one group."""

    def note(self, queue: MessageQueue, offset: int) -> None:
        """All before this offset is consumed. An offset never goes back by this."""

    def noted(self, queue: MessageQueue) -> int | None:
        """What was noted last."""

    def set(self, queue: MessageQueue, offset: int) -> None:
        """The group goes on from there, wherever it was before."""

    async def load(self) -> None:
        """Makes sure that what is stored can be read."""

    async def read(self, queue: MessageQueue) -> int | None:
        """What is stored; None when nothing is."""

    async def persist(self, queues: Collection[MessageQueue]) -> None:
        """Stores what was noted of these queues."""

    async def commit(self, queue: MessageQueue) -> None:
        """Stores what was noted of a queue, and waits until it is; raises what goes wrong."""

    def forget(self, queue: MessageQueue) -> None:
        """The queue is somebody else's from now on."""

    def table(self, topic: str) -> dict[MessageQueue, int]:
        """What was noted of a topic (cloneOffsetTable)."""


class NotedOffsets:
    """The offsets that were noted and are not forgotten, which every store has in memory."""

    def __init__(self) -> None:
        self._noted: dict[MessageQueue, int] = {}

    def note(self, queue: MessageQueue, offset: int) -> None:
        """All before this offset is consumed. An offset never goes back by this."""
        if offset > self._noted.get(queue, -1):
            self._noted[queue] = offset

    def noted(self, queue: MessageQueue) -> int | None:
        """What was noted last."""
        return self._noted.get(queue)

    def set(self, queue: MessageQueue, offset: int) -> None:
        """The group goes on from there, wherever it was before."""
        self._noted[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """The queue is somebody else's from now on."""
        self._noted.pop(queue, None)

    def table(self, topic: str) -> dict[MessageQueue, int]:
        """What was noted of a topic (cloneOffsetTable)."""
        return {queue: at for queue, at in self._noted.items() if queue.topic == topic}


class BrokerOffsets(NotedOffsets):
    """The offsets of one group; see the module."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        super().__init__()
        self._instance = instance
        self._group = group

    async def load(self) -> None:
        """The broker has them."""

    async def read(self, queue: MessageQueue) -> int | None:
        """What the broker has; None when it has nothing.

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
        """Tells the brokers what was noted of these queues, whether they know it already or not.

        Nobody answers, and a broker may have forgotten what it was told before it stopped.
        """
        for queue in queues:
            offset = self._noted.get(queue)
            if offset is None:
                continue
            try:
                address = await self._instance.address_to_subscribe(queue)
            except (MQClientError, RemotingError):
                continue  # it is told later, or consumed again
            self._instance.api.commit_offset(address, self._group, queue, offset)

    async def commit(self, queue: MessageQueue) -> None:
        """Tells the broker what was noted of a queue, and waits for its answer."""
        offset = self._noted.get(queue)
        if offset is not None:
            address = await self._instance.address_to_subscribe(queue)
            await self._instance.api.commit_offset_and_wait(address, self._group, queue, offset)
