# SPDX-License-Identifier: Apache-2.0
"""Acknowledgements of POP, and rebalancing by the broker (5.x).

Java: BatchAck, BitSetSerializerDeserializer, QueryAssignmentRequestBody and others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.base import Body, BodyError, body, member
from txrocketmq.remoting.protocol.body.heartbeat import MESSAGE_MODELS

MESSAGE_REQUEST_MODES: Final = ("PULL", "POP")
MAX_BIT_SET_BYTES: Final = 4096
"""Largest bit set of acknowledged messages; a pop hands out far fewer than its 32768."""


@body("org.apache.rocketmq.remoting.protocol.body.BatchAck")
class BatchAck(Body):
    """Acknowledges many messages of one pop; its names on the wire are one or two letters.

    `retry` is "0" for the topic itself, "1" or "2" for its retry topic of that version. `bit_set`
    is a Java BitSet in base64, of distances from `start_offset`. Times are in ms.
    """

    consumer_group: str | None = member(wire="c", default=None)
    topic: str | None = member(wire="t", default=None)
    retry: str | None = member(wire="r", default=None)
    start_offset: int = member(wire="so", default=0)
    queue_id: int = member(wire="q", default=0)
    revive_queue_id: int = member(wire="rq", default=0)
    pop_time: int = member(wire="pt", default=0)
    invisible_time: int = member(wire="it", default=0)
    bit_set: str | None = member(wire="b", default=None)

    def within(self, least: int, most: int) -> int:
        """Returns the bits of those distances whose queue offsets are within these bounds.

        Raises BodyError if the bit set is not base64, or larger than MAX_BIT_SET_BYTES.
        """
        try:
            bits = base64.b64decode(self.bit_set or "", validate=True)
        except (binascii.Error, ValueError):
            raise BodyError(f"{self.bit_set!r:.80} is not base64", "b") from None
        if len(bits) > MAX_BIT_SET_BYTES:
            raise BodyError(f"{len(bits)} bytes are more than {MAX_BIT_SET_BYTES}", "b")
        first = max(least - self.start_offset, 0)
        width = max(most - self.start_offset - first + 1, 0)
        found = int.from_bytes(bits, "little") >> first
        if width < found.bit_length():
            found &= (1 << width) - 1
        return found << first

    def offsets(self, distances: int) -> list[int]:
        """Returns the queue offsets of the distances whose bits are set."""
        size_bytes = (distances.bit_length() + 7) // 8
        return [
            self.start_offset + 8 * index + bit
            for index, byte in enumerate(distances.to_bytes(size_bytes, "little"))
            if byte
            for bit in range(8)
            if byte >> bit & 1
        ]


def encode_bit_set(distances: Iterable[int]) -> str:
    """Returns the Java BitSet with these bits, in base64."""
    bits = 0
    for distance in distances:
        bits |= 1 << distance
    return base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()


@body("org.apache.rocketmq.remoting.protocol.body.BatchAckMessageRequestBody")
class BatchAckMessageRequestBody(Body):
    """Acknowledgements of many pops at one broker."""

    broker_name: str | None = None
    acks: Sequence[BatchAck] = ()


@body("org.apache.rocketmq.remoting.protocol.body.QueryAssignmentRequestBody")
class QueryAssignmentRequestBody(Body):
    """Asks which queues a client is to consume."""

    topic: str | None = None
    consumer_group: str | None = None
    client_id: str | None = None
    strategy_name: str | None = None
    message_model: str | None = member(names=MESSAGE_MODELS, default=None)


@body("org.apache.rocketmq.common.message.MessageQueueAssignment")
class MessageQueueAssignment(Body):
    """A queue, and whether the client is to pull or to pop from it."""

    message_queue: MessageQueue | None = None
    mode: str = member(names=MESSAGE_REQUEST_MODES, default="PULL")
    attachments: Mapping[str, str] | None = None


@body("org.apache.rocketmq.remoting.protocol.body.QueryAssignmentResponseBody")
class QueryAssignmentResponseBody(Body):
    """The queues that the client is to consume; None if it is to keep those it has."""

    message_queue_assignments: Sequence[MessageQueueAssignment] | None = None


@body("org.apache.rocketmq.remoting.protocol.body.SetMessageRequestModeRequestBody")
class SetMessageRequestModeRequestBody(Body):
    """Whether a group pulls or pops from a topic.

    With POP, a client also gets the queues of `pop_share_queue_num` other clients; a number of 0 or
    less, or of all others, means all queues of all brokers.
    """

    topic: str | None = None
    consumer_group: str | None = None
    mode: str = member(names=MESSAGE_REQUEST_MODES, default="PULL")
    pop_share_queue_num: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.MessageRequestModeSerializeWrapper")
class MessageRequestModeSerializeWrapper(Body):
    """All pull and pop settings of a broker, by topic and group."""

    message_request_mode_map: Mapping[str, Mapping[str, SetMessageRequestModeRequestBody]] = member(
        default_factory=dict
    )
