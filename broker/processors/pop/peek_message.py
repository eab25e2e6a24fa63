# SPDX-License-Identifier: Apache-2.0
"""PEEK_MESSAGE: shows what a group would pop next, without changing anything.

Messages of the retry topic come as they are stored. Codes: 0, 19; 2, 16, 17, 26, 29.

Java: PeekMessageProcessor.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from txrocketmq.broker.pop.queues import PopQueues
from txrocketmq.broker.processors.pop.pop_checks import Attempts, PopChecks
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.message_store import GetMessageStatus, MessageStore
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.remoting.call import Buffer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.message.pop import retry_topic
from txrocketmq.remoting.protocol import pop
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.pop import PeekMessageRequestHeader, PopMessageResponseHeader

_MOST_BYTES = 8 * 1024 * 1024
"""When so much was found, no further queue is looked at: each gives at least one message."""
_RETRY_EACH = 5
"""One look out of this many begins with the retry topic."""
_MOVED = (GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY)


@dataclass(slots=True)
class _Found:
    buffers: list[Buffer] = field(default_factory=list)
    count: int = 0
    size_bytes: int = 0
    rest: int = 0


class PeekMessageProcessor:
    """Serves peeks."""

    def __init__(
        self,
        config: BrokerConfig,
        checks: PopChecks,
        topics: Topics,
        store: MessageStore,
        stats: BrokerStats,
        queues: PopQueues,
        attempts: Attempts,
    ) -> None:
        self._config = config
        self._checks = checks
        self._topics = topics
        self._store = store
        self._stats = stats
        self._queues = queues
        self._attempts = attempts

    @serves(pop.PEEK_MESSAGE, vip=False)
    def peek(self, request: Request[PeekMessageRequestHeader]) -> PendingReply:
        """Answers with messages, or with none."""
        pending = PendingReply()
        self._attempts.begin(request.peer, partial(self._peek, request), pending)
        return pending

    def _peek(
        self, request: Request[PeekMessageRequestHeader]
    ) -> Steps[Reply[PopMessageResponseHeader]]:
        header = request.header
        self._checks.broker("peeking")
        topic = self._checks.readable(header.topic, header.queue_id, request.peer)
        self._checks.group(header.consumer_group)
        self._checks.make_group(header.consumer_group)
        first = random.randrange(100)
        name = retry_topic(
            header.topic, header.consumer_group, v2=self._config.enable_retry_topic_v2
        )
        retry = self._topics.get(name)
        found = _Found()
        in_turn: Sequence[tuple[TopicConfig | None, int]] = (
            (topic, header.queue_id),
            (retry, -1),
        )
        for each, queue_id in in_turn if first % _RETRY_EACH else reversed(in_turn):
            if each is not None:
                count = each.read_queue_nums
                queues = range(queue_id, queue_id + 1) if queue_id >= 0 else range(count)
                for at in queues:
                    self._peek_queue(
                        header,
                        each.topic_name or "",
                        at if queue_id >= 0 else (first + at) % count,
                        found,
                    )
                    yield
        code, status = ResponseCode.PULL_NOT_FOUND, GetMessageStatus.NO_MESSAGE_IN_QUEUE
        if found.count:
            code, status = ResponseCode.SUCCESS, GetMessageStatus.FOUND
            self._stats.got(header.consumer_group, header.topic, found.count, found.size_bytes)
        answer = PopMessageResponseHeader(
            pop_time=0, invisible_time=0, revive_qid=0, rest_num=found.rest
        )
        return Reply(answer, found.buffers, code, status.name)

    def _peek_queue(
        self, header: PeekMessageRequestHeader, topic: str, queue_id: int, found: _Found
    ) -> None:
        offset = self._queues.offset(topic, header.consumer_group, queue_id)
        found.rest += self._store.max_offset(topic, queue_id) - offset
        left = header.max_msg_nums - found.count
        if left <= 0 or found.size_bytes >= _MOST_BYTES:
            return
        for _ in range(2):
            result = self._store.get(topic, queue_id, offset, left, _MOST_BYTES)
            if result.status not in _MOVED:
                break
            offset = result.next_begin_offset
        result = self._queues.one_by_one(result, topic, offset, left)
        found.buffers += result.buffers
        found.count += result.count
        found.size_bytes += result.size_bytes
