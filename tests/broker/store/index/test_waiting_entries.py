# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.index.waiting_entries import MANY, WaitingEntries

COUNTS = st.sampled_from([0, 1, 2, 300, MANY, MANY + 1, 2 * MANY])


@given(st.lists(st.tuples(COUNTS, st.integers(0, 6_000)), max_size=8))
def test_entries_leave_in_the_order_in_which_they_came(steps: list[tuple[int, int]]) -> None:
    waiting = WaitingEntries()
    came: list[IndexEntry] = []
    gone: list[IndexEntry] = []
    for count, wanted in steps:
        added: list[IndexEntry] = [("T", None, None, None, len(came) + n, 0) for n in range(count)]
        came += added
        waiting.add(added)
        gone += waiting.next(wanted)
        waiting.drop(wanted)
        assert waiting.count == len(came) - len(gone)
    while waiting.count:
        some = waiting.next(1_000)
        assert 0 < len(some) <= 1_000
        gone += some
        waiting.drop(len(some))
    assert gone == came
