# SPDX-License-Identifier: Apache-2.0
"""How far a stream has come in a cluster: the offsets that Spark keeps in its checkpoint.

    {"v": 1, "topics": {"orders": {"broker-a": {"0": 17, "1": 4}}},
     "new": {"orders": {"broker-a": {"1": 0}}},
     "stored": {"orders": {"broker-a": {"0": 1790000000000, "1": 1790000000042}}}}

`topics` are the next offsets to read. `new` are the queues that a micro-batch reads for the first
time, or anew because their topic was made anew, and the offsets where it begins. So a micro-batch
that is repeated after a failure reads the same messages, whatever has happened to the queue
meanwhile. `stored` tells when the message before each offset was stored: see `spark.live.life`.
Positions of earlier versions do not have it. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.arrow.errors import SparkSourceError

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Position:
    """A position of a stream: the end of one micro-batch and the start of the next one."""

    next_offsets: Mapping[MessageQueue, int]
    new: Mapping[MessageQueue, int] = field(default_factory=dict)
    """Where reading begins in queues that the previous position does not have, or has in vain."""
    stored: Mapping[MessageQueue, int] = field(default_factory=dict)
    """When the message before the next offset of a queue was stored, as far as it is known."""

    @classmethod
    def of_json(cls, value: Any) -> Position:
        """Reads what Spark gives back. Raises SparkSourceError if this source did not write it."""
        if not isinstance(value, Mapping) or value.get("v") != VERSION:
            raise SparkSourceError(
                f"the checkpoint's offset {value!r:.200} is not one of a cluster in a form known"
                " here: a stream that was begun over stores, or by a newer version, has to go on so"
            )
        return cls(
            _of_json(value.get("topics")),
            _of_json(value.get("new", {})),
            _of_json(value.get("stored", {})),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns an object of JSON; equal positions give equal objects, in the same order."""
        value: dict[str, Any] = {"v": VERSION, "topics": _to_json(self.next_offsets)}
        if self.new:
            value["new"] = _to_json(self.new)
        if self.stored:
            value["stored"] = _to_json(self.stored)
        return value

    def ranges_from(self, start: Position) -> dict[MessageQueue, tuple[int, int]]:
        """Returns each queue's range from `start`: its first offset, and the one after its last."""
        return {
            queue: (self.new.get(queue, start.next_offsets.get(queue, end)), end)
            for queue, end in self.next_offsets.items()
        }


def _to_json(offsets: Mapping[MessageQueue, int]) -> dict[str, dict[str, dict[str, int]]]:
    topics: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets):
        brokers = topics.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return topics


def _of_json(value: Any) -> dict[MessageQueue, int]:
    try:
        return {
            MessageQueue(topic, broker, int(number)): int(offset)
            for topic, brokers in value.items()
            for broker, offsets in brokers.items()
            for number, offset in offsets.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise SparkSourceError(f"the checkpoint's offsets are damaged: {value!r:.200}") from None
