# SPDX-License-Identifier: Apache-2.0
"""What the log of a table holds: plans, what became of each split, commits. All are JSON.

A plan fixes what a run takes: for each broker a range of its commit log, cut into splits. What a
task writes follows from its split alone, so that a run which was killed is done again under the
same names with the same content. A commit makes a run part of the table and is its manifest.
Offsets are bytes in the broker's commit log, times milliseconds since the epoch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from txrocketmq.spark.ingest.partition import escaped

VERSION: Final = 1


class Lost(NamedTuple):
    """A range of a broker's log that was to be taken and is gone."""

    broker_name: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.broker_name} [{self.start}, {self.end})"


class Position(NamedTuple):
    """How far a broker's log is in the table."""

    next: int
    """The first offset that is not."""
    fingerprint: str = ""
    """Of the log before it; see `spark.fingerprint`."""


class Split(NamedTuple):
    """What one task takes: the records that start in [start, end)."""

    broker_name: str
    start: int
    end: int
    first_is_boundary: bool
    """Whether a record (or the blank that ends a file) is known to start at `start`."""

    @property
    def name(self) -> str:
        """Of the files it makes; the same whenever the split is done again."""
        return f"{escaped(self.broker_name)}-{self.start:020d}-{self.end:020d}"

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run takes. Two plans of a run are told apart by `id`."""

    run: int
    id: str
    created_ms: int
    splits: tuple[Split, ...]
    ends: Mapping[str, Position]
    """By broker: where the run ends."""
    lost: tuple[Lost, ...] = ()
    """What was gone before the run began, and was accepted."""
    check_crc: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of log."""
        return sum(split.size_bytes for split in self.splits)

    def to_json(self) -> bytes:
        return _to_json(
            {
                **_fields(self),
                "splits": [split._asdict() for split in self.splits],
                "ends": _positions_to_json(self.ends),
                "lost": [each._asdict() for each in self.lost],
            }
        )

    @classmethod
    def from_json(cls, document: bytes) -> Plan:
        values = _from_json(document)
        values["splits"] = tuple(Split(**each) for each in values["splits"])
        values["ends"] = _positions_from_json(values["ends"])
        values["lost"] = tuple(Lost(**each) for each in values["lost"])
        return cls(**values)


class Part(NamedTuple):
    """A Parquet file of the table."""

    path: str
    """Inside the table."""
    rows: int
    size_bytes: int
    broker_name: str
    partition: dict[str, str]
    """Values of the columns that the path holds."""
    first_ms: int
    """No message in it was stored before."""
    last_ms: int
    """Nor after."""


@dataclass(slots=True)
class SplitResult:
    """What became of a split."""

    split: str
    """Its name."""
    plan_id: str
    parts: list[Part] = field(default_factory=list)
    records: int = 0
    """Records of the log that were looked at."""
    rows: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    """Rows by topic."""
    size_bytes: int = 0
    """Of the split: bytes of log."""
    quarantined: Counter[str] = field(default_factory=Counter)
    """Damaged records by reason."""
    lost: list[Lost] = field(default_factory=list)
    cpu_ms: int = 0

    def to_json(self) -> bytes:
        return _to_json(
            {
                **_fields(self),
                "parts": [part._asdict() for part in self.parts],
                "lost": [each._asdict() for each in self.lost],
            }
        )

    @classmethod
    def from_json(cls, document: bytes) -> SplitResult:
        values = _from_json(document)
        values["parts"] = [Part(**each) for each in values["parts"]]
        values["lost"] = [Lost(**each) for each in values["lost"]]
        values["topics"] = Counter(values["topics"])
        values["quarantined"] = Counter(values["quarantined"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Commit:
    """A run that is part of the table."""

    run: int
    plan_id: str
    committed_ms: int
    positions: Mapping[str, Position]
    """Of every broker that any run took from."""
    starts: Mapping[str, int]
    """By broker: the first offset that any run took."""
    parts: tuple[Part, ...]
    rows: int
    records: int
    log_bytes: int
    topics: Mapping[str, int]
    quarantined: Mapping[str, int]
    lost: tuple[Lost, ...]
    total_rows: int
    """Of the table, this run included."""
    total_parts: int

    def to_json(self) -> bytes:
        return _to_json(
            {
                **_fields(self),
                "positions": _positions_to_json(self.positions),
                "parts": [part._asdict() for part in self.parts],
                "lost": [each._asdict() for each in self.lost],
            }
        )

    @classmethod
    def from_json(cls, document: bytes) -> Commit:
        values = _from_json(document)
        values["positions"] = _positions_from_json(values["positions"])
        values["parts"] = tuple(Part(**each) for each in values["parts"])
        values["lost"] = tuple(Lost(**each) for each in values["lost"])
        return cls(**values)


def commit_of(plan: Plan, results: list[SplitResult], before: Commit | None, now_ms: int) -> Commit:
    """The commit of a run after `before`; `results` are in the order of the plan's splits."""
    topics: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    for result in results:
        topics += result.topics
        quarantined += result.quarantined
    starts = {split.broker_name: split.start for split in reversed(plan.splits)}
    parts = tuple(part for result in results for part in result.parts)
    rows = sum(result.rows for result in results)
    return Commit(
        run=plan.run,
        plan_id=plan.id,
        committed_ms=now_ms,
        positions={**(before.positions if before else {}), **plan.ends},
        starts={**starts, **(before.starts if before else {})},
        parts=parts,
        rows=rows,
        records=sum(result.records for result in results),
        log_bytes=plan.size_bytes,
        topics=dict(topics),
        quarantined=dict(quarantined),
        lost=(*plan.lost, *(each for result in results for each in result.lost)),
        total_rows=rows + (before.total_rows if before else 0),
        total_parts=len(parts) + (before.total_parts if before else 0),
    )


def _positions_to_json(positions: Mapping[str, Position]) -> dict[str, Any]:
    return {name: position._asdict() for name, position in positions.items()}


def _positions_from_json(values: Mapping[str, Any]) -> dict[str, Position]:
    return {name: Position(**each) for name, each in values.items()}


def _fields(document: Plan | SplitResult | Commit) -> dict[str, Any]:
    return {each.name: getattr(document, each.name) for each in fields(document)}


def _to_json(fields: dict[str, Any]) -> bytes:
    return json.dumps({"v": VERSION, **fields}, ensure_ascii=False).encode()


def _from_json(document: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(document)
    version = fields.pop("v", None)
    if version != VERSION:
        raise ValueError(f"a document of version {version}; this software writes {VERSION}")
    return fields
