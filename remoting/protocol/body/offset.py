# SPDX-License-Identifier: Apache-2.0
"""Offsets of groups: tables, resets, time spans.

Java: ResetOffsetBody, GetConsumerStatusBody and others in remoting.protocol.body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.base import Body, body, member
from txrocketmq.remoting.protocol.body.route import DataVersion


@body("org.apache.rocketmq.remoting.protocol.body.ConsumerOffsetSerializeWrapper")
class ConsumerOffsetSerializeWrapper(Body):
    """All offsets of a broker: from "topic@group" to queue id to offset."""

    offset_table: Mapping[str, Mapping[int, int]] = member(default_factory=dict)
    data_version: DataVersion | None = None


@body("org.apache.rocketmq.remoting.protocol.body.ResetOffsetBody")
class ResetOffsetBody(Body):
    """The offsets at which a client is to continue."""

    offset_table: Mapping[MessageQueue, int] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.MessageQueueForC")
class MessageQueueForC(Body):
    """A queue and its offset, in the form for the C++ client."""

    topic: str
    broker_name: str
    queue_id: int = 0
    offset: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ResetOffsetBodyForC")
class ResetOffsetBodyForC(Body):
    """A ResetOffsetBody in the form that the C++ client understands."""

    offset_table: Sequence[MessageQueueForC] = ()


@body("org.apache.rocketmq.remoting.protocol.body.GetConsumerStatusBody")
class GetConsumerStatusBody(Body):
    """How far clients have come: offsets by queue.

    A client answers with `message_queue_table`, the broker with `consumer_table`, by client id.
    """

    message_queue_table: Mapping[MessageQueue, int] = member(default_factory=dict)
    consumer_table: Mapping[str, Mapping[MessageQueue, int]] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.QueryCorrectionOffsetBody")
class QueryCorrectionOffsetBody(Body):
    """The offsets that QUERY_CORRECTION_OFFSET asked for, by queue id."""

    correction_offsets: Mapping[int, int] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.QueueTimeSpan")
class QueueTimeSpan(Body):
    """When the messages of a queue were stored, and how far behind a group is; all in ms.

    `min_time_stamp` and `max_time_stamp` are of the first and last message, `consume_time_stamp` is
    of the last one that the group has consumed. The original writes each time once more as text,
    which nothing reads.
    """

    message_queue: MessageQueue | None = None
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.QueryConsumeTimeSpanBody")
class QueryConsumeTimeSpanBody(Body):
    """The time spans of all queues of a topic."""

    consume_time_span_set: Sequence[QueueTimeSpan] = ()
