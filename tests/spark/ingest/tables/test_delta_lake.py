# SPDX-License-Identifier: Apache-2.0
"""What a table knows of itself; runs and kills are in test_job.py."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.spark.ingest.stores_and_tables import SETTINGS, quarantined
from txrocketmq.spark.arrow.errors import TableBusy, TableError
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.quarantine_rows import gone
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable, location


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "table"
    DeltaLakeTable(str(made)).create(SETTINGS)
    return made


def test_settings_come_back(path: Path, tmp_path: Path) -> None:
    assert DeltaLakeTable(str(path)).settings() == SETTINGS
    assert DeltaLakeTable(str(tmp_path / "nothing")).settings() is None


def test_positions_are_committed_with_files(path: Path) -> None:
    table = DeltaLakeTable(str(path))
    assert table.positions() == {}
    at = {"b": CopiedRange(1 << 40, "00000a1f", 7), "a": CopiedRange(3)}
    table.expect(at)
    version = table.commit([], at, {})
    assert DeltaLakeTable(str(path)).positions() == at
    moved = {"a": CopiedRange(9, "ffffffff", 0)}
    assert table.commit([], moved, {"a": CopiedRange(3)}) == version + 1
    DeltaTable(path).create_checkpoint()
    assert DeltaLakeTable(str(path)).positions() == {**at, **moved}


def test_a_position_moves_from_where_it_was(path: Path) -> None:
    first, second = DeltaLakeTable(str(path)), DeltaLakeTable(str(path))
    second.expect(["a"])
    first.version()
    second.commit([], {"a": CopiedRange(5)}, {})
    with pytest.raises(TableBusy, match="another run wrote to"):
        first.commit([], {"a": CopiedRange(4)}, {})
    with pytest.raises(TableBusy, match="has taken a part of the log of a"):
        DeltaLakeTable(str(path)).commit([], {"a": CopiedRange(6)}, {"a": CopiedRange(4)})
    assert DeltaLakeTable(str(path)).positions() == {"a": CopiedRange(5)}


def test_a_table_that_is_there_is_not_made_again(path: Path) -> None:
    with pytest.raises(TableBusy):
        DeltaLakeTable(str(path)).create(SETTINGS)


def test_a_table_of_somebody_else(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": [1]}))
    with pytest.raises(TableError, match="that txrocketmq ingest has not made"):
        DeltaLakeTable(str(tmp_path)).settings()


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    DeltaLakeTable(str(tmp_path / "none")).check_empty()
    DeltaLakeTable(str(tmp_path)).check_empty()
    (tmp_path / "file").touch()
    with pytest.raises(TableError, match="holds 'file' and is not a table"):
        DeltaLakeTable(str(tmp_path)).check_empty()
    with pytest.raises(TableError, match="is not a folder"):
        DeltaLakeTable(str(tmp_path / "file")).check_empty()


def test_what_is_in_quarantine_is_not_put_there_again(path: Path) -> None:
    table = DeltaLakeTable(str(path))
    assert table.quarantined().num_rows == 0
    table.quarantine({"c/a": CopiedRange(10)}, gone("c/a", 2, 4))
    table.quarantine(
        {"c/a": CopiedRange(20)}, pa.concat_tables([gone("c/a", 2, 4), gone("c/a", 12, 14)])
    )
    table.quarantine({"c/b": CopiedRange(20)}, gone("c/b", 2, 4))
    found = sorted((row["brokerName"], row["physicalOffset"]) for row in quarantined(path))
    assert found == [("a", 2), ("a", 12), ("b", 2)]
    assert table.quarantined().num_rows == 3


def test_where_a_table_is_for_the_package() -> None:
    assert location("/data/table/") == ("/data/table", {})
    assert location("file:///data/table") == ("/data/table", {})
    uri = "s3://key:secret@lake/a/b?endpoint_override=127.0.0.1:9000&scheme=http&region=eu-1"
    assert location(uri) == (
        "s3://lake/a/b",
        {
            "AWS_REGION": "eu-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
            "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        },
    )  # fmt: skip
