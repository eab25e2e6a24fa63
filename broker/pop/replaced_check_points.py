# SPDX-License-Identifier: Apache-2.0
"""Messages whose check point was replaced by another one that is not durable yet.

A message that is to be hidden for another time gets a new check point, and is acknowledged in its
old one. A power cut that cost the new check point and spared the ack would lose the message, so the
ack is written when the new check point is durable. Until then this table tells that the old one
must not bring the message back.

The original writes both at once (ChangeInvisibleTimeProcessor.processChangeInvisibleTime).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.pop.metrics import ACK, PopMetrics
from txrocketmq.broker.pop.records import MergeKey
from txrocketmq.broker.store.formats.put_message import PutStatus


class Replaced:
    """The messages with a replaced check point."""

    def __init__(self, after_durable: AfterDurable, metrics: PopMetrics) -> None:
        self._after_durable = after_durable
        self._metrics = metrics
        self._offsets: dict[MergeKey, set[int]] = {}
        """By old check point: the offsets of messages that it no longer has."""

    def __len__(self) -> int:
        """How many old check points have such messages."""
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no further message can be taken now."""
        return self._after_durable.is_full

    def add(self, key: MergeKey, offset: int, ack: InnerMessage) -> None:
        """Notes that a message has a new check point, which is the last record of the log."""
        self._offsets.setdefault(key, set()).add(offset)
        self._after_durable.put([ack], partial(self._put, key, offset))

    def left(self, key: MergeKey, distances: Collection[int]) -> Collection[int]:
        """The distances of those messages of a check point that were not replaced."""
        gone = self._offsets.get(key)
        if gone is None:
            return distances
        return [each for each in distances if key.start_offset + each not in gone]

    def _put(self, key: MergeKey, offset: int, status: PutStatus) -> None:
        """Hears that the ack is written, or refused; then the old check point counts."""
        self._metrics.wrote(key, ACK, status.name)
        offsets = self._offsets[key]
        offsets.discard(offset)
        if not offsets:
            del self._offsets[key]
