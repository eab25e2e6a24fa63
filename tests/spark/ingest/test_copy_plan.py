# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.errors import DataLossError, StoreError
from txrocketmq.spark.ingest.copy_plan import (
    CopiedRange,
    LostRange,
    Plan,
    StoreBounds,
    Wishes,
    plan_run,
)

STORE = StoreBounds("/store", "broker-a", 0, 2500, [0, 1000, 2000])


def planned(
    *stores: StoreBounds, at: Mapping[str, int] | None = None, **wishes: Any
) -> Plan | None:
    positions = {name: CopiedRange(offset) for name, offset in (at or {}).items()}
    return plan_run(stores, positions, Wishes(**wishes))


def ranges(plan: Plan | None) -> list[tuple[str, int, int, bool]]:
    assert plan is not None
    return [(s.broker, s.start, s.end, s.first_is_boundary) for s in plan.splits]


def test_the_first_run_takes_all_file_by_file() -> None:
    plan = planned(STORE)
    assert ranges(plan) == [
        ("broker-a", 0, 1000, True),
        ("broker-a", 1000, 2000, True),
        ("broker-a", 2000, 2500, True),
    ]
    assert plan is not None
    assert plan.size_bytes == 2500


def test_small_files_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 2000)
    monkeypatch.setattr("txrocketmq.spark.planning.split.FILE_BYTES", 0)
    assert ranges(planned(STORE)) == [("broker-a", 0, 2000, True), ("broker-a", 2000, 2500, True)]
    assert len(ranges(planned(STORE, split_bytes=1000))) == 3


def test_a_log_that_does_not_start_at_zero_has_lost_nothing() -> None:
    assert ranges(planned(STORE._replace(start=1000)))[0][1] == 1000


def test_the_next_run_goes_on_where_the_last_one_ended() -> None:
    assert ranges(planned(STORE, at={"broker-a": 1700})) == [
        ("broker-a", 1700, 2000, True),
        ("broker-a", 2000, 2500, True),
    ]


def test_nothing_new_is_no_plan() -> None:
    assert planned(STORE, at={"broker-a": 2500}) is None
    assert planned(StoreBounds("/empty", "broker-b", 0, 0, [])) is None


def test_brokers_are_independent() -> None:
    other = StoreBounds("/other", "broker-b", 0, 10, [0])
    plan = planned(STORE, other, at={"broker-a": 2500, "broker-c": 5})
    assert ranges(plan) == [("broker-b", 0, 10, True)]
    assert plan is not None


def test_what_was_deleted_before_it_was_taken_is_an_error() -> None:
    with pytest.raises(DataLossError, match="500 bytes .* --allow-data-loss"):
        planned(STORE._replace(start=1000), at={"broker-a": 500})


def test_unless_it_is_accepted() -> None:
    plan = planned(STORE._replace(start=1000), at={"broker-a": 500}, allow_data_loss=True)
    assert ranges(plan)[0] == ("broker-a", 1000, 2000, True)
    assert plan is not None
    assert plan.lost == (LostRange("broker-a", 500, 1000),)


def test_a_loss_with_nothing_behind_it_is_recorded_too() -> None:
    plan = planned(
        StoreBounds("/store", "broker-a", 3000, 3000, [3000]),
        at={"broker-a": 500},
        allow_data_loss=True,
    )
    assert plan is not None
    assert plan.splits == ()
    assert plan.lost == (LostRange("broker-a", 500, 3000),)


def test_a_log_shorter_than_the_table_is_another_one() -> None:
    with pytest.raises(StoreError, match="broker-a in /store ends at 2500.*up to 2600"):
        planned(STORE, at={"broker-a": 2600})


@pytest.mark.parametrize(
    ("most", "end"), [(1, 1000), (1000, 1000), (1999, 1000), (2000, 2000), (2500, 2500)]
)
def test_a_run_can_be_bounded_to_whole_files(most: int, end: int) -> None:
    plan = planned(STORE, max_bytes=most)
    assert plan is not None
    assert plan.splits[-1].end == end


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=6),
    st.integers(0, 400),
    st.none() | st.integers(1, 300),
    st.none() | st.integers(1, 2000),
)
def test_splits_are_end_to_end(
    sizes: list[int], begun: int, split_bytes: int | None, max_bytes: int | None
) -> None:
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    end = sum(sizes)
    store = StoreBounds("/store", "broker-a", 0, end, starts)
    position = min(begun, end)
    plan = planned(store, at={"broker-a": position}, split_bytes=split_bytes, max_bytes=max_bytes)
    if plan is None:
        assert position == end
        return
    place = position
    for split in plan.splits:
        assert split.start == place
        assert split.end > split.start
        assert split.first_is_boundary == (split.start == position or split.start in starts)
        assert not any(split.start < each < split.end for each in starts)
        place = split.end
    assert place <= end
    assert max_bytes is not None or place == end
