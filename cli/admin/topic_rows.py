# SPDX-License-Identifier: Apache-2.0
"""Topics as rows of a table: queues, messages, rates and sizes.

A broker says how many messages a topic has, and not how many bytes, so the size is an estimate: the
number of messages times the mean size of some of them. Brokers of 4.x do not report rates here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from txrocketmq.cli.tables import size_text, time_text
from txrocketmq.cli.timeline import at_once
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.results import TopicStats
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.queue.pull_queue import QueuePull
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.tags import SUB_ALL, build_subscription_data
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP

COLUMNS: Final = {
    "topic": "TOPIC", "queues": "QUEUES", "perm": "PERM", "messages": "MESSAGES",
    "putTps": "IN/S", "size": "~SIZE", "lastUpdate": "LAST MESSAGE",
}  # fmt: skip
FOLDS: Final = ("lastUpdate", "size")
"""The columns that matter least."""
PERMS: Final = {"rw": 6, "r": 4, "w": 2, "none": 0}
PERM_NAMES: Final = {number: name for name, number in PERMS.items()}
SAMPLES: Final = 8
"""How many messages are looked at, at each end of a queue."""
_TIMEOUT_MS: Final = 5_000
_FAILURES: Final = (MQClientError, RemotingError)


class OwnTopics:
    """Which topics belong to the system: each cluster and each broker has a topic of its name."""

    @classmethod
    async def of(cls, admin: Admin) -> OwnTopics:
        """Asks for the names of brokers and clusters."""
        brokers = await admin.brokers()
        clusters = {each.cluster for each in brokers}
        replies = {f"{each}_REPLY_TOPIC" for each in clusters}
        return cls(clusters | {each.name for each in brokers} | replies)

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def __contains__(self, topic: str) -> bool:
        return (
            is_system_topic(topic)
            or topic in self._names
            or topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        )


async def topic_rows(
    client: ClientInstance, names: Sequence[str], step: Callable[[int], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Returns topics as rows; `step` is called after each. A topic that fails has no values."""
    admin = Admin(client)

    async def ask(name: str) -> dict[str, Any]:
        try:
            row = await _row(client, admin, name)
        except _FAILURES:
            row = {"topic": name}
        step(1)
        return row

    return await at_once([partial(ask, name) for name in names])


async def _row(client: ClientInstance, admin: Admin, topic: str) -> dict[str, Any]:
    route = await admin.topic_route(topic)
    stats = await admin.topic_stats(topic)
    mean_bytes = await _mean_bytes(client, stats) if stats.messages else None
    size_bytes = None if mean_bytes is None else round(mean_bytes * stats.messages)
    perms = {each.perm for each in route.queue_datas}
    last_ms = max((each.last_update_timestamp for each in stats.queues), default=0)
    return {
        "topic": topic,
        "queues": _queues(stats, route),
        "perm": "/".join(str(PERM_NAMES.get(perm, perm)) for perm in sorted(perms)),
        "messages": stats.messages,
        "putTps": stats.put_tps,
        "estimatedBytes": size_bytes,
        "size": size_text(size_bytes),
        "lastUpdateTimestamp": last_ms,
        "lastUpdate": time_text(last_ms),
    }


def _queues(stats: TopicStats, route: TopicRouteData) -> int:
    """Returns how many queues there are at all brokers together."""
    return len(stats.queues) or sum(each.read_queue_nums for each in route.queue_datas)


async def _mean_bytes(client: ClientInstance, stats: TopicStats) -> float | None:
    """Returns the mean size of a few messages at both ends of the fullest queue."""
    fullest = max(stats.queues, key=lambda each: each.messages)
    pull = QueuePull(
        client,
        TOOLS_GROUP,
        fullest.queue,
        suspend_ms=0,
        timeout_ms=_TIMEOUT_MS,
        batch_size=SAMPLES,
    )
    subscription = build_subscription_data(stats.topic, SUB_ALL)
    sizes: list[int] = []
    for offset in {fullest.min_offset, max(fullest.max_offset - SAMPLES, fullest.min_offset)}:
        pulled = await pull.pull(offset, subscription, posts_subscription=True)
        sizes += [each.store_size for each in pulled.messages]
    return sum(sizes) / len(sizes) if sizes else None
