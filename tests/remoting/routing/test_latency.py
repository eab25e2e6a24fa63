# SPDX-License-Identifier: Apache-2.0
"""Which brokers are passed over, for how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.routing.latency import LatencyFaults, not_available_ms


@pytest.mark.parametrize(
    ("latency_ms", "pause_ms"),
    [
        (0, 0), (50, 0), (100, 0), (549, 0), (550, 2_000), (1_800, 5_000), (3_000, 6_000),
        (5_000, 10_000), (14_999, 10_000), (15_000, 30_000), (99_999, 30_000),
    ],
)  # fmt: skip
def test_the_table(latency_ms: int, pause_ms: int) -> None:
    assert not_available_ms(latency_ms) == pause_ms


def test_a_slow_broker_is_passed_over_for_its_time() -> None:
    faults = LatencyFaults()
    assert faults.is_available("a", 0)
    faults.update("a", 600, 1_000, isolate=False, reachable=True)
    assert not faults.is_available("a", 2_999)
    assert faults.is_available("a", 3_000)
    faults.update("a", 10, 1_500, isolate=False, reachable=True)
    assert not faults.is_available("a", 2_999)  # a quick answer does not shorten it
    assert faults.is_reachable("a")


def test_a_broker_that_failed_counts_as_ten_seconds_slow() -> None:
    faults = LatencyFaults()
    faults.update("a", 1, 0, isolate=True, reachable=False)
    assert not faults.is_available("a", 9_999)
    assert faults.is_available("a", 10_000)
    assert not faults.is_reachable("a")
    faults.seen("a")
    assert faults.is_reachable("a")


def test_each_is_looked_at_now_and_then() -> None:
    faults = LatencyFaults()
    for name in ("a", "b"):
        faults.update(name, 1, 0, isolate=True, reachable=False)
    assert list(faults.to_detect(0, 2_000)) == ["a", "b"]
    assert list(faults.to_detect(1_999, 2_000)) == []
    faults.remove("a")
    assert list(faults.to_detect(2_000, 2_000)) == ["b"]
    faults.seen("unknown")


UPDATES = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.integers(0, 20_000), st.integers(0, 5_000), st.booleans(),
        st.booleans(),
    )
)  # fmt: skip


@given(UPDATES, st.integers(0, 60_000))
def test_each_broker_is_passed_over_until_the_last_of_its_pauses_ends(
    updates: list[tuple[str, int, int, bool, bool]], later_ms: int
) -> None:
    """Against what the table says, summed up naively; no broker matters to another one."""
    faults, now_ms = LatencyFaults(), 0
    free_ms, reachable = {"a": 0, "b": 0}, {"a": True, "b": True}
    for broker, latency_ms, gap_ms, isolate, is_reachable in updates:
        now_ms += gap_ms
        faults.update(broker, latency_ms, now_ms, isolate=isolate, reachable=is_reachable)
        pause_ms = not_available_ms(10_000 if isolate else latency_ms)
        free_ms[broker] = max(free_ms[broker], now_ms + pause_ms)
        reachable[broker] = is_reachable
        for each in "ab":
            assert faults.is_available(each, now_ms) == (now_ms >= free_ms[each])
    now_ms += later_ms
    for each in "ab":
        assert faults.is_available(each, now_ms) == (now_ms >= free_ms[each])
        assert faults.is_reachable(each) == reachable[each]


@given(st.integers(0, 100_000), st.integers(0, 100_000))
def test_who_is_slower_is_not_passed_over_for_less(one_ms: int, other_ms: int) -> None:
    slow, slower = sorted((one_ms, other_ms))
    assert not_available_ms(slow) <= not_available_ms(slower)
