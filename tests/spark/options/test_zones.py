# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.columns.selection import Selection
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.zones import (
    WIDEST_MS,
    check_zone,
    in_zone_ms,
    session_zone,
    zone_named,
    zone_of_task,
)

HOUR_MS = 3_600_000
NAMES = ("UTC", "Z", "Europe/Paris", "Asia/Tokyo", "America/St_Johns", "Pacific/Kiritimati",
         "+05:30", "-18:00", "GMT+1", "UTC-03:00", "+5")  # fmt: skip


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("name", "local", "moment"),
    [
        ("Europe/Paris", "2026-11-20T08:00", "2026-11-20T07:00Z"),
        ("Europe/Paris", "2026-07-20T08:00", "2026-07-20T06:00Z"),
        ("Europe/Paris", "2026-03-29T02:30", "2026-03-29T01:30Z"),  # skipped
        ("Europe/Paris", "2026-10-25T02:30", "2026-10-25T00:30Z"),  # twice: the first one
        ("+05:30", "2026-11-20T08:00", "2026-11-20T02:30Z"),
        ("GMT-3", "2026-11-20T08:00", "2026-11-20T11:00Z"),
        ("Z", "2026-11-20T08:00", "2026-11-20T08:00Z"),
    ],
)
def test_times_by_the_clocks_of_a_zone(name: str, local: str, moment: str) -> None:
    assert in_zone_ms(_ms(local + "Z"), zone_named(name)) == _ms(moment)


@pytest.mark.parametrize("name", ["Nowhere/Else", "", "+25:00", "../etc", "a b"])
def test_names_that_are_no_zone(name: str) -> None:
    with pytest.raises(OptionError, match="timeZone is .*, which is not known .* such as 2026-"):
        zone_named(name)


@given(st.integers(-(10**14), 10**14), st.sampled_from(NAMES))
def test_no_zone_is_further_than_the_widest(ms: int, name: str) -> None:
    assert abs(in_zone_ms(ms, zone_named(name)) - ms) <= WIDEST_MS


def test_a_time_that_no_calendar_has_stays() -> None:
    assert in_zone_ms(1 << 62, UTC) == 1 << 62


@given(
    st.sampled_from(NAMES),
    st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    st.tuples(st.booleans(), st.booleans()),
)
def test_what_is_planned_without_the_zone_holds_what_is_read_with_it(
    name: str, start: datetime, end: datetime, is_local: tuple[bool, bool]
) -> None:
    start, end = min(start, end), max(start, end) + timedelta(days=2)
    texts = [
        moment.isoformat() + ("" if local else "Z")
        for moment, local in zip((start, end), is_local, strict=True)
    ]
    given = {"storePath": "/s", "startingTimestamp": texts[0], "endingTimestamp": texts[1]}
    options = SourceOptions.of(given)
    planned = Selection.of(_for_tasks(options)).times
    exact = Selection.of(options.in_zone(name)).times
    assert planned.low <= exact.low < exact.high <= planned.high
    assert Selection.of(_for_tasks(options)).at(options.in_zone(name)).times == exact
    if not any(is_local):
        assert planned == exact


@given(
    st.sampled_from(NAMES),
    st.sampled_from(("=", "<", "<=", ">", ">=", "!=", "IN")),
    st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    st.booleans(),
)
def test_conditions_are_planned_for_any_zone(
    name: str, sign: str, moment: datetime, is_local: bool
) -> None:
    moment = moment.replace(microsecond=0)
    literal = f"'{moment.isoformat()}{'' if is_local else 'Z'}'"
    text = (
        f"storeTimestamp {sign} ({literal})" if sign == "IN" else f"bornTimestamp {sign} {literal}"
    )
    options = SourceOptions.of({"storePath": "/s", "where": text})
    (column,) = {each.column for each in options.where}
    planned = Selection.of(_for_tasks(options))
    exact = Selection.of(options.in_zone(name))
    wide, narrow = planned.conditions.bounds(column), exact.conditions.bounds(column)
    assert wide.within(narrow.low, narrow.high) == narrow
    if not is_local or sign == "!=":
        assert wide == narrow
    assert planned.at(options.in_zone(name)) == exact


def test_a_time_in_a_condition_does_not_stand_for_the_order_of_others() -> None:
    """One of two times that name no zone may be before or after the other, as far as is known."""
    given = {
        "startingTimestamp": "2026-11-20T08:00:00", "endingTimestamp": "2026-11-20T07:00:00Z",
        "where": "storeTimestamp > '2026-11-20 07:30:00'",
    }  # fmt: skip
    assert SourceOptions.of(given).local_times == {"starting_timestamp_ms", "where"}


def _for_tasks(options: SourceOptions) -> SourceOptions:
    return SourceOptions(
        **{
            name: getattr(options, name)
            for name in SourceOptions.__dataclass_fields__
            if name != "tasks_know_zone"
        },
        tasks_know_zone=True,
    )


def test_times_are_in_utc_where_nobody_says_a_zone() -> None:
    options = SourceOptions.of({"storePath": "/s", "startingTimestamp": "2026-11-20T08:00:00"})
    assert options.starting_timestamp_ms == _ms("2026-11-20T08:00Z")
    assert options.local_times == {"starting_timestamp_ms"}
    assert Selection.of(options).times.low == _ms("2026-11-20T08:00Z")


def test_the_order_of_times_is_checked_when_they_are_known() -> None:
    given = {"startingTimestamp": "2026-11-20T08:00:00", "endingTimestamp": "2026-11-20T07:00:00Z"}
    options = SourceOptions.of(given)
    assert options.in_zone("Asia/Tokyo").zone == "Asia/Tokyo"
    with pytest.raises(OptionError, match="endingTimestamp is before startingTimestamp"):
        options.in_zone("UTC")


def test_tasks_go_by_the_zone_that_is_set_or_by_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert session_zone("Asia/Tokyo") == "Asia/Tokyo"
    with pytest.raises(OptionError, match="a time without a time zone, and Spark does not say"):
        session_zone(None)
    monkeypatch.setattr("txrocketmq.spark.options.zones.zone_of_task", lambda: "UTC")
    assert session_zone("Asia/Tokyo") == session_zone(None) == "UTC"


def test_outside_of_a_task_there_is_no_zone() -> None:
    assert zone_of_task() is None
    check_zone("Asia/Tokyo")
