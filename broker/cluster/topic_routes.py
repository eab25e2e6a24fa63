# SPDX-License-Identifier: Apache-2.0
"""The queues of topics in the whole cluster, which a broker needs to distribute them.

The route of a topic is requested when it is first needed, and then with each `refresh`. Counterpart
of TopicRouteInfoManager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.work.life import Life, WalkBeat
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.flags import is_readable
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.primitives.listeners import each_told
from txrocketmq.remoting.protocol.body.route import TopicRouteData

MAX_TOPICS = 10_000
"""How many topics are remembered; routes of others are requested each time."""

ROUTES_MS = 30_000
"""How often all routes are requested again, in ms (loadBalancePollNameServerInterval)."""

QueueList = list[MessageQueue]


class TopicRoutes:
    """Readable queues by topic; `ask` asks a name server for a topic's route.

    `run` takes steps in several turns: many may wait for the same route.
    """

    def __init__(
        self,
        ask: Callable[[str], PendingReply],
        run: Callable[[Steps[None]], object] = finished,
    ) -> None:
        self._ask = ask
        self._run = run
        self._queues: dict[str, QueueList] = {}
        self._waiting: dict[str, list[Callable[[QueueList | None], None]]] = {}
        """Those who wait for routes that were requested."""

    def find(self, topic: str, then: Callable[[QueueList | None], None]) -> None:
        """Calls `then` with the queues, or None, at once or when a name server answers."""
        known = self._queues.get(topic)
        if known:
            then(known)
            return

        waiting = self._waiting.get(topic)
        if waiting is not None:
            waiting.append(then)
            return
        self._waiting[topic] = [then]

        def answered(outcome: Reply[Any] | Exception) -> None:
            self._take(topic, outcome)
            queues = self._queues.get(topic)
            self._run(each_told(self._waiting.pop(topic), queues))

        self._ask(topic).then(answered)

    def refresh(self) -> Steps[None]:
        """Requests all routes again, one by one; where that fails, the old one stays."""
        for topic in list(self._queues):
            self._ask(topic).then(partial(self._take, topic))
            yield

    def life(self) -> Life:
        """The routes are requested again and again."""
        again = WalkBeat(ROUTES_MS, "asking for routes", lambda *_: self.refresh())
        return Life("routes of topics", beats=(again,))

    def _take(self, topic: str, outcome: Reply[Any] | Exception) -> None:
        if isinstance(outcome, Exception):
            return
        if outcome.code == ResponseCode.TOPIC_NOT_EXIST:
            self._queues.pop(topic, None)
        if outcome.code != ResponseCode.SUCCESS:
            return
        try:
            route = TopicRouteData.decode(outcome.body_bytes)
        except HeaderError:
            return
        if topic in self._queues or len(self._queues) < MAX_TOPICS:
            self._queues[topic] = readable_queues(topic, route)


def readable_queues(topic: str, route: TopicRouteData) -> QueueList:
    """All queues that consumers may read, in order (topicRouteData2TopicSubscribeInfo)."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    )
