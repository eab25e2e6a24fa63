# SPDX-License-Identifier: Apache-2.0
"""Pulls a range of a queue: records end to end, in order, none twice; missing ones are reported.

Several pulls are under way at a time, each for the messages after those of the previous pull, since
a broker gives few messages at once and each answer would otherwise cost a whole round trip. With a
subscription by tags or SQL92 only the answer tells the next offset, so pulls are made one by one.

A broker that gives nothing, because it is starting or moving, is asked again, and so is a broker
that does not have the messages yet. Counterpart of PullAPIWrapper and of PullTask in
DefaultLitePullConsumer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from txrocketmq.remoting.codes import PULLED, ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, TAG
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP, PullMessageResponseHeader
from txrocketmq.remoting.routing.queue_requests import pull_header
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import (
    ATTEMPTS,
    PULL_MESSAGES,
    Cluster,
    Pulled,
    header_of,
    is_passing,
)
from txrocketmq.spark.live.wire.rpc import Question, Unreachable

PULLS_AT_ONCE: Final = 8
"""Pulls under way at once; with the default configuration an answer has at most 256 KiB."""
WAITS_FOR_MISSING: Final = 2
"""How often messages that a broker should have, but does not, are asked for again."""
_RESET: Final = "OFFSET_RESET"
_REMOVING: Final = "MESSAGE_WAS_REMOVING"


class QueueRange(NamedTuple):
    """Messages of a queue from `start` up to, not including, `end`."""

    queue: MessageQueue
    start: int
    end: int


class Gone(NamedTuple):
    """Messages that were asked for, but that the broker no longer has."""

    queue: MessageQueue
    start: int
    end: int
    reason: str

    def __str__(self) -> str:
        queue = self.queue
        return (
            f"messages {self.start} to {self.end - 1} of queue {queue.queue_id} of topic"
            f" {queue.topic} on {queue.broker_name} are gone: {self.reason}"
        )


class RangePull:
    """Pulls one range of a queue; iterate over it.

    `expression` is tags separated by `||`, of which brokers compare only the hashes, or an SQL92
    expression if `expression_type` says so.
    """

    def __init__(
        self,
        cluster: Cluster,
        wanted: QueueRange,
        *,
        max_messages: int = PULL_MESSAGES,
        expression: str = SUB_ALL,
        expression_type: str = TAG,
        group: str = TOOLS_GROUP,
        pulls_at_once: int = PULLS_AT_ONCE,
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._max_messages = max_messages
        self._expression = expression
        self._expression_type = expression_type
        self._group = group
        self._pulls_at_once = pulls_at_once if expression == SUB_ALL else 1
        self._next = self._asked = wanted.start
        self._under_way: deque[tuple[int, Question[PullMessageResponseHeader]]] = deque()
        self._troubles = self._waits = self._slave = 0

    def __iter__(self) -> Iterator[bytes | Gone]:
        """Yields bodies of answers, each of whole records, and what is gone, in order.

        With tags, or if the store keeps several messages in one record, the first answer may begin
        before the range and the last one may end after it. Raises Unreachable, Refused.
        """
        while self._next < self._wanted.end:
            try:
                end, pulled = self._pulled()
            except ClusterError as error:
                self._recover(error)
                continue
            self._troubles = 0
            found = self._take(pulled)
            self._go_on(end)
            if found is not None:
                yield found

    def _pulled(self) -> tuple[int, Pulled]:
        """Returns the end of the range of the oldest pull, and its answer."""
        while len(self._under_way) < self._pulls_at_once and self._asked < self._wanted.end:
            end = min(self._asked + self._max_messages, self._wanted.end)
            self._under_way.append((end, self._start(self._asked, end)))
            self._asked = end
        end, question = self._under_way.popleft()
        return end, question.wait(PULLED)

    def _start(self, offset: int, end: int) -> Question[PullMessageResponseHeader]:
        queue = self._wanted.queue
        count = self._max_messages if self._expression != SUB_ALL else end - offset
        header = pull_header(
            queue, offset, count, self._expression, self._expression_type, group=self._group
        )
        return self._cluster.start_pull(header, queue.broker_name, self._slave)

    def _go_on(self, end: int) -> None:
        """Continues after an answer that should have brought all messages up to `end`."""
        if self._next == end:
            return
        if self._next < end and self._under_way:  # the broker gave less than it was asked for
            self._under_way.appendleft((end, self._start(self._next, end)))
        else:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._under_way.clear()
        self._asked = self._next

    def _recover(self, error: ClusterError) -> None:
        """Raises the error, or waits and perhaps turns to a slave."""
        self._begin_anew()
        self._troubles += 1
        if not is_passing(error) or self._troubles == ATTEMPTS:
            raise error
        if isinstance(error, Unreachable):
            self._slave += 1
        self._cluster.recover([self._wanted.queue.topic], self._troubles)

    def _take(self, pulled: Pulled) -> bytes | Gone | None:
        """Returns what an answer brings, and moves `_next` on."""
        offset, end, header = self._next, self._wanted.end, header_of(pulled)
        to = min(header.next_begin_offset, end)
        if pulled.remark == _RESET:  # an administrator reset the offsets: it is told once
            return self._missing(pulled)
        first = header.min_offset
        if pulled.code == ResponseCode.PULL_OFFSET_MOVED and offset < first:
            return self._gone(min(first, end), f"the queue begins at {first}")
        if pulled.code == ResponseCode.PULL_OFFSET_MOVED or to <= offset:
            return self._missing(pulled)
        if pulled.code == ResponseCode.PULL_NOT_FOUND:
            return self._gone(to, "the broker's queue has a hole")
        if pulled.code == ResponseCode.PULL_RETRY_IMMEDIATELY and pulled.remark == _REMOVING:
            return self._gone(to, "the broker's log does not have them")
        self._waits = 0
        self._next = header.next_begin_offset
        return pulled.body_bytes or None

    def _gone(self, to: int, reason: str) -> Gone:
        start, self._next = self._next, to
        return Gone(self._wanted.queue, start, to, reason)

    def _missing(self, pulled: Pulled) -> Gone | None:
        """Waits if a queue ends before the range; after a few times the rest counts as gone."""
        self._waits += 1
        if self._waits <= WAITS_FOR_MISSING:
            self._slave = 0  # the master, which may have more
            self._begin_anew()
            self._cluster.recover([self._wanted.queue.topic], self._waits)
            return None
        if pulled.remark == _RESET:
            raise ClusterError(f"the offsets of group {self._group} are reset again and again")
        if self._slave:
            raise ClusterError(
                f"the master of {self._wanted.queue.broker_name} cannot be reached, and its slave"
                f" has {self._wanted.queue} only up to {header_of(pulled).max_offset}"
            )
        return self._gone(self._wanted.end, f"the queue ends at {header_of(pulled).max_offset}")
