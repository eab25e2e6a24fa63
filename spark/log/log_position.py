# SPDX-License-Identifier: Apache-2.0
"""The position of a stream over stores, as Spark keeps it in a checkpoint.

    {"v": 1, "brokers": {"DefaultCluster/broker-a": {"log": 1073741824, "fp": "9ae0daaf"}}}

A broker is named with its cluster. There is one number for each, however many queues it has: the
byte of its commit log at which the next record begins. Beside it stands what the options said about
the start and is still needed, since a stream that resumes follows its checkpoint and not its
options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.spark.arrow.errors import SparkSourceError

VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class LogPosition:
    """A place in the log of a broker; offsets are bytes of its commit log."""

    log: int
    """The offset at which the next record begins."""
    fingerprint: str = ""
    """The fingerprint of the log before that, see `spark.fingerprint`; empty if there is none."""
    begin: int | None = None
    """For a broker that appeared while the stream ran: where its first micro-batch starts."""
    since_ms: int | None = None
    """Messages stored before this time are not wanted: the stream was started with a time that was
    still to come. None if all are.
    """
    first: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The first queue offset that is wanted, by topic and queue."""
    until: int = 0
    """Records at this offset of the log and later have no queue offsets below `first`."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON object for the checkpoint."""
        value: dict[str, Any] = {"log": self.log, "fp": self.fingerprint}
        if self.begin is not None:
            value["begin"] = self.begin
        if self.since_ms is not None:
            value["since"] = self.since_ms
        if self.first and self.log < self.until:
            topics: dict[str, dict[str, int]] = {}
            for (topic, queue_id), offset in sorted(self.first.items()):
                topics.setdefault(topic, {})[str(queue_id)] = offset
            value |= {"first": topics, "until": self.until}
        return value

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> LogPosition:
        """Reads what `to_json` made. Raises KeyError, TypeError, ValueError for anything else."""
        return cls(
            log=int(value["log"]),
            fingerprint=str(value["fp"]),
            begin=value.get("begin"),
            since_ms=value.get("since"),
            first={
                (topic, int(queue_id)): int(offset)
                for topic, queues in value.get("first", {}).items()
                for queue_id, offset in queues.items()
            },
            until=int(value.get("until", 0)),
        )


def to_offset(positions: Mapping[str, LogPosition]) -> dict[str, Any]:
    """Returns the offset of the stream, from positions by `Store.key`."""
    brokers = {name: positions[name].to_json() for name in sorted(positions)}
    return {"v": VERSION, "brokers": brokers}


def of_offset(offset: Mapping[str, Any]) -> dict[str, LogPosition]:
    """Returns the positions by `Store.key`.

    Raises SparkSourceError when the checkpoint is of another kind of stream, or a later version.
    """
    if offset.get("v") != VERSION:
        raise SparkSourceError(
            f"the checkpoint is of version {offset.get('v')!r}, this program reads version"
            f" {VERSION}: update it, or start a new query with a new checkpointLocation"
        )
    brokers = offset.get("brokers")
    try:
        return {name: LogPosition.of_json(each) for name, each in brokers.items()}  # type: ignore[union-attr]  # caught
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SparkSourceError(
            f"the checkpoint holds {str(offset)[:200]}, which is not a position in stores: a query"
            " that changes from nameServer to storePath needs a new checkpointLocation"
        ) from None
