# SPDX-License-Identifier: Apache-2.0
"""The checks of all requests of POP, in the original's order and with its texts.

Java: the beginnings of PopMessageProcessor, AckMessageProcessor, PeekMessageProcessor and others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.pop.polling import PopPolling, Watch
from txrocketmq.broker.processors.pull.pull_subscription import FAQ
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, patient
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
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

Attempt = Callable[[], Steps[Reply[Any] | None]]
"""Makes the steps of an attempt."""


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

    An attempt that needs what is not there yet, messages from the disk or an expression that is
    still being compiled, is repeated when that is there. One whose peer has gone ends where it is.
    """

    def __init__(self, walks: Walks) -> None:
        self._walks = walks

    def begin(
        self, peer: Peer, attempt: Attempt, pending: PendingReply, held: Held | None = None
    ) -> None:
        """Resolves `pending` with the result of an attempt, unless that is None: then the request
        is held, at `held`.
        """

        def ended(outcome: Reply[Any] | Exception | None) -> None:
            if outcome is not None:
                pending.resolve(outcome)

        steps = patient(attempt)
        begun = self._walks.begin(steps if held is None else held.watched(steps), ended, peer)
        pending.is_work |= begun.is_in_turns
        if held is not None and not begun.has_ended:
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

    def watched(self, steps: Steps[Reply[Any] | None]) -> Steps[Reply[Any] | None]:
        """Takes the steps, and ends the watch with them."""
        try:
            found = yield from steps
        finally:
            watch, self._watch = self._watch, None
            if watch is not None:
                watch.end()
        if found is None and watch is not None and watch.has_missed:
            self._polling.notify(*self._place)
        return found
