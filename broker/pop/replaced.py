# SPDX-License-Identifier: Apache-2.0
"""Messages whose check point was replaced by another one that is not durable yet.

A message that is hidden for another time has a new check point, and its old one is acknowledged. A
power cut that cost the new one and spared the ack would lose the message, so the ack is written
when the new check point is durable. Until then it is known here that the old one must not bring the
message back.

The original writes both at once (ChangeInvisibleTimeProcessor.processChangeInvisibleTime).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.pop.metrics import ACK, PopMetrics
from txrocketmq.broker.pop.records import Key
from txrocketmq.broker.store.put_message import PutStatus


class Replaced:
    """The messages with a replaced check point."""

    def __init__(self, after_durable: AfterDurable, metrics: PopMetrics) -> None:
        self._after_durable = after_durable
        self._metrics = metrics
        self._offsets: dict[Key, set[int]] = {}
        """Of each old check point: the offsets of messages that it has no more."""

    def __len__(self) -> int:
        """Of how many check points there are such messages."""
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no more can be taken now."""
        return self._after_durable.is_full

    def add(self, key: Key, offset: int, ack: InnerMessage) -> None:
        """A message of a check point has a new one, which is the last thing in the log."""
        self._offsets.setdefault(key, set()).add(offset)
        self._after_durable.put([ack], partial(self._put, key, offset))

    def left(self, key: Key, distances: Collection[int]) -> Collection[int]:
        """Those of the messages of a check point that it still has."""
        gone = self._offsets.get(key)
        if gone is None:
            return distances
        return [each for each in distances if key.start_offset + each not in gone]

    def _put(self, key: Key, offset: int, status: PutStatus) -> None:
        """The ack is written, or the store has refused it: then the old check point counts."""
        self._metrics.wrote(key, ACK, status.name)
        offsets = self._offsets[key]
        offsets.discard(offset)
        if not offsets:
            del self._offsets[key]
