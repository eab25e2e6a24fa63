# SPDX-License-Identifier: Apache-2.0
"""When calls are due."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.grpc.deadlines import STEP_MS, Deadlines, timeout_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1H", 3_600_000),
        ("2M", 120_000),
        ("3S", 3_000),
        ("2999m", 2_999),
        ("1u", 1),
        ("1000000n", 1),
        ("0S", 0),
        ("99999999H", 359_999_996_400_000),
    ],
)
def test_timeouts(text: str, ms: int) -> None:
    assert timeout_ms(text) == ms


@pytest.mark.parametrize("text", ["", "S", "1", "1s", "123456789S", "-1S", "1.5S", "\u0661S"])
def test_what_is_no_timeout(text: str) -> None:
    with pytest.raises(ValueError, match="grpc-timeout is "):
        timeout_ms(text)


@given(
    st.dictionaries(st.integers(0, 20), st.integers(0, 5_000)),
    st.sets(st.integers(0, 20)),
    st.lists(st.integers(0, 6_000), max_size=20),
)
def test_each_is_due_once_within_a_step_or_two(
    wanted: dict[int, int], removed: set[int], ticks: list[int]
) -> None:
    deadlines = Deadlines()
    due: list[int] = []
    for key, deadline_ms in wanted.items():
        deadlines.add(deadline_ms, key, partial(due.append, key))
    for key in removed & wanted.keys():
        deadlines.remove(wanted[key], key)
    for now_ms in sorted(ticks):
        deadlines.tick(now_ms)
        assert not [key for key in due if wanted[key] >= now_ms]
        left = wanted.keys() - removed - set(due)
        assert not [key for key in left if wanted[key] < now_ms - 2 * STEP_MS]
    deadlines.tick(10_000)
    assert sorted(due) == sorted(wanted.keys() - removed)
    assert not deadlines._steps


def test_one_that_is_due_in_decades_costs_nothing() -> None:
    deadlines = Deadlines()
    deadlines.add(10**15, 1, lambda: None)
    deadlines.tick(10**12)
    deadlines.remove(10**15, 1)
    deadlines.remove(10**15, 1)
    assert not deadlines._steps
