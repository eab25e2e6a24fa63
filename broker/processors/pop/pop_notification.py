# SPDX-License-Identifier: Apache-2.0
"""NOTIFICATION, POLLING_INFO: whether there is something to pop, and how many pops wait.

A notification waits as a pop does, and is answered when a group may have something; it takes
nothing. Where the original looks at the queues of a topic in order for one that is closed, it asks
for the topic of the request also where it looks at a retry topic, which is kept. Codes: 0; 16, 17,
26, 29.

Java: NotificationProcessor, PollingInfoProcessor.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from txrocketmq.broker.pop.polling import ANY_QUEUE, PollingResult, PopRequest
from txrocketmq.broker.pop.pop import Pop
from txrocketmq.broker.processors.pop.pop_checks import Attempts, Held, PopChecks
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.message.pop import retry_topic, retry_topic_v1
from txrocketmq.remoting.protocol import pop
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.pop import (
    NotificationRequestHeader,
    NotificationResponseHeader,
    PollingInfoRequestHeader,
    PollingInfoResponseHeader,
)


class PopNotificationProcessor:
    """Tells clients whether there is something to pop."""

    def __init__(
        self,
        config: BrokerConfig,
        checks: PopChecks,
        topics: Topics,
        store: MessageStore,
        parts: Pop,
        attempts: Attempts,
        clock: Callable[[], int],
        steady_clock: Callable[[], int],
    ) -> None:
        self._config = config
        self._checks = checks
        self._topics = topics
        self._store = store
        self._pop = parts
        self._attempts = attempts
        self._now_ms = clock
        self._steady_ms = steady_clock

    @serves(pop.NOTIFICATION, vip=False)
    def notification(self, request: Request[NotificationRequestHeader]) -> PendingReply:
        """Answers whether there is something to pop; may wait for pollTime."""
        pending = PendingReply()
        self._attempt(request, request.header.born_time or request.now_ms, pending)
        request.command.body, request.command.ext_fields = b"", None
        return pending

    def _attempt(
        self, request: Request[NotificationRequestHeader], born_ms: int, pending: PendingReply
    ) -> None:
        header = request.header
        attempt = partial(self._look, request, born_ms, pending)
        place = Held(self._pop.notifications, header.topic, header.consumer_group, header.queue_id)
        self._attempts.begin(request.peer, attempt, pending, place)

    def _look(
        self, request: Request[NotificationRequestHeader], born_ms: int, pending: PendingReply
    ) -> Steps[Reply[NotificationResponseHeader] | None]:
        header = request.header
        self._checks.broker("peeking")
        topic = self._checks.readable(header.topic, header.queue_id, request.peer)
        self._checks.group(header.consumer_group)
        self._checks.make_group(header.consumer_group)
        has_message = yield from self._has_message(header, topic)
        is_full = False
        if not has_message:
            waiting = PopRequest(
                request.peer, header.topic, header.consumer_group,
                max(header.queue_id, ANY_QUEUE), 0,
                lambda: self._attempt(request, born_ms, pending),
            )  # fmt: skip
            result = self._pop.notifications.hold(
                waiting, born_ms, header.poll_time, self._now_ms(), self._steady_ms()
            )
            if result is PollingResult.POLLING_SUC:
                return None
            is_full = result is PollingResult.POLLING_FULL
        return Reply(NotificationResponseHeader(has_msg=has_message, polling_full=is_full))

    def _has_message(self, header: NotificationRequestHeader, topic: TopicConfig) -> Steps[bool]:
        config, first = self._config, random.randrange(100)
        if header.queue_id >= 0:
            if self._queue_has_message(header, header.topic, header.queue_id):
                return True
        elif (yield from self._topic_has_message(header, topic, first)):
            return True
        v2 = config.enable_retry_topic_v2
        names = [retry_topic(header.topic, header.consumer_group, v2=v2)]
        if v2 and config.retrieve_message_from_pop_retry_topic_v1:
            names.append(retry_topic_v1(header.topic, header.consumer_group))
        for each in [self._topics.get(name) for name in names]:
            if each is not None and (yield from self._topic_has_message(header, each, first)):
                return True
        return False

    def _topic_has_message(
        self, header: NotificationRequestHeader, topic: TopicConfig, first: int
    ) -> Steps[bool]:
        queues, name = topic.read_queue_nums, topic.topic_name or ""
        for at in range(queues):
            if self._queue_has_message(header, name, (first + at) % queues):
                return True
            yield
        return False

    def _queue_has_message(
        self, header: NotificationRequestHeader, topic: str, queue_id: int
    ) -> bool:
        group = header.consumer_group
        if header.order and self._pop.orders.is_blocked(
            header.attempt_id, header.topic, group, queue_id, 0
        ):
            return False
        offset = self._pop.queues.offset(topic, group, queue_id)
        return self._store.max_offset(topic, queue_id) > offset

    @serves(pop.POLLING_INFO, vip=False)
    def polling_info(
        self, request: Request[PollingInfoRequestHeader]
    ) -> Reply[PollingInfoResponseHeader]:
        """Returns how many pops wait at a queue."""
        header = request.header
        self._checks.broker("peeking")
        self._checks.readable(header.topic, header.queue_id, request.peer)
        self._checks.group(header.consumer_group)
        count = self._pop.polling.count(header.topic, header.consumer_group, header.queue_id)
        return Reply(PollingInfoResponseHeader(polling_num=count))
