# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from types import SimpleNamespace

import pytest

from txrocketmq.spark.reports.tuning import jvm_options, tune


def _set(most_rows: int) -> dict[str, str]:
    made: dict[str, str] = {}
    tune(
        SimpleNamespace(conf=SimpleNamespace(set=made.__setitem__)),  # type: ignore[arg-type]
        most_rows,
        4_000_000,
    )
    return made


def test_code_is_compiled_well_where_that_pays() -> None:
    assert "TieredStopAtLevel=1" in jvm_options(1 << 30)
    assert jvm_options(100 << 30) == ""


@pytest.mark.parametrize(("rows", "interprets"), [(0, True), (100_000, True), (100_001, False)])
def test_few_rows_need_no_code(rows: int, *, interprets: bool) -> None:
    made = _set(rows)
    assert ("spark.sql.codegen.wholeStage" in made) == interprets
    assert made["spark.sql.shuffle.partitions"] == "1"


def test_many_rows_are_shuffled_as_spark_sees_fit() -> None:
    assert not {"spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"} & set(_set(4_000_001))


def test_times_are_never_taken_for_those_of_an_old_calendar() -> None:
    for rows in (1, 10_000_000):
        assert _set(rows)["spark.sql.parquet.datetimeRebaseModeInRead"] == "CORRECTED"
