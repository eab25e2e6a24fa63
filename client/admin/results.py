# SPDX-License-Identifier: Apache-2.0
"""Results of the admin client that combine the answers of several servers.

What one server says is given as it is declared in txrocketmq.remoting.protocol.body. Times are in
milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from txrocketmq.remoting.message.message import MessageQueue

MASTER_ID = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """A broker that is registered at the name servers."""

    cluster: str
    name: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether it takes messages."""
        return self.broker_id == MASTER_ID

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """The first and the next offset of a queue, and the time of its last message (0 if none)."""

    queue: MessageQueue
    min_offset: int
    max_offset: int
    last_update_timestamp: int

    @property
    def messages(self) -> int:
        """The number of messages in the queue."""
        return self.max_offset - self.min_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """The queues of a topic, and messages per second (4.x brokers do not report that)."""

    topic: str
    queues: tuple[QueueStats, ...]
    put_tps: float = 0.0

    @property
    def messages(self) -> int:
        """The number of messages in the topic."""
        return sum(queue.messages for queue in self.queues)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProgress:
    """How far a group has come in a queue; the time is that of the last consumed message."""

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    pull_offset: int
    last_timestamp: int

    @property
    def lag(self) -> int:
        """The number of messages that the group has not consumed yet."""
        return max(0, self.broker_offset - self.consumer_offset)

    @property
    def in_flight(self) -> int:
        """How many of these its consumers have fetched already; 4.x brokers do not report it."""
        return max(0, self.pull_offset - self.consumer_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """How far a group has come, and how many messages it consumes per second."""

    group: str
    queues: tuple[QueueProgress, ...]
    consume_tps: float = 0.0

    @property
    def lag(self) -> int:
        """The number of messages that the group has not consumed yet."""
        return sum(queue.lag for queue in self.queues)

    @property
    def in_flight(self) -> int:
        """How many of these its consumers have fetched already; 4.x brokers do not report it."""
        return sum(queue.in_flight for queue in self.queues)

    @property
    def lag_by_topic(self) -> Mapping[str, int]:
        """The lag of the group in each topic."""
        lags: dict[str, int] = {}
        for each in self.queues:
            lags[each.queue.topic] = lags.get(each.queue.topic, 0) + each.lag
        return lags


class TrackType(Enum):
    """Whether a group has consumed a message."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrack:
    """Whether a group has consumed a message; if that is not known, `detail` says why."""

    group: str
    track: TrackType
    detail: str = ""
