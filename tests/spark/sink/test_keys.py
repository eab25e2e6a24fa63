# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message.ids import decode_unique_key, month_start_ms
from txrocketmq.spark.sink.keys import NewKeys, ReplayKeys

NOW_MS = time.time_ns() // 1_000_000
_BATCHES = st.text(max_size=20)
_NUMBERS = st.integers(0, 1 << 40)


def test_new_keys_are_all_different_and_tell_the_time() -> None:
    one, other = NewKeys(), NewKeys()
    made = [one.of(0) for _ in range(5000)] + [other.of(0) for _ in range(5000)]
    assert len(set(made)) == len(made)
    after_ms = time.time_ns() // 1_000_000
    assert NOW_MS - 1 <= decode_unique_key(made[0], after_ms + 1).created_ms <= after_ms + 1


@given(_BATCHES, _NUMBERS, _NUMBERS)
def test_a_row_of_a_batch_has_the_same_key_again(batch: str, partition: int, row: int) -> None:
    key = ReplayKeys(batch, partition).of(row)
    assert key == ReplayKeys(batch, partition).of(row)
    assert decode_unique_key(key, NOW_MS).created_ms == month_start_ms(NOW_MS)


@given(st.sets(st.tuples(_BATCHES, _NUMBERS, _NUMBERS), min_size=2, max_size=20))
def test_other_rows_have_other_keys(places: set[tuple[str, int, int]]) -> None:
    assert len({ReplayKeys(batch, part).of(row) for batch, part, row in places}) == len(places)


def test_numbers_do_not_run_into_each_other() -> None:
    assert ReplayKeys("q/1", 11).of(1) != ReplayKeys("q/1", 1).of(11)
    assert ReplayKeys("q/1", 1).of(1) != ReplayKeys("q/11", 1).of(1)
