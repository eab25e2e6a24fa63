# SPDX-License-Identifier: Apache-2.0
"""What the admin client tells, where it puts together what several servers have said.

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
    """A broker that the name servers know."""

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
    """The bounds of a queue; the time is that of its last message, 0 when there is none."""

    queue: MessageQueue
    min_offset: int
    max_offset: int
    last_update_timestamp: int

    @property
    def messages(self) -> int:
        """How many messages it holds."""
        return self.max_offset - self.min_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """The queues of a topic, and messages a second, which 4.x does not tell."""

    topic: str
    queues: tuple[QueueStats, ...]
    put_tps: float = 0.0

    @property
    def messages(self) -> int:
        """How many messages it holds."""
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
        """How many messages are there that the group has not consumed."""
        return max(0, self.broker_offset - self.consumer_offset)

    @property
    def in_flight(self) -> int:
        """How many of these its consumers have already; 4.x does not tell."""
        return max(0, self.pull_offset - self.consumer_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """How far a group has come, and messages a second."""

    group: str
    queues: tuple[QueueProgress, ...]
    consume_tps: float = 0.0

    @property
    def lag(self) -> int:
        """How many messages it has yet to consume."""
        return sum(queue.lag for queue in self.queues)

    @property
    def in_flight(self) -> int:
        """How many of these its consumers have already; 4.x does not tell."""
        return sum(queue.in_flight for queue in self.queues)

    @property
    def lag_by_topic(self) -> Mapping[str, int]:
        """The same by topic."""
        lags: dict[str, int] = {}
        for each in self.queues:
            lags[each.queue.topic] = lags.get(each.queue.topic, 0) + each.lag
        return lags


class TrackType(Enum):
    """What a group has made of a message."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrack:
    """What became of a message in a group; `detail` says why that is not known."""

    group: str
    track: TrackType
    detail: str = ""
