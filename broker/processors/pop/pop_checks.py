# SPDX-License-Identifier: Apache-2.0
"""The checks of all requests of POP, in the original's order and with its texts.

Java: the beginnings of PopMessageProcessor, AckMessageProcessor, PeekMessageProcessor and others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.filter.expression import NotCompiled
from txrocketmq.broker.pop.polling import PopPolling, Watch
from txrocketmq.broker.processors.pull.pull_subscription import FAQ
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.in_memory import NotInMemory
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.cold_reads import ColdReads
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import Peer, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import is_readable
from txrocketmq.remoting.message.pop import retry_topic
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

MAX_INVISIBLE_MS = 2**40
"""The longest invisible time in ms, some 34 years; a greater number is refused."""
_MOST_COLD_READS = 16

Attempt = Callable[[bool], Steps[Reply[Any] | None]]
"""The steps of an attempt, which is told whether it is to look only at what is in memory."""


class PopChecks:
    """The checks; each raises ResponseError for what is not allowed."""

    def __init__(self, config: BrokerConfig, topics: Topics, groups: SubscriptionGroups) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups

    def broker(self, doing: str) -> None:
        """Checks that the broker may be read from."""
        if not is_readable(self._config.broker_permission):
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self._config.broker_ip1}] {doing} message is forbidden",
            )

    def topic(self, name: str) -> TopicConfig:
        """Checks that the topic exists."""
        topic = self._topics.get(name)
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please! {FAQ}"
            )
        return topic

    def readable(self, name: str, queue_id: int, peer: Peer) -> TopicConfig:
        """Checks that the topic exists, may be read from and has this queue; -1 is any queue."""
        topic = self.topic(name)
        if not is_readable(topic.perm):
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"the topic[{name}] peeking message is forbidden"
            )
        if queue_id >= topic.read_queue_nums:
            raise _no_queue(ResponseCode.INVALID_PARAMETER, topic, queue_id, peer)
        return topic

    def queue(self, name: str, queue_id: int, peer: Peer) -> None:
        """Checks that the topic exists and has this queue."""
        topic = self.topic(name)
        if not 0 <= queue_id < topic.read_queue_nums:
            raise _no_queue(ResponseCode.MESSAGE_ILLEGAL, topic, queue_id, peer)

    def group(self, name: str) -> SubscriptionGroupConfig:
        """Checks that the group exists, or may be created, and may consume.

        One that is missing is created with `make_group`, when the request is not refused.
        """
        group = self._groups.expected(name)
        if group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{name}] does not exist, {self._groups.why_full or FAQ}",
            )
        if not group.consume_enable:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}"
            )
        return group

    def retry_topic(self, topic: str, group: str) -> None:
        """Checks that messages which are not acknowledged can come back: their retry topic exists,
        or may be created then.
        """
        if topic.startswith(RETRY_PREFIX):
            return
        name = retry_topic(topic, group, v2=self._config.enable_retry_topic_v2)
        why = self._topics.why_full(name)
        if why:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist, and {why}")

    def make_group(self, name: str) -> None:
        """Creates a group if there is none."""
        self._groups.find(name)

    @staticmethod
    def invisible_time(invisible_ms: int) -> None:
        """Checks that the invisible time is not too long."""
        if invisible_ms > MAX_INVISIBLE_MS:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"invisibleTime is at most {MAX_INVISIBLE_MS} ms, not {invisible_ms}",
            )


def _no_queue(code: ResponseCode, topic: TopicConfig, queue_id: int, peer: Peer) -> ResponseError:
    return ResponseError(
        code,
        f"queueId[{queue_id}] is illegal, topic:[{topic.topic_name}]"
        f" topicConfig.readQueueNums:[{topic.read_queue_nums}]"
        f" consumer:[{peer.remote_address}]",
    )


class Attempts:
    """Runs the attempts of requests, in slices, until they have an outcome.

    An attempt that would have to wait for the disk raises NotInMemory, and is repeated after a
    thread has read what is missing. After many reads it is called with False: it has to wait for
    the disk then. An attempt that needs an expression that is still being compiled raises
    NotCompiled, and is repeated after that. One whose peer has gone ends where it is.
    """

    def __init__(self, walks: Walks, cold_reads: ColdReads) -> None:
        self._walks = walks
        self._cold_reads = cold_reads

    def begin(
        self, peer: Peer, attempt: Attempt, pending: PendingReply, held: Held | None = None
    ) -> None:
        """Resolves `pending` with the result of an attempt, unless that is None: then the request
        is held, at `held`.
        """
        self._begin(peer, attempt if held is None else held.attempt(attempt), pending, held, 0)

    def _begin(
        self, peer: Peer, attempt: Attempt, pending: PendingReply, held: Held | None, reads: int
    ) -> None:
        def after(cold: NotInMemory) -> None:
            if cold.read.error is None:
                self._begin(peer, attempt, pending, held, reads + 1)
            else:
                remark = f"messages could not be read from the disk: {cold.read.error}"
                pending.resolve(ResponseError(ResponseCode.SYSTEM_ERROR, remark))

        def ended(outcome: Reply[Any] | Exception | None) -> None:
            if isinstance(outcome, NotInMemory):
                if not self._cold_reads.add(peer, outcome.read, lambda: after(outcome)):
                    remark = (
                        "too many pulls wait for messages that are not in memory: the disk is too"
                        " slow"
                    )
                    pending.resolve(ResponseError(ResponseCode.SYSTEM_BUSY, remark))
            elif isinstance(outcome, NotCompiled):
                outcome.then(peer, lambda: self._begin(peer, attempt, pending, held, reads))
            elif outcome is not None:
                pending.resolve(outcome)

        steps = _while_connected(peer, attempt(reads < _MOST_COLD_READS))
        if not self._walks.begin(steps, ended):
            pending.is_work = True
            if held is not None:
                held.pause()


class Held:
    """Where a request is to be held that finds nothing.

    One that looks for several turns would miss what arrives in queues that it has passed, so it is
    woken once more when there is such a message.
    """

    def __init__(self, polling: PopPolling, topic: str, group: str, queue_id: int) -> None:
        self._polling = polling
        self._place = topic, group, queue_id
        self._watch: Watch | None = None

    def pause(self) -> None:
        """Begins to watch for arrivals: the attempt goes on in a later turn."""
        self._watch = self._polling.watch(*self._place[:2])

    def attempt(self, attempt: Attempt) -> Attempt:
        """Makes the attempt that also ends the watch."""

        def watched(only_in_memory: bool) -> Steps[Reply[Any] | None]:  # noqa: FBT001
            try:
                found = yield from attempt(only_in_memory)
            finally:
                watch, self._watch = self._watch, None
                if watch is not None:
                    watch.end()
            if found is None and watch is not None and watch.has_missed:
                self._polling.notify(*self._place)
            return found

        return watched


def _while_connected(peer: Peer, steps: Steps[Reply[Any] | None]) -> Steps[Reply[Any] | None]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Reply[Any] | None = end.value
            return result
        if not peer.connected:
            steps.close()
            return None
        yield
