# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.live.wire.search import first_true


@given(st.integers(-5, 40), st.integers(0, 40), st.integers(0, 40), st.integers(-9, 60))
def test_first_true_finds_the_change_from_any_hint(low: int, size: int, at: int, hint: int) -> None:
    high, change = low + size, low + at
    probes: list[int] = []

    def predicate(number: int) -> bool:
        probes.append(number)
        return number >= change

    assert first_true(predicate, low, high, hint) == min(change, high)
    assert all(low <= probe < high for probe in probes)
    assert len(probes) == len(set(probes)) <= 12
    if hint == change and low < change < high:
        assert len(probes) == 2
