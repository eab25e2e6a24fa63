# SPDX-License-Identifier: Apache-2.0
"""The queues that a member of a group pulls: it takes them, reads them and gives them up.

In order, a queue is locked at its broker before it is taken, and unlocked once its listener is done
with what was pulled. Java: RebalancePushImpl, RebalanceImpl.updateProcessQueueTableInRebalance.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterator, Sequence
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.group.rebalance import Rebalance
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.consumer.listening.concurrent import ConcurrentConsumption
from txrocketmq.client.consumer.listening.orderly import OrderlyConsumption
from txrocketmq.client.consumer.listening.running_calls import no_longer_than
from txrocketmq.client.consumer.pulling.pull_loops import Pulling
from txrocketmq.client.consumer.queue.first_offset import first_offset
from txrocketmq.client.consumer.queue.locks import QueueLocks
from txrocketmq.client.consumer.queue.offset_store import OffsetStore
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue

UNLOCK_DELAY_MS: Final = 20_000
"""For how long unlocking a queue that is given up waits for its listener (unlockDelayTimeMills)."""
LOCK_AGAIN_MS: Final = 500
"""After how long to look again for queues that another client still had locked."""

log = Logger()


class PulledQueues:
    """See the module; `locks` is None unless messages are consumed in order."""

    def __init__(
        self,
        instance: ClientInstance,
        config: PushConsumerConfig,
        subscriptions: Subscriptions,
        offsets: OffsetStore,
        consumption: ConcurrentConsumption | OrderlyConsumption,
        puller: Pulling,
        rebalance: Rebalance,
        locks: QueueLocks | None,
    ) -> None:
        self._instance = instance
        self._clock = instance.clock
        self._config = config
        self._subscriptions = subscriptions
        self._offsets = offsets
        self._consumption = consumption
        self._puller = puller
        self._rebalance = rebalance
        self._locks = locks
        self._reading: dict[MessageQueue, ProcessQueue] = {}
        self._leaving: set[MessageQueue] = set()
        """Queues that are given up and not unlocked yet."""
        self._pulls: dict[ProcessQueue, Deferred[None]] = {}
        self._is_over = False

    def __iter__(self) -> Iterator[MessageQueue]:
        return iter(self._reading)

    @property
    def process_queues(self) -> Collection[ProcessQueue]:
        """What is pulled and not consumed yet, of each queue."""
        return self._reading.values()

    def of_topic(self, topic: str) -> set[MessageQueue]:
        """Returns the queues of a topic that are read."""
        return {queue for queue in self._reading if queue.topic == topic}

    def not_pulled_for_long(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        """Returns those of the queues whose reading has come to a standstill."""
        steady_ms = self._clock.steady_ms()
        return {queue for queue in queues if self._reading[queue].is_pull_expired(steady_ms)}

    async def take(self, queues: Collection[MessageQueue]) -> int:
        """Takes queues and reads them from then on; returns how many could be taken."""
        taken = 0
        for queue in await self._locked(sorted(set(queues) - self._leaving)):
            taken += await self._take(queue)
        return taken

    async def give_up(self, queue: MessageQueue) -> None:
        """Reads a queue no more, and commits its offset."""
        process_queue = self._reading.pop(queue, None)
        if process_queue is None:
            return
        process_queue.dropped = True
        self._puller.queues = len(self._reading)
        pull = self._pulls.get(process_queue)
        if pull is not None:
            pull.cancel()
        await self._offsets.persist([queue])
        self._offsets.forget(queue)
        if self._locks is not None:
            self._leaving.add(queue)
            spawn(self._unlock(process_queue), f"unlocking queue {queue}")

    def stop(self) -> None:
        """Pulls no more; what was pulled may still be consumed."""
        self._is_over = True
        for pull in list(self._pulls.values()):
            pull.cancel()

    async def leave(self) -> None:
        """Gives up all queues at once, after `stop`: commits their offsets, and unlocks them."""
        for process_queue in self._reading.values():
            process_queue.dropped = True
        await self.persist()
        if self._locks is not None:
            await self._locks.unlock_all(list(self._reading.values()))
        self._reading.clear()

    async def persist(self) -> None:
        """Commits the offsets of all queues."""
        await self._offsets.persist(list(self._reading))

    def renew_locks(self) -> None:
        """Locks all queues again."""
        assert self._locks is not None
        spawn(self._locks.renew(list(self._reading.values())), "renewing locks")

    async def _locked(self, queues: Sequence[MessageQueue]) -> Sequence[MessageQueue]:
        """Returns the queues that may be read: all, or in order those that could be locked."""
        if self._locks is None or not queues:
            return queues
        granted = await self._locks.lock(queues)
        if len(granted) < len(queues):
            self._rebalance.look_later(LOCK_AGAIN_MS)
        return [queue for queue in queues if queue in granted]

    async def _unlock(self, process_queue: ProcessQueue) -> None:
        """Unlocks a queue once its listener is done, or when that takes too long."""
        assert self._locks is not None
        queue = process_queue.queue
        left = self._consumption.when_left(process_queue)
        if not left.called:
            process_queue.try_unlock_times += 1
            until_ms = process_queue.last_lock_ms + UNLOCK_DELAY_MS
            await no_longer_than(self._clock, left, max(until_ms - self._clock.steady_ms(), 0))
        process_queue.locked = False
        self._locks.unlock([queue])
        self._leaving.discard(queue)
        self._rebalance.look_later()

    async def _take(self, queue: MessageQueue) -> bool:
        self._offsets.forget(queue)
        try:
            offset = await first_offset(self._instance, self._offsets, self._config, queue)
        except (MQClientError, RemotingError) as error:
            if not self._is_over:
                log.warn("queue {queue} is not taken over yet: {error}", queue=queue, error=error)
            return False
        if self._is_over or queue.topic not in self._subscriptions:
            return False
        process_queue = ProcessQueue(queue, self._clock.steady_ms())
        process_queue.locked = self._locks is not None
        self._reading[queue] = process_queue
        self._puller.queues = len(self._reading)
        pull = spawn(self._read(process_queue, offset), f"reading queue {queue}")
        self._pulls[process_queue] = pull
        pull.addBoth(self._end_pull, process_queue)
        return True

    def _end_pull(self, _: object, process_queue: ProcessQueue) -> None:
        self._pulls.pop(process_queue, None)

    async def _read(self, process_queue: ProcessQueue, offset: int) -> None:
        """Pulls a queue until it is given up, or its offset turns out to be outside the queue."""
        moved = await self._puller.read(process_queue, offset)
        if moved is None or process_queue.dropped:
            return
        queue = process_queue.queue
        self._pulls.pop(process_queue, None)
        process_queue.dropped = True
        self._offsets.set(queue, moved)
        await self.give_up(queue)
        self._rebalance.look()


def spawn(work: Coroutine[Deferred[Any], Any, None], what: str) -> Deferred[None]:
    """Lets work go on by itself; if it fails, that is logged."""
    return Deferred.fromCoroutine(work).addErrback(_log_failure, what)


def _log_failure(failure: Failure, what: str) -> None:
    if failure.check(CancelledError) is None:
        log.failure("{what} failed", failure, what=what)
