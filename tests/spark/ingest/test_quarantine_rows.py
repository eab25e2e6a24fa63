# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.ingest import quarantine_rows as module
from txrocketmq.spark.ingest.quarantine_rows import SplitQuarantine, gone


def test_no_damage_is_no_row() -> None:
    assert SplitQuarantine("c/a").rows().num_rows == 0


def test_every_record_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DATA_BYTES", 500)
    quarantine = SplitQuarantine("c/a")
    bad = [BadRecord(at, 9, "crc" if at % 2 else "chain", "why", b"bytes") for at in range(150)]
    for each in bad:
        quarantine.add("commitlog/0", each)
    assert quarantine.reasons == {"crc": 75, "chain": 75}
    found = [tuple(row.values()) for row in quarantine.rows().to_pylist()]
    assert found[:100] == [("a", "c", "commitlog/0", *each) for each in bad[:100]]
    assert found[100:] == [("a", "c", "commitlog/0", *each[:4], b"") for each in bad[100:]]


def test_what_is_gone_is_rows_as_well() -> None:
    rows = gone("c/a", 100, 100 + (5 << 29)).to_pylist()
    assert {row["reason"] for row in rows} == {"gone"}
    assert sum(row["length"] for row in rows) == 5 << 29
    assert [row["physicalOffset"] for row in rows] == [100, 100 + (1 << 30), 100 + (2 << 30)]
