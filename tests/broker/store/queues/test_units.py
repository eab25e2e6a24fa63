# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.queues import units as module
from txrocketmq.broker.store.queues.units import (
    PRE_BLANK,
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    columns,
    first_written,
    has_unit,
    is_written,
    last_written,
    zero_runs,
)

FIELDS = st.tuples(
    st.one_of(st.just(0), st.just(-1), st.integers(0, 1 << 62)),
    st.one_of(st.sampled_from([0, -1, PRE_BLANK_SIZE]), st.integers(1, 1 << 30)),
)


def packed(units: list[tuple[int, int]]) -> memoryview:
    return memoryview(b"".join(UNIT.pack(offset, size, 7) for offset, size in units))


@given(st.lists(FIELDS, max_size=40))
def test_units_are_searched_and_taken_apart_as_one_by_one(units: list[tuple[int, int]]) -> None:
    data = packed(units)
    written = [at for at, unit in enumerate(units) if is_written(*unit)]
    assert first_written(data) == min(written, default=len(units))
    assert last_written(data) == max(written, default=-1)
    offsets, sizes = columns(data)
    assert list(zip(offsets, sizes, strict=True)) == units
    zeros = {at for first, after in zero_runs(data) for at in range(first, after)}
    assert zeros == {at for at, (_, size) in enumerate(units) if size == 0}


def test_long_runs_of_blanks_are_passed_over() -> None:
    one = UNIT.pack(5, 5, 5)
    data = memoryview(
        PRE_BLANK * 5000 + bytes(9000 * UNIT_BYTES) + one + bytes(10_000 * UNIT_BYTES)
    )
    assert first_written(data) == last_written(data) == 14_000
    assert zero_runs(data) == [(5000, 14_000), (14_001, 24_001)]
    assert first_written(memoryview(bytes(9000 * UNIT_BYTES))) == 9000
    assert last_written(memoryview(PRE_BLANK * 9000)) == -1


@given(st.integers(1, 400), st.data())
def test_the_end_is_the_first_place_without_a_unit(count: int, data: st.DataObject) -> None:
    """As a search over the whole file finds it; a hole is touched once or twice."""
    written = data.draw(st.integers(0, count))
    view = memoryview(UNIT.pack(7, 100, 0) * written + bytes(UNIT_BYTES * (count - written)))
    touched: list[int] = []

    def looked_at(view: memoryview, index: int) -> bool:
        touched.append(index)
        return has_unit(view, index)

    with pytest.MonkeyPatch.context() as context:
        context.setattr(module, "has_unit", looked_at)
        assert module.end_of_units(view, count) == written
    assert max(touched, default=0) <= 2 * max(written, 1)
