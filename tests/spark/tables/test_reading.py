# SPDX-License-Identifier: Apache-2.0
"""Tables without Spark. What each of them has is in the tests of its module."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter, write_store
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.tables import reading
from txrocketmq.spark.tables.reading import TABLES, TablePart, TableReading, table_columns
from txrocketmq.spark.tables.table import Table


def test_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [Draft(topic="Orders")])
    options = SourceOptions.of(
        {"storePath": str(tmp_path / "a"), "table": "queues", "columns": "maxOffset,topic"}
    )
    reading = TableReading(options, table_columns(options))
    rows = [r for part in reading.parts() for b in reading.batches(part) for r in b.to_pylist()]
    assert rows == [{"maxOffset": 1, "topic": "Orders"}]
    assert reading.schema.names == ["maxOffset", "topic"]


def test_an_option_without_meaning(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [])
    options = SourceOptions.of({"storePath": str(tmp_path), "table": "index", "topic": "a"})
    with pytest.raises(OptionError, match="topic has no meaning for table=index"):
        TableReading(options, table_columns(options))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"table": "queues", "assign": '{"Orders": {"b": [0]}}'}, "names the broker b; the stores"),
        (
            {"table": "dataloss", "startingOffsets": '{"log": {"broker-a": 0}}'},
            "broker-a, which several clusters have; name one of .*east/broker-a",
        ),
        (
            {"table": "dataloss", "startingOffsets": '{"Orders": {"9": 0}}'},
            "queue 9 of Orders on any broker is not",
        ),
    ],
)
def test_names_that_the_stores_do_not_have(
    tmp_path: Path, options: dict[str, str], why: str
) -> None:
    for cluster in ("east", "west"):
        write_store(tmp_path / cluster / "broker-a", [Draft(topic="Orders")])
    paths = ",".join(f"{tmp_path}/{cluster}/broker-a" for cluster in ("east", "west"))
    parsed = SourceOptions.of({"storePath": paths, "cluster": "east,west", **options})
    with pytest.raises(OptionError, match=why):
        TableReading(parsed, table_columns(parsed))


def test_every_table_tells_the_cluster(tmp_path: Path) -> None:
    for cluster in ("east", "west"):
        write_store(tmp_path / cluster / "broker-a", [Draft(topic="Orders")])
    paths = ",".join(f"{tmp_path}/{cluster}/broker-a" for cluster in ("east", "west"))
    for table in TABLES:
        options = SourceOptions.of(
            {
                "storePath": paths,
                "cluster": "east,west",
                "table": table,
                "columns": "brokerName,cluster",
            }
        )
        made = TableReading(options, table_columns(options))
        batches = [batch for part in made.parts() for batch in made.batches(part)]
        found = {(row["brokerName"], row["cluster"]) for b in batches for row in b.to_pylist()}
        assert found <= {("broker-a", "east"), ("broker-a", "west")}
        if table in ("queues", "segments", "checkpoint"):
            assert len(found) == 2


TABLES_OF_PIECES = ("queues", "consumequeue", "index", "quarantine")


def test_only_these_tables_are_planned_in_pieces() -> None:
    """All others are read as they are when a task reads them."""
    assert sorted(name for name, table in TABLES.items() if table.since is not None) == sorted(
        TABLES_OF_PIECES
    )
    plain = Table("t", "", (), lambda *_: ()).pieces
    assert all(table.pieces is plain for table in TABLES.values() if table.since is None)


@pytest.mark.parametrize("table", TABLES_OF_PIECES)
def test_an_old_plan_gives_what_a_new_one_gives(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StoreWriter(tmp_path / "a", segment_bytes=2048, index_items=15)

    def put(topics: int) -> None:
        for number in range(40):
            writer.put(
                Draft(f"T{number % topics}", body=bytes(90), properties={"KEYS": f"k{number}"})
            )

    put(4)
    options = SourceOptions.of({"storePath": str(writer.root), "table": table})

    def made() -> TableReading:
        return TableReading(options, table_columns(options))

    def rows(reading: TableReading, parts: Sequence[TablePart]) -> list[str]:
        batches = [batch for part in parts for batch in reading.batches(part)]
        return sorted(repr(row) for batch in batches for row in batch.to_pylist())

    old = made()
    parts = pickle.loads(pickle.dumps(old.parts()))  # noqa: S301 - as they travel
    monkeypatch.setattr(reading, "is_later", lambda _: True)
    put(7)
    writer.delete_segment()
    shutil.rmtree(writer.root / "consumequeue/T1")
    damaged = writer.stored[-3].physical_offset
    segment = writer.segment(damaged // 2048 * 2048)
    data = bytearray(segment.read_bytes())
    data[damaged % 2048 + 4] ^= 0xFF
    segment.write_bytes(data)
    found = rows(old, parts)
    assert found == rows(made(), made().parts())
    assert found
