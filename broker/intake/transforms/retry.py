# SPDX-License-Identifier: Apache-2.0
"""%RETRY% topics: messages that failed too often become dead letters of their group.

Consumers send to a retry topic when sending back has failed; orderly consumers do so to be rid of a
message, so what is sent for a group that holds queue locks becomes a dead letter at once. Codes:
26.

Java: SendMessageProcessor.handleRetryAndDLQ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.broker.tables.queue_locks import QueueLocks
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
DLQ_QUEUES = 1


class Retry:
    """Lets a message to a retry topic pass, or sends it to the dead letters.

    `died` is called with the group and the topic of each dead letter.
    """

    acts_on = ActsOn(topic_prefixes=(RETRY_PREFIX,), ways=Way.SEND)

    def __init__(
        self,
        topics: Topics,
        groups: SubscriptionGroups,
        locks: QueueLocks,
        steady_clock: Callable[[], int],
        died: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._locks = locks
        self._steady_ms = steady_clock
        self._died = died

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Decides by the number of attempts so far, and by the queue locks of the group."""
        name = message.topic[len(RETRY_PREFIX) :]
        group = self._groups.expected(name)
        if group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group not exist, {name} {self._groups.why_full or FAQ}",
            )
        drafts = self._topics.drafts
        if self._groups.get(name) is None:
            drafts.want("group", name, partial(self._groups.find, name))
        limit = message.max_reconsume_times
        if limit is None:
            limit = group.retry_max_times
        if message.reconsume_times <= limit and self._locks.all_expired(name, self._steady_ms()):
            return
        dead_letters = DLQ_PREFIX + name
        if self._topics.draft_in_send_back(dead_letters, DLQ_QUEUES) is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"topic[{dead_letters}] not exist, and {self._topics.why_full(dead_letters)}",
            )
        self._died(name, message.topic)
        message.topic = dead_letters
        message.queue_id = 0
        message.properties[names.DELAY] = "-1"
