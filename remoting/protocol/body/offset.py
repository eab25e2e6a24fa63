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
    """All offsets of a broker: "topic@group" to queue id to offset."""

    offset_table: Mapping[str, Mapping[int, int]] = member(default_factory=dict)
    data_version: DataVersion | None = None


@body("org.apache.rocketmq.remoting.protocol.body.ResetOffsetBody")
class ResetOffsetBody(Body):
    """Where a client is to go on."""

    offset_table: Mapping[MessageQueue, int] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.MessageQueueForC")
class MessageQueueForC(Body):
    """A queue and its offset, as the C++ client wants them."""

    topic: str
    broker_name: str
    queue_id: int = 0
    offset: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ResetOffsetBodyForC")
class ResetOffsetBodyForC(Body):
    """The same as ResetOffsetBody for a C++ client."""

    offset_table: Sequence[MessageQueueForC] = ()


@body("org.apache.rocketmq.remoting.protocol.body.GetConsumerStatusBody")
class GetConsumerStatusBody(Body):
    """How far a client has come, or, from the broker, each client by its id."""

    message_queue_table: Mapping[MessageQueue, int] = member(default_factory=dict)
    consumer_table: Mapping[str, Mapping[MessageQueue, int]] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.QueryCorrectionOffsetBody")
class QueryCorrectionOffsetBody(Body):
    """Queue id to offset."""

    correction_offsets: Mapping[int, int] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.body.QueueTimeSpan")
class QueueTimeSpan(Body):
    """From when to when are a queue's messages, and how far behind is the group; all in ms.

    The original writes each time once more as text, which nothing reads.
    """

    message_queue: MessageQueue | None = None
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.QueryConsumeTimeSpanBody")
class QueryConsumeTimeSpanBody(Body):
    """The spans of all queues."""

    consume_time_span_set: Sequence[QueueTimeSpan] = ()
