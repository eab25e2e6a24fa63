# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from txrocketmq.spark.decode import BadRecord
from txrocketmq.spark.ingest.quarantine import SplitQuarantine, quarantine_path


def test_no_damage_is_no_file(tmp_path: Path) -> None:
    quarantine = SplitQuarantine(str(tmp_path), "a-0-9", "a")
    assert not quarantine.finish()
    assert list(tmp_path.iterdir()) == []


def test_every_record_is_a_row(tmp_path: Path) -> None:
    quarantine = SplitQuarantine(str(tmp_path), "a-0-9", "a")
    bad = [BadRecord(at, 9, "crc" if at % 2 else "chain", "why", b"bytes") for at in range(150)]
    for each in bad:
        quarantine.add("commitlog/0", each)
    assert quarantine.finish()
    assert quarantine.path == quarantine_path("a-0-9") == "_quarantine/part-a-0-9.parquet"
    assert quarantine.reasons == {"crc": 75, "chain": 75}
    found = pq.read_table(quarantine.spooled).to_pylist()
    assert [tuple(row.values()) for row in found] == [("a", "commitlog/0", *each) for each in bad]
