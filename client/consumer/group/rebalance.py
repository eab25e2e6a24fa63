# SPDX-License-Identifier: Apache-2.0
"""Finds out which queues are assigned to a member, and lets it take and give up queues.

It looks every 20 s, at the start, and at once when a broker says that members came or went or the
route of a topic has changed; and again a second after a look that left queues it could not take.
There is one look at a time. Topics that do not exist yet are looked at when they do
(missing_topics.py).

Java: RebalanceService, RebalanceImpl.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError, NoRoute
from txrocketmq.client.consumer.group.missing_topics import MissingTopics
from txrocketmq.client.consumer.group.same_subscriptions import SameSubscriptions
from txrocketmq.client.consumer.group.shares import Own, Share
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Repeating
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX

AGAIN_MS: Final = 1_000
"""After how long to look again if some queues could not be taken (rebalance.minInterval of 5.x)."""

Change = Callable[[str, Sequence[MessageQueue], Own], Awaitable[bool]]
"""Called with a topic, all queues and the member's own; returns False if some were not taken."""
QueuesListener = Callable[
    [str, Sequence[MessageQueue], Sequence[MessageQueue]], "object | Awaitable[object]"
]
"""Hears of a topic, all its queues, and those that are the member's own (MessageQueueListener)."""

log = Logger()


class Rebalance:
    """Rebalances. `topics` returns the subscriptions, and `share` the queues of this member."""

    def __init__(
        self,
        instance: ClientInstance,
        share: Share,
        topics: Callable[[], Collection[str]],
        change: Change,
        same: SameSubscriptions | None = None,
        group: str = "",
    ) -> None:
        """`group` is for the log.

        `same` compares the subscriptions of members, when some have come or gone.
        """
        self._same = same
        self._instance = instance
        self._share = share
        self._topics = topics
        self._change = change
        self._looking: Deferred[None] | None = None
        self._again = False
        self._soon: Any = None
        self._repeating: Repeating | None = None
        self._watched: dict[str, Callable[[], None]] = {}
        self._missing = MissingTopics(instance, group)
        self._troubled: dict[str, str] = {}
        """What was last said about each topic whose queues stay as they are."""

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._repeating is not None

    async def look_for_topics(self) -> None:
        """Asks for the routes of all topics. Raises NoNameServer, but nothing for missing ones."""
        await self._missing.look_for([each for each in self._topics() if not _is_retry(each)])

    async def start(self, interval_ms: int) -> None:
        """Rebalances now, and returns when that is done; repeats it every `interval_ms`."""
        self._repeating = self._instance.clock.every(interval_ms, self.look)
        await self._looked()

    def stop(self) -> None:
        """Stops rebalancing."""
        if self._repeating is not None:
            self._repeating.cancel()
            self._repeating = None
        if self._soon is not None and self._soon.active():
            self._soon.cancel()
        self._missing.stop()
        if self._same is not None:
            self._same.stop()
        for unwatch in self._watched.values():
            unwatch()
        self._watched.clear()

    def look(self) -> None:
        """Rebalances now, or once more if it is rebalancing already."""
        if self._looking is not None:
            self._again = True
        elif self.is_running:
            self._looked()

    def group_changed(self) -> None:
        """Rebalances, because members of the group came or went."""
        self.look()
        if self._same is not None and self.is_running:
            self._same.check_soon()

    def look_later(self, delay_ms: int = AGAIN_MS) -> None:
        """Rebalances after `delay_ms`."""
        if self.is_running and (self._soon is None or not self._soon.active()):
            self._soon = self._instance.clock.later(delay_ms, self.look)

    def _looked(self) -> Deferred[None]:
        self._again = False
        done: Deferred[None] = Deferred()
        self._looking = done
        looking = Deferred.fromCoroutine(self._look())
        looking.addErrback(self._log_failure)
        looking.addBoth(self._end, done)
        return done

    def _end(self, _: object, done: Deferred[None]) -> None:
        self._looking = None
        if self._again:
            self.look()
        done.callback(None)

    async def _look(self) -> None:
        self._unwatch()
        is_balanced = True
        for topic in list(self._topics()):
            try:
                is_balanced &= await self._look_at(topic)
                self._troubled.pop(topic, None)
            except (MQClientError, RemotingError, ValueError) as error:
                if not self.is_running:
                    return  # the brokers have been told that this consumer has left
                if isinstance(error, NoRoute) and _is_retry(topic):
                    continue
                is_balanced = False
                if self._troubled.get(topic) != str(error):
                    self._troubled[topic] = str(error)
                    log.warn(
                        "the queues of {topic} stay as they are: {error}", topic=topic, error=error
                    )
        if not self.is_running:
            return
        if not is_balanced:
            self.look_later()
        self._missing.ask_on(self._topics())

    async def _look_at(self, topic: str) -> bool:
        try:
            if _is_retry(topic):
                found: list[MessageQueue] | None = await self._instance.subscribe_queues(topic)
            else:
                found = await self._missing.queues_of(topic)
        finally:
            self._watch(topic)  # from now on, because what this look has found is no change
        if found is None:
            return True
        queues = sorted(found)
        own = await self._share.own(topic, queues)
        if own is None:
            return not self.is_running
        return not self.is_running or await self._change(topic, queues, own)

    def _watch(self, topic: str) -> None:
        """Rebalances whenever the route of a topic changes."""
        if topic not in self._watched and self.is_running:
            self._watched[topic] = self._instance.watch(topic, self.look)

    def _unwatch(self) -> None:
        topics = set(self._topics())
        for topic in self._watched.keys() - topics:
            self._watched.pop(topic)()
        for topic in self._troubled.keys() - topics:
            del self._troubled[topic]

    def _log_failure(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            log.failure("looking for the queues of the group failed", failure)


def _is_retry(topic: str) -> bool:
    """Whether a broker makes the topic by itself when it hears of the group."""
    return topic.startswith(RETRY_PREFIX)
