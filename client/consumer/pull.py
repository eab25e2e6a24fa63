# SPDX-License-Identifier: Apache-2.0
"""Reads all queues of a topic from the first message, the last or a time, and goes on reading.

Each queue has one pull under way, which the broker holds while there is nothing new; what it brings
goes to the listener, and the next pull waits until the listener is done, so a slow listener holds
little. The loop takes no part in the group it names: it stores no offsets and sends no heartbeats,
any number of loops read the same messages. Queues that appear later, because brokers or queues were
added, are read from their start; those that go and come back go on where they were, unless their
topic was made anew.

Counterpart of PullAPIWrapper, DefaultMQPullConsumer and the pull tasks of the lite pull consumer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Literal

from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQBrokerError, MQClientError, NoRoute
from txrocketmq.client.base.validators import check_consumer_group, check_topic
from txrocketmq.client.consumer.queue.pull_result import wanted_messages
from txrocketmq.client.consumer.queue.queue_life import Marks, QueueLife
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import PASSING, ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, TAG, build_subscription_data
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP, PullMessageRequestHeader
from txrocketmq.remoting.routing.addresses import MASTER_ID
from txrocketmq.remoting.routing.queue_requests import pull_header

BATCH_MESSAGES: Final = 32
SUSPEND_MS: Final = 15_000
"""How long a broker may hold a pull (brokerSuspendMaxTimeMillis of the push consumer)."""
TIMEOUT_MS: Final = 30_000
RETRY_MS: Final = 1_000
"""Pause after an error (pullTimeDelayMillsWhenException)."""
FLOW_CONTROL_MS: Final = 20
"""Pause when the broker has too much to do."""

Start = Literal["first", "last"] | int | Mapping[MessageQueue, int]
"""Where to begin: the oldest message, after the newest one, at a store time in ms, or at an offset
of each queue."""
PullListener = Callable[[MessageQueue, list[MessageExt]], Awaitable[object] | None]

log = Logger()


class PullLoop:
    """Reads a topic. `expression` is tags separated by `||`, or `*`; or SQL92, by its type.

    Only the queues that it `wants` are read.

    `start_from` may be changed until `start`. `done` fires after `stop`, or with the error that
    ended the loop: the listener's, or a refusal of a broker that will not pass, as MQBrokerError.
    """

    def __init__(
        self,
        instance: ClientInstance,
        topic: str,
        listener: PullListener,
        *,
        start: Start = "last",
        expression: str = SUB_ALL,
        expression_type: str = TAG,
        group: str = TOOLS_GROUP,
        wants: Callable[[MessageQueue], bool] = lambda _: True,
    ) -> None:
        check_topic(topic)
        check_consumer_group(group)
        self.topic = topic
        self.start_from: Start = start
        self.done: Deferred[None] = Deferred()
        self._instance = instance
        self._listener = listener
        self._group = group
        self._wants = wants
        self._subscription = build_subscription_data(topic, expression, expression_type)
        self._offsets: dict[MessageQueue, int] = {}
        self._marks: Marks = {}
        self._reading: dict[MessageQueue, Deferred[None]] = {}
        self._troubled: set[str] = set()
        self._unwatch: Callable[[], None] | None = None
        self._stopped = False

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are read now."""
        return sorted(self._reading)

    async def start(self) -> None:
        """Finds out where to begin in each queue, then reads.

        Raises NoRoute, NoNameServer, MQBrokerError, RemotingError; it may be called again then.
        """
        queues = list(filter(self._wants, await self._instance.subscribe_queues(self.topic)))
        offsets = [Deferred.fromCoroutine(self._first_offset(queue)) for queue in queues]
        found = await gatherResults(offsets, consumeErrors=True).addErrback(_first_error)
        if self._stopped:
            return
        self._offsets = dict(zip(queues, found, strict=True))
        self._unwatch = self._instance.watch(self.topic, self._rebalance_soon)
        await self._rebalance()

    def stop(self) -> None:
        """Reads no more; messages that are under way are dropped."""
        self._end(None)

    # ----------------------------------------------------------------- queues

    async def _first_offset(self, queue: MessageQueue) -> int:
        api = self._instance.api
        address = await self._instance.address_to_subscribe(queue)
        if isinstance(self.start_from, Mapping):
            return self.start_from.get(queue, 0)
        if self.start_from == "first":
            return await api.min_offset(address, queue)
        if self.start_from == "last":
            return await api.max_offset(address, queue)
        return await api.search_offset(address, queue, self.start_from)

    def _rebalance_soon(self) -> None:
        balanced = Deferred.fromCoroutine(self._rebalance())
        balanced.addErrback(self._failed)

    async def _rebalance(self) -> None:
        """Reads exactly the queues that the route has now."""
        try:
            queues = list(filter(self._wants, await self._instance.subscribe_queues(self.topic)))
        except NoRoute:
            return  # the topic had a route a moment ago; the loops of its queues keep trying
        gone = self._reading.keys() - set(queues)
        for queue in gone:
            self._reading.pop(queue).cancel()
        self._read(queues)

    def _read(self, queues: list[MessageQueue]) -> None:
        for queue in queues:
            if queue not in self._reading and not self._stopped:
                reading = self._reading[queue] = Deferred.fromCoroutine(self._read_queue(queue))
                reading.addErrback(self._failed)

    # ------------------------------------------------------------------ pulls

    async def _read_queue(self, queue: MessageQueue) -> None:
        """Pulls until it is cancelled; raises errors that trying again would not mend."""
        broker_id = MASTER_ID
        life = QueueLife(self._instance, queue, self._marks)
        while not self._stopped:
            offset = self._offsets.get(queue, 0)  # 0 of a new queue is corrected by the broker
            try:
                start = await life.begins_anew(offset)
                if start is not None:
                    self._offsets[queue] = start
                    continue
                address = await self._instance.address_to_subscribe(queue, broker_id)
                reply = await self._instance.api.pull(
                    address, self._header(queue, offset), TIMEOUT_MS
                )
                if reply.header is not None and reply.header.max_offset < offset:
                    life.doubt()
                    start = await life.begins_anew(offset)
            except (MQClientError, RemotingError) as error:
                if isinstance(error, MQBrokerError) and error.code not in PASSING:
                    raise
                life.doubt(error if broker_id == MASTER_ID else None)
                await self._recover(queue, error)
                continue
            if start is not None:
                self._offsets[queue] = start
                continue
            if queue.broker_name in self._troubled:
                self._troubled.discard(queue.broker_name)
                log.info("{broker} can be read again", broker=queue.broker_name)
            answer = reply.header
            if answer is None:
                raise MQBrokerError(
                    reply.code, "the answer does not say at which offset to continue", address
                )
            broker_id = answer.suggest_which_broker_id
            if reply.code == ResponseCode.SUCCESS:
                messages = wanted_messages(reply.body_bytes, queue, self._subscription)
                life.saw(messages)
                taken = self._listener(queue, messages) if messages else None
                if taken is not None:
                    await taken
            elif answer.next_begin_offset == offset:
                await self._instance.clock.pause(FLOW_CONTROL_MS)  # whatever the broker does
            self._offsets[queue] = answer.next_begin_offset

    async def _recover(self, queue: MessageQueue, error: Exception) -> None:
        """Waits a moment, and asks for the route, because the queue may have moved."""
        if isinstance(error, MQBrokerError) and error.code == ResponseCode.FLOW_CONTROL:
            await self._instance.clock.pause(FLOW_CONTROL_MS)
            return
        broker = queue.broker_name
        if broker not in self._troubled:
            self._troubled.add(broker)
            log.warn("{broker} cannot be read, trying again: {error}", broker=broker, error=error)
        await self._instance.clock.pause(RETRY_MS)
        with suppress(MQClientError, RemotingError):  # or else it may be that nothing has moved
            await self._instance.refresh(self.topic)

    def _header(self, queue: MessageQueue, offset: int) -> PullMessageRequestHeader:
        wanted = self._subscription
        return pull_header(
            queue,
            offset,
            BATCH_MESSAGES,
            wanted.sub_string,
            wanted.expression_type,
            group=self._group,
            suspend_ms=SUSPEND_MS,
        )

    # -------------------------------------------------------------------- end

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, CancelledError):
            self._end(failure)

    def _end(self, failure: Failure | None) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._unwatch is not None:
            self._unwatch()
        reading, self._reading = self._reading, {}
        for each in reading.values():
            each.cancel()
        if failure is not None:
            self.done.errback(failure)
        else:
            self.done.callback(None)


def _first_error(failure: Failure) -> Failure:
    """Returns the failure of the first queue, which gatherResults has wrapped."""
    inner = getattr(failure.value, "subFailure", failure)
    return inner if isinstance(inner, Failure) else failure
