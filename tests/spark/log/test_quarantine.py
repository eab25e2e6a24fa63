# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from txrocketmq.spark.arrow.schema import arrow_schema
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.ingest.quarantine_rows import Broker
from txrocketmq.spark.log.quarantine import COLUMNS, Quarantine, rows


def _bad(number: int) -> BadRecord:
    return BadRecord(number, 10, "crc", "it is other", b"bytes %d" % number)


def test_rows_have_the_declared_columns() -> None:
    batch = rows(Broker("c", "broker-a"), [("/log/0", _bad(7))])
    assert batch.schema == arrow_schema(COLUMNS)
    assert batch.to_pylist() == [
        {
            "brokerName": "broker-a", "cluster": "c",
            "file": "/log/0", "physicalOffset": 7, "length": 10,
            "reason": "crc", "detail": "it is other", "data": b"bytes 7",
        }
    ]  # fmt: skip
    assert rows(Broker("c", "broker-a"), []).num_rows == 0


def test_a_damage_longer_than_a_number_of_32_bits() -> None:
    bad = _bad(0)._replace(length=1 << 33)
    assert rows(Broker("c", "a"), [("f", bad)]).column("length").to_pylist() == [(1 << 31) - 1]


def test_a_task_that_is_tried_again_writes_the_same_files(tmp_path: Path) -> None:
    folder = tmp_path / "aside" / "here"
    for _ in range(2):
        quarantine = Quarantine(str(folder), Broker("c", "broker/a"))
        for number in range(300):
            quarantine.add("/log/0", _bad(number))
        quarantine.close()
        quarantine.close()
    names = sorted(path.name.rpartition("-")[0] for path in folder.iterdir())
    assert names == ["bad-broker%2Fa-00000000000000000000", "bad-broker%2Fa-00000000000000000256"]
    offsets = pq.read_table(folder).column("physicalOffset").to_pylist()
    assert sorted(offsets) == list(range(300))


def test_tasks_that_find_damage_at_one_place_do_not_overwrite_each_other(tmp_path: Path) -> None:
    unknown = _bad(1)._replace(physical_offset=-1)
    for number in range(2):
        quarantine = Quarantine(str(tmp_path), Broker("c", "a"))
        quarantine.add(f"the log behind queue {number}", unknown)
        quarantine.close()
    kept = pq.read_table(tmp_path).to_pylist()
    assert [row["physicalOffset"] for row in kept] == [-1, -1]
    assert len({row["file"] for row in kept}) == 2


def test_nothing_is_written_for_nothing(tmp_path: Path) -> None:
    Quarantine((tmp_path / "aside").as_uri(), Broker("c", "a")).close()
    assert not (tmp_path / "aside").exists()


def test_a_folder_by_its_uri(tmp_path: Path) -> None:
    quarantine = Quarantine((tmp_path / "aside").as_uri(), Broker("c", "a"))
    quarantine.add("f", _bad(1))
    quarantine.close()
    assert pq.read_table(tmp_path / "aside").num_rows == 1
