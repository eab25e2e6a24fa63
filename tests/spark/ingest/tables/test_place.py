# SPDX-License-Identifier: Apache-2.0
"""What all tables have in common because they lie in a folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from txrocketmq.spark.arrow.errors import OptionError, TableError
from txrocketmq.spark.ingest.tables.place import TablePlace, not_written


class Made(TablePlace):
    KIND = "a table of tests"
    OWN = ("_own",)


def test_a_place_has_a_name_and_an_absolute_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Made("here").uri == str(tmp_path / "here")
    with pytest.raises(OptionError, match="option out is empty"):
        Made(" ")


def test_only_a_folder_without_strangers_will_do(tmp_path: Path) -> None:
    place = Made(str(tmp_path / "table"))
    place.check_empty()
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "_own.tmp").touch()
    place.check_empty()
    (tmp_path / "table" / "other").touch()
    with pytest.raises(TableError, match="holds 'other' and is not a table of tests of txrocketmq"):
        place.check_empty()
    with pytest.raises(TableError, match="is not a folder"):
        Made(str(tmp_path / "table" / "other")).check_empty()


def test_rows_of_known_parts_of_logs_are_not_written_again() -> None:
    rows = pa.table(
        {
            "cluster": ["c", "c", "c", "d"],
            "brokerName": ["a", "a", "b", "a"],
            "physicalOffset": [9, 10, 9, 9],
        }
    )
    kept = not_written(rows, {"c/a": 10})
    assert [tuple(row.values()) for row in kept.to_pylist()] == [
        ("c", "a", 10), ("c", "b", 9), ("d", "a", 9),
    ]  # fmt: skip
    assert not_written(rows, {}) is rows
