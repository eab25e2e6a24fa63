# SPDX-License-Identifier: Apache-2.0
"""Routes: the queues that a producer may send to, and those that a consumer may read from.

Pure, for the client and for the Spark sources. Static topics, whose queues move between brokers
(5.x), are not read. Counterpart of TopicPublishInfo, and of the conversions of
MQClientInstance.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Sequence

from txrocketmq.remoting.message.flags import is_readable, is_writable
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.routing.addresses import MASTER_ID

_INDEX_MASK = 0x7FFFFFFF


class PublishInfo:
    """The queues a producer may send to; `select` takes one after the other."""

    def __init__(self, queues: Sequence[MessageQueue], start: int | None = None) -> None:
        self.queues = tuple(queues)
        self._index = random.getrandbits(31) if start is None else start

    def select(
        self,
        last_broker: str | None = None,
        preferences: Sequence[Callable[[str], bool]] = (),
    ) -> MessageQueue:
        """Returns the next queue, if possible of another broker than the last one.

        The preferences judge the names of brokers, one after the other: if no queue satisfies the
        first one, the second one applies, and if no queue satisfies any of them, every queue will
        do.
        """
        if not preferences:
            if last_broker is None:
                return self._next()
            for _ in self.queues:
                queue = self._next()
                if queue.broker_name != last_broker:
                    return queue
        for suits in preferences:
            for _ in self.queues:
                queue = self._next()
                if queue.broker_name != last_broker and suits(queue.broker_name):
                    return queue
        return self._next()

    def _next(self) -> MessageQueue:
        index = self._index
        self._index = (index + 1) & _INDEX_MASK
        return self.queues[index % len(self.queues)]


def publish_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Returns the writable queues of brokers that have a master.

    If the route says which queues an ordered topic has (orderTopicConf), it returns these instead.
    """
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    with_master = {
        broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs
    }
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda each: each.broker_name)
        if is_writable(data.perm) and data.broker_name in with_master
        for queue_id in range(min(data.write_queue_nums, MAX_QUEUES))
    ]


def subscribe_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Returns the readable queues, sorted as rebalancing needs them; a slave alone will do."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if is_readable(data.perm)
        for queue_id in range(min(data.read_queue_nums, MAX_QUEUES))
    )


def why_not_writable(route: TopicRouteData) -> str:
    """Returns why nothing can be sent with a route that has no queue to send to."""
    if not route.queue_datas and not route.order_topic_conf:
        return "its route names no queues"
    writable = [data for data in route.queue_datas if is_writable(data.perm)]
    if not writable and route.queue_datas:
        acting = sorted(
            each.broker_name for each in route.broker_datas if each.enable_acting_master
        )
        why = "its brokers allow no writing"
        if acting:  # name servers of 5.x take the right away while there is no master
            why += f"; if the master of {', '.join(acting)} is away, a slave acts for it meanwhile"
        return why
    if any(data.write_queue_nums > 0 for data in writable):
        names = ", ".join(sorted({data.broker_name for data in writable}))
        return f"no master is registered for {names}; a slave takes no messages"
    return "it has no queue that can be written"


def default_route(route: TopicRouteData, max_queues: int) -> TopicRouteData:
    """Returns the route that a new topic will have, made from that of the default topic (TBW102).

    It has at most `max_queues` queues at each broker.
    """
    queue_datas = []
    for data in route.queue_datas:
        queues = min(max_queues, data.read_queue_nums)
        queue_datas.append(
            dataclasses.replace(data, read_queue_nums=queues, write_queue_nums=queues)
        )
    return dataclasses.replace(route, queue_datas=queue_datas)


def is_changed(old: TopicRouteData | None, new: TopicRouteData) -> bool:
    """Returns whether routes differ in more than order (TopicRouteData.topicRouteDataChanged)."""
    return old is None or _sorted(old) != _sorted(new)


def _ordered_queues(topic: str, order_topic_conf: str) -> list[MessageQueue]:
    """Returns the queues that a text "broker:count;broker:count" names.

    Operators write it by hand, so parts that are malformed are left out.
    """
    queues = []
    for part in order_topic_conf.split(";"):
        broker_name, _, count = part.partition(":")
        if re.fullmatch(r"\s*[0-9]{1,9}\s*", count):
            queue_count = min(int(count), MAX_QUEUES)
            queues += [MessageQueue(topic, broker_name, n) for n in range(queue_count)]
    return queues


def _sorted(route: TopicRouteData) -> TopicRouteData:
    return dataclasses.replace(
        route,
        queue_datas=sorted(route.queue_datas, key=lambda each: each.broker_name),
        broker_datas=sorted(route.broker_datas, key=lambda each: each.broker_name),
    )
