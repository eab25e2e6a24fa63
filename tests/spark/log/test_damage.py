# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from txrocketmq.spark.arrow.errors import BadRecordError
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.log.damage import Damage
from txrocketmq.spark.options.option_values import FAIL, BadRecordPolicy

ORIGIN: Any = SimpleNamespace(
    broker_name="a", cluster=None, uri="/store", file_of=lambda at: f"/store/{at:03}"
)


def _bad(place: int, reason: str = "magic") -> BadRecord:
    return BadRecord(place, 10, reason, "it is other", b"data")


def test_damage_fails_with_the_place_the_reason_and_what_to_do() -> None:
    damage = Damage(FAIL, ORIGIN)
    damage.end()
    with pytest.raises(
        BadRecordError,
        match=r"in /store/007 at physical offset 7 \(10 bytes\), magic: it is other; set bad",
    ):
        damage.add(_bad(7))


def test_what_is_left_out_is_told_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    aside = tmp_path / "aside"
    for policy in (BadRecordPolicy("skip"), BadRecordPolicy("quarantine", str(aside))):
        caplog.clear()
        damage = Damage(policy, ORIGIN)
        for bad in (_bad(1), _bad(2), _bad(3, "crc")):
            damage.add(bad)
        with caplog.at_level(logging.WARNING, "txrocketmq.spark"):
            damage.end()
        assert caplog.messages == ["damaged records of /store left out: 2 magic, 1 crc"]
    assert pq.read_table(aside).column("physicalOffset").to_pylist() == [1, 2, 3]


def test_no_damage_is_no_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "txrocketmq.spark"):
        Damage(BadRecordPolicy("skip"), ORIGIN).end()
    assert not caplog.messages
