# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from txrocketmq.broker.pop.records import ACK_INTERVAL_MS, MergeKey, check_point
from txrocketmq.broker.pop.waiting import DELIVERED_MS, ByTime, Waiting


def waiting(pop_time: int, invisible_ms: int = 1_000, stored_ms: int = 0) -> Waiting:
    key = MergeKey("T", "g", 0, 5, pop_time, "b")
    return Waiting(check_point(key, invisible_ms, (0, 2)), 0, 0, stored_ms)


def test_it_is_due_after_its_time_and_what_follows_it() -> None:
    made = waiting(10_000)
    assert made.due_ms == 11_000 + ACK_INTERVAL_MS
    assert made.left == {0, 2}
    assert waiting(10_000, stored_ms=20_000).due_ms == 20_000 + DELIVERED_MS, "by a timer"


@given(st.lists(st.integers(0, 20_000), max_size=20), st.integers(0, 30_000), st.data())
@settings(max_examples=examples(100))
def test_those_that_are_due_are_found(times: list[int], now_ms: int, data: st.DataObject) -> None:
    by_time, left = ByTime(), [waiting(each) for each in times]
    for each in left:
        by_time.add(each)
    for each in data.draw(st.lists(st.sampled_from(left), unique=True) if left else st.just([])):
        by_time.remove(each)
        left.remove(each)
    found = []
    while (first := by_time.first(now_ms)) is not None:
        by_time.remove(first)
        found.append(first)
    assert sorted(each.due_ms for each in found) == sorted(
        each.due_ms for each in left if each.due_ms <= now_ms
    )


def test_what_is_removed_leaves_nothing() -> None:
    by_time = ByTime()
    for number in range(10_000):
        made = waiting(number * 1_000)
        by_time.add(made)
        by_time.remove(made)
    assert len(by_time._heap) <= 1_001
    assert by_time._seconds == {}
