# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.ingest.partition import date_of, day_number, folder_of, slices

DAY_US = 86_400_000_000


def batch_of(rows: Sequence[tuple[str, int | None]]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "topic": pa.array([topic for topic, _ in rows], pa.string()),
            "storeTimestamp": pa.array([at for _, at in rows], pa.timestamp("us", "UTC")),
            "number": pa.array(range(len(rows)), pa.int32()),
        }
    )


def test_a_day_is_that_of_utc() -> None:
    last = datetime(2026, 11, 20, 23, 59, 59, 999_000, tzinfo=UTC)
    first = datetime(2026, 11, 21, tzinfo=UTC)
    before = datetime(1969, 12, 31, 23, tzinfo=UTC)
    rows = [("t", round(each.timestamp() * 1e6)) for each in (last, first, before)]
    found = {each.partition[0] for each in slices(batch_of(rows), ["dt"])}
    assert found == {"2026-11-20", "2026-11-21", "1969-12-31"}


def test_a_clock_beyond_the_calendar_has_no_day() -> None:
    (found,) = slices(batch_of([("t", (1 << 63) - 1), ("t", None)]), ["topic", "dt"])
    assert found.partition == ("t", "")


def test_folders_are_named_as_hive_names_them() -> None:
    assert folder_of({}) == ""
    assert (
        folder_of({"topic": "%RETRY%g", "dt": "2026-11-20"}) == "topic=%25RETRY%25g/dt=2026-11-20/"
    )
    assert folder_of({"topic": "a/b=c ü"}) == "topic=a%2Fb%3Dc%20%C3%BC/"
    assert folder_of({"topic": "T", "dt": None}) == "topic=T/dt=__HIVE_DEFAULT_PARTITION__/"
    assert folder_of({"topic": "L" * 249}) == f"topic={'L' * 249}/"
    assert folder_of({"topic": "L" * 250, "dt": "2026-11-20"}) == "long/dt=2026-11-20/"


def test_days_have_dates_and_numbers() -> None:
    far, before = 3_000_000 * DAY_US, -(10**6) * DAY_US
    rows = [("t", DAY_US), ("t", -1), ("t", far), ("t", before), ("t", None)]
    names = [next(slices(batch_of([row]), ["dt"])).partition[0] for row in rows]
    assert [date_of(name) for name in names] == ["1970-01-02", "1969-12-31", None, None, None]
    last, first = (date.max - date(1970, 1, 1)).days, (date.min - date(1970, 1, 1)).days
    assert [day_number(name) for name in names] == [1, -1, last, first, None]


def test_without_rows_there_are_no_slices() -> None:
    assert list(slices(batch_of([]), ["topic"])) == []
    assert list(slices(batch_of([]), [])) == []


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3 * DAY_US)), min_size=1),
    st.sampled_from([("topic", "dt"), ("topic",), ("dt",), ()]),
)
def test_each_row_is_in_the_slice_of_its_partition_in_order(
    rows: list[tuple[str, int]], columns: tuple[str, ...]
) -> None:
    expected: dict[tuple[str, ...], list[int]] = {}
    for number, (topic, at) in enumerate(rows):
        values = {"topic": topic, "dt": f"1970-01-0{at // DAY_US + 1}"}
        expected.setdefault(tuple(values[name] for name in columns), []).append(number)
    found = list(slices(batch_of(rows), columns))
    assert {each.partition: each.rows.column("number").to_pylist() for each in found} == expected
    assert len(found) == len(expected)
