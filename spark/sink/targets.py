# SPDX-License-Identifier: Apache-2.0
"""The queues to which a message may go, according to its row and to the routes of the cluster.

A row that names queue and broker, or a sharding key, has one queue; any other may go to several,
and a failed attempt goes on to another of them.

Java: SelectMessageQueueByHash, DefaultMQProducerImpl.selectOneMessageQueue.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.send import write_queues
from txrocketmq.spark.sink.rows import Outgoing

_SHOWN_QUEUES: Final = 32


class Lane(NamedTuple):
    """A topic, or one broker or queue of it, for messages that may travel together."""

    topic: str
    broker_name: str | None = None
    queue_id: int | None = None

    @property
    def is_one_queue(self) -> bool:
        """Whether the lane is a single queue, in which messages keep the order of their rows."""
        return self.broker_name is not None and self.queue_id is not None


class Targets:
    """The queues of the topics that are written to, as known from the name servers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._queues: dict[str, list[MessageQueue]] = {}

    def lane(self, outgoing: Outgoing) -> Lane:
        """Returns the lane of a message. Raises ClusterError if no queue fits its row."""
        topic = outgoing.message.topic
        lane = Lane(topic, outgoing.broker_name, outgoing.queue_id)
        if outgoing.sharding_key is None or lane.is_one_queue:
            return lane
        queues = self.queues(lane)
        queue = queues[abs(java_string_hash(outgoing.sharding_key)) % len(queues)]
        return Lane(topic, queue.broker_name, queue.queue_id)

    def queues(self, lane: Lane) -> list[MessageQueue]:
        """Returns the queues of a lane, in order. Raises ClusterError when there is none."""
        topic, broker_name, queue_id = lane
        if topic not in self._queues:
            self._queues[topic] = write_queues(self._cluster, topic)
        queues = self._queues[topic]
        if broker_name is not None:
            queues = [queue for queue in queues if queue.broker_name == broker_name]
        if queue_id is not None:
            queues = [queue for queue in queues if queue.queue_id == queue_id]
        if queues:
            return queues
        wanted = "queue" if queue_id is None else f"queue {queue_id}"
        place = "" if broker_name is None else f" at broker {broker_name}"
        known = ", ".join(
            f"{its.broker_name} {its.queue_id}" for its in self._queues[topic][:_SHOWN_QUEUES]
        )
        raise ClusterError(
            f"topic {topic} has no {wanted}{place} that can be written to; it has: {known}. Without"
            " the columns brokerName and queueId (partition), all take turns"
        )

    def forget(self, topic: str) -> None:
        """Forgets the queues of a topic, which may have moved, so that they are looked up again."""
        self._queues.pop(topic, None)
