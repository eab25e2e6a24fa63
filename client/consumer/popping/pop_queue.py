# SPDX-License-Identifier: Apache-2.0
"""A queue that a push consumer pops, and the messages of one pop.

Popped messages belong to the member that took them until their time is over, so they need no order
here: the queue only counts how many wait to be acknowledged.

Java: PopProcessQueue; popTime and invisibleTime of ConsumeMessagePopConcurrentlyService, which are
told here by this machine's steady clock alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from txrocketmq.client.consumer.queue.process_queue import PULL_MAX_IDLE_MS
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.protocol.body.client import PopProcessQueueInfo


class PopProcessQueue:
    """A popped queue; `waiting` is how many messages wait to be acknowledged."""

    def __init__(self, queue: MessageQueue, steady_ms: int) -> None:
        self.queue = queue
        self.dropped = False
        self.waiting = 0
        self.last_pop_ms = steady_ms

    def is_pop_expired(self, steady_ms: int) -> bool:
        """Whether the loop that pops the queue seems to have been lost."""
        return steady_ms - self.last_pop_ms > PULL_MAX_IDLE_MS

    def describe(self, ahead_ms: int) -> PopProcessQueueInfo:
        """Its description for administrators; `ahead_ms` is how far the wall clock is ahead."""
        return PopProcessQueueInfo(
            wait_ack_count=self.waiting,
            droped=self.dropped,
            last_pop_timestamp=self.last_pop_ms + ahead_ms,
        )


class PoppedBatch:
    """The messages of one pop; hidden from other members until `until_ms` of the steady clock."""

    def __init__(self, process_queue: PopProcessQueue, count: int, until_ms: int) -> None:
        self.process_queue = process_queue
        self.until_ms = until_ms
        self.last_consume_ms = 0
        process_queue.waiting += count

    @property
    def queue(self) -> MessageQueue:
        """The queue that was popped."""
        return self.process_queue.queue

    def begin(self, messages: Iterable[MessageExt], steady_ms: int) -> bool:
        """Notes that the listener gets these messages now; returns False if it is too late."""
        if self.is_over(steady_ms):
            return False
        self.last_consume_ms = steady_ms
        return True

    def is_over(self, steady_ms: int) -> bool:
        """Whether the messages no longer belong to this client."""
        return self.process_queue.dropped or steady_ms >= self.until_ms

    def end(self, count: int) -> None:
        """Notes that as many of the messages no longer wait to be acknowledged."""
        self.process_queue.waiting -= count
