# SPDX-License-Identifier: Apache-2.0
"""Gathers messages into parcels: single messages, or batches for one queue.

Messages of a lane keep their order. Delayed messages, half messages and messages of retry topics do
not go into a batch but travel alone, and so does a message as large as a batch. The size of all
waiting messages is limited.

Java: MessageBatch.generateFromList, SendMessageProcessor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX
from txrocketmq.spark.live.wire.send import Parcel, batch_parcel, message_parcel
from txrocketmq.spark.live.wire.transaction import half_parcel
from txrocketmq.spark.sink.targets import Lane

PARCEL_BYTES: Final = 512 << 10
"""A batch is sent before it grows larger."""
MAX_PARCEL_MESSAGES: Final = 4096
WAITING_BYTES: Final = 16 << 20
"""The most that waits in all lanes of a task; above it the fullest lane is sent."""

_ALONE: Final = frozenset({names.DELAY, names.TIMER_DELIVER_MS})


class Packed(NamedTuple):
    """A parcel and where it goes."""

    lane: Lane
    parcel: Parcel
    messages: int
    """The number of messages in the parcel."""


class Parcels:
    """Gathers the messages of a task; `max_message_bytes` is the most that the brokers take.

    With `half_of`, the name of a producer group, all become half messages of that group.
    """

    def __init__(self, max_message_bytes: int, *, half_of: str | None = None) -> None:
        self._max_message_bytes = max_message_bytes
        self._half_of = half_of
        self._batch_bytes = min(max_message_bytes, PARCEL_BYTES)
        self._lanes: dict[Lane, _Gathered] = {}
        self._waiting_bytes = 0

    def add(self, lane: Lane, message: Message) -> Iterator[Packed]:
        """Takes a message, which has its unique key; yields the parcels that are to be sent now.

        Raises ValueError when the message does not fit its format or is larger than brokers take.
        """
        if len(message.body) > self._max_message_bytes:
            raise ValueError(
                f"its body has {len(message.body)} bytes, more than maxMessageBytes,"
                f" {self._max_message_bytes}"
            )
        if self._half_of is not None:
            yield Packed(lane, half_parcel(message, self._half_of), 1)
            return
        entry = encode_batch((message,))
        if _travels_alone(message) or len(entry) > self._batch_bytes:
            yield from self._take(lane)
            yield Packed(lane, message_parcel(message), 1)
            return
        gathered = self._lanes.get(lane)
        if gathered is not None and gathered.size + len(entry) > self._batch_bytes:
            yield from self._take(lane)
            gathered = None
        if gathered is None:
            gathered = self._lanes[lane] = _Gathered(message)
        gathered.entries.append(entry)
        gathered.size += len(entry)
        self._waiting_bytes += len(entry)
        if len(gathered.entries) >= MAX_PARCEL_MESSAGES:
            yield from self._take(lane)
        elif self._waiting_bytes > WAITING_BYTES:
            yield from self._take(max(self._lanes, key=lambda each: self._lanes[each].size))

    def rest(self) -> Iterator[Packed]:
        """Yields parcels of all waiting messages."""
        for lane in tuple(self._lanes):
            yield from self._take(lane)

    def _take(self, lane: Lane) -> Iterator[Packed]:
        gathered = self._lanes.pop(lane, None)
        if gathered is None:
            return
        self._waiting_bytes -= gathered.size
        count = len(gathered.entries)
        if count == 1:
            yield Packed(lane, message_parcel(gathered.first), 1)
            return
        empty = batch_parcel(())
        yield Packed(lane, empty._replace(body=b"".join(gathered.entries)), count)


class _Gathered:
    """The messages that wait in a lane, each encoded as in a batch."""

    def __init__(self, first: Message) -> None:
        self.first = first
        self.entries: list[bytes] = []
        self.size = 0


def _travels_alone(message: Message) -> bool:
    return message.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) or not _ALONE.isdisjoint(
        message.properties
    )
