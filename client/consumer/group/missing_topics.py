# SPDX-License-Identifier: Apache-2.0
"""Topics that a consumer subscribes to and that no broker has yet: it waits for them.

Each is logged once, when it is missed and when it has come. Name servers are asked for it once a
second. The brokers of a topic that has come hear of the consumer before it asks them for anything,
since they may be new to it.

Java: a consumer starts without a route as well, and finds it with one of its next requests.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError, NoRoute
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue

ASK_MS: Final = 1_000
"""After how long a topic is asked for again."""

log = Logger()


class MissingTopics:
    """The missing topics of one consumer, by when they were last asked for."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        """`group` is for the log."""
        self._instance = instance
        self._group = group
        self._asked_ms: dict[str, int] = {}
        self._asking: IDelayedCall | None = None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._asked_ms)

    def keep(self, topics: Collection[str]) -> None:
        """Forgets those that are not among these topics."""
        self._asked_ms = {topic: ms for topic, ms in self._asked_ms.items() if topic in topics}

    async def queues_of(self, topic: str) -> list[MessageQueue] | None:
        """Returns the queues of a topic that can be read, or None if no broker has it yet.

        Raises NoNameServer and MQBrokerError.
        """
        instance, now_ms = self._instance, self._instance.clock.steady_ms()
        asked_ms = self._asked_ms.get(topic)
        if asked_ms is not None and topic not in instance.routes and now_ms - asked_ms < ASK_MS:
            return None
        try:
            queues = await instance.subscribe_queues(topic)
        except NoRoute as error:
            if topic not in self._asked_ms:
                log.warn("a consumer of group {group} waits for a topic that does not exist yet:"
                         " {error}", group=self._group, error=error)  # fmt: skip
            self._asked_ms[topic] = now_ms
            return None
        if self._asked_ms.pop(topic, None) is not None:
            log.info("topic {topic} exists now", topic=instance.without_namespace(topic))
            await instance.heartbeat_now()
        return queues

    async def look_for(self, topics: Collection[str]) -> None:
        """Asks for the routes of topics, those that are missing included. Raises NoNameServer."""
        for topic in topics:
            await self.queues_of(topic)

    def ask_on(self, topics: Collection[str]) -> None:
        """Asks for the topics among these that are missing until they come or `stop` is called.

        Whoever watches their routes hears of it.
        """
        self.keep(topics)
        if self._asked_ms and self._asking is None:
            self._asking = self._instance.clock.later(ASK_MS, self._ask)

    def stop(self) -> None:
        """Asks no more."""
        asking, self._asking = self._asking, None
        if asking is not None and asking.active():
            asking.cancel()

    def _ask(self) -> None:
        self._asking = self._instance.clock.later(ASK_MS, self._ask) if self._asked_ms else None
        for topic in list(self._asked_ms):
            asked: Deferred[bool] = self._instance.refresh(topic)
            asked.addErrback(_quietly)


def _quietly(failure: Failure) -> None:
    """Passes over what goes wrong; the client logs it when it asks for all routes."""
    failure.trap(MQClientError, RemotingError)
