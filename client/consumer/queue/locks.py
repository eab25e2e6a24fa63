# SPDX-License-Identifier: Apache-2.0
"""The locks of an orderly consumer: brokers give each queue to one member of a group at a time.

A lock ends after 60 s at the broker, so the client requests its locks again every 20 s; after 30 s
without an answer it no longer relies on them. Only masters lock queues.

Java: the lock and unlock methods of RebalanceImpl.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.heartbeat import LockBatchRequestBody, UnlockBatchRequestBody

LOCK_INTERVAL_MS = 20_000
FIRST_LOCK_MS = 1_000
TIMEOUT_MS = 1_000

log = Logger()


class QueueLocks:
    """The locks of one consumer."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def lock(self, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Asks the brokers to lock queues for this client; returns those that they have locked.

        A broker that does not answer locks none of its queues, which is logged.
        """
        answers = [
            Deferred.fromCoroutine(self._lock(address, its))
            for address, its in self._by_master(queues)
        ]
        granted: set[MessageQueue] = set()
        for found in await gatherResults(answers):
            granted |= found or set()
        return granted

    async def renew(self, process_queues: Collection[ProcessQueue]) -> None:
        """Locks queues of this client again; those that a broker refuses are not locked any more.

        If a broker does not answer, its queues stay as they are, until their locks expire.
        """
        of_queue = {each.queue: each for each in process_queues if not each.dropped}
        for address, queues in self._by_master(of_queue):
            granted = await self._lock(address, queues)
            if granted is None:
                continue
            for queue in queues:
                process_queue = of_queue[queue]
                process_queue.locked = queue in granted
                if process_queue.locked:
                    process_queue.last_lock_ms = self._instance.clock.steady_ms()
                else:
                    log.warn("queue {queue} is locked by another client", queue=queue)

    async def renew_one(self, process_queue: ProcessQueue) -> bool:
        """Locks one queue again; returns whether it is locked now."""
        granted = await self.lock([process_queue.queue])
        if process_queue.queue not in granted:
            return False
        process_queue.locked = True
        process_queue.last_lock_ms = self._instance.clock.steady_ms()
        return True

    def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Unlocks queues; there is no answer."""
        for address, its in self._by_master(queues):
            self._instance.api.unlock_queues(address, self._unlocking(its))

    async def unlock_all(self, process_queues: Collection[ProcessQueue]) -> None:
        """Unlocks queues, and waits for the answers of the brokers."""
        for address, its in self._by_master(each.queue for each in process_queues):
            try:
                await self._instance.api.unlock_queues_and_wait(
                    address, self._unlocking(its), TIMEOUT_MS
                )
            except (MQClientError, RemotingError) as error:
                log.warn(
                    "unlocking queues at {address} failed: {error}", address=address, error=error
                )
        for each in process_queues:
            each.locked = False

    async def _lock(self, address: str, queues: list[MessageQueue]) -> set[MessageQueue] | None:
        """Returns the queues that one broker has locked, or None if it does not answer."""
        body = LockBatchRequestBody(
            consumer_group=self._group,
            client_id=self._instance.client_id,
            mq_set=frozenset(queues),
        )
        try:
            return set(await self._instance.api.lock_queues(address, body, TIMEOUT_MS))
        except (MQClientError, RemotingError) as error:
            log.warn("locking queues at {address} failed: {error}", address=address, error=error)
            return None

    def _unlocking(self, queues: list[MessageQueue]) -> UnlockBatchRequestBody:
        return UnlockBatchRequestBody(
            consumer_group=self._group,
            client_id=self._instance.client_id,
            mq_set=frozenset(queues),
        )

    def _by_master(self, queues: Iterable[MessageQueue]) -> list[tuple[str, list[MessageQueue]]]:
        """Groups queues by the address of their master; queues without a master are left out."""
        found: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            address = self._instance.brokers.to_publish(queue.broker_name)
            if address is not None:
                found.setdefault(address, []).append(queue)
        return list(found.items())
