# SPDX-License-Identifier: Apache-2.0
"""Messages of several queues in the order in which they were stored.

From each queue a part is read, from one offset to another, by pulls that take no part in any group.
A portion of each queue is held in memory, and of these the oldest message is next. Within a queue
the order is that of the offsets, even if a broker's clock was set back.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults
from twisted.python.failure import Failure

from txrocketmq.client.consumer.pull import Start
from txrocketmq.client.consumer.queue.pull_queue import QueuePull
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, TAG, build_subscription_data
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP

PULL_MESSAGES: Final = 32
PULL_TIMEOUT_MS: Final = 10_000
AT_ONCE: Final = 16
"""How many requests are under way at a time."""
T = TypeVar("T")


class Span(NamedTuple):
    """A part of a queue: from one offset up to another, which is not included."""

    begin: int
    end: int


async def spans_from(
    client: ClientInstance, queues: Sequence[MessageQueue], start: Start, last: int | None = None
) -> dict[MessageQueue, Span]:
    """Returns the parts of queues from a start, or the `last` messages, to where they end now."""

    async def span(queue: MessageQueue) -> Span:
        api = client.api
        address = await client.address_to_subscribe(queue)
        end = await api.max_offset(address, queue)
        if isinstance(start, int):
            return Span(await api.search_offset(address, queue, start), end)
        if isinstance(start, Mapping):
            return Span(start.get(queue, 0), end)
        if last is None and start == "last":
            return Span(end, end)
        first = await api.min_offset(address, queue)
        return Span(first if last is None else max(first, end - last), end)

    spans = await at_once([partial(span, queue) for queue in queues])
    return dict(zip(queues, spans, strict=True))


def queue_of(message: MessageExt) -> MessageQueue:
    """Returns the queue in which a message is."""
    return MessageQueue(message.topic, message.broker_name or "", message.queue_id)


class Timeline:
    """The messages of some spans. `wants` may leave out messages; `ends_at` ends their queue."""

    def __init__(
        self,
        client: ClientInstance,
        spans: Mapping[MessageQueue, Span],
        *,
        expression: str = SUB_ALL,
        expression_type: str = TAG,
        wants: Callable[[MessageExt], bool] = lambda _: True,
        ends_at: Callable[[MessageExt], bool] = lambda _: False,
    ) -> None:
        self._parts = [
            _Part(client, queue, span, expression, expression_type)
            for queue, span in sorted(spans.items())
        ]
        self._wants = wants
        self._ends_at = ends_at

    async def messages(self) -> AsyncIterator[MessageExt]:
        """Yields the messages. Raises what a pull raises."""
        await at_once([part.fill for part in self._parts])
        heap = [(part.time_ms, n) for n, part in enumerate(self._parts) if part.waiting]
        heapq.heapify(heap)
        while heap:
            _, n = heap[0]
            part = self._parts[n]
            message = part.waiting.popleft()
            if self._ends_at(message):
                heapq.heappop(heap)
                continue
            if self._wants(message):
                yield message
            if not part.waiting:
                await part.fill()
            if part.waiting:
                heapq.heapreplace(heap, (part.time_ms, n))
            else:
                heapq.heappop(heap)


class _Part:
    """What is read of one queue; the messages that wait are those of the last pull."""

    def __init__(
        self,
        client: ClientInstance,
        queue: MessageQueue,
        span: Span,
        expression: str,
        expression_type: str,
    ) -> None:
        self.waiting: deque[MessageExt] = deque()
        self._next, self._end = span
        self._subscription = build_subscription_data(queue.topic, expression, expression_type)
        self._pull = QueuePull(
            client,
            TOOLS_GROUP,
            queue,
            suspend_ms=0,
            timeout_ms=PULL_TIMEOUT_MS,
            batch_size=PULL_MESSAGES,
        )

    @property
    def time_ms(self) -> int:
        """When the first of the messages that wait was stored."""
        return self.waiting[0].store_timestamp

    async def fill(self) -> None:
        """Pulls until messages wait or the span has ended."""
        while not self.waiting and self._next < self._end:
            pulled = await self._pull.pull(self._next, self._subscription, posts_subscription=True)
            self.waiting.extend(
                each for each in pulled.messages if self._next <= each.queue_offset < self._end
            )
            if pulled.next_offset <= self._next:
                return  # the broker has nothing more, whatever was said before
            self._next = pulled.next_offset


async def at_once(work: Iterable[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """Calls coroutine functions, a few at a time; returns their results in order.

    Raises the error of the first that fails.
    """
    semaphore = DeferredSemaphore(AT_ONCE)
    running = [semaphore.run(_started, each) for each in work]
    found: list[T] = await gatherResults(running, consumeErrors=True).addErrback(_own_error)
    return found


def _started(work: Callable[[], Coroutine[Any, Any, T]]) -> Deferred[T]:
    return Deferred.fromCoroutine(work())


def _own_error(failure: Failure) -> Failure:
    """Returns the failure that gatherResults has wrapped."""
    inner = getattr(failure.value, "subFailure", failure)
    return inner if isinstance(inner, Failure) else failure
