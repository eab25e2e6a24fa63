# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.transaction.end_marks import Ended


def test_what_is_named_is_passed_over() -> None:
    ended = Ended(10, 3)
    assert ended.read([10, 12], 100)
    assert ended.read([13], 100)
    assert ended.read_offset == 5
    assert [ended.next_open(at) for at in range(10, 16)] == [11, 11, 14, 14, 14, 15]


def test_what_is_done_with_is_forgotten() -> None:
    ended = Ended(0, 0)
    for offsets in ([1], [5], [0], [2]):
        ended.read(offsets, 6)
    ended.done_before(1)
    assert (ended.half_offset, ended.op_offset) == (1, 0)  # the first names one that is ahead
    ended.done_before(3)
    assert (ended.half_offset, ended.op_offset) == (3, 1)  # the others wait for the second
    assert ended.next_open(5) == 6
    ended.done_before(6)
    assert (ended.half_offset, ended.op_offset) == (6, 4)
    assert ended.read_offset == 4


def test_what_there_is_not_is_not_kept() -> None:
    ended = Ended(5, 0)
    assert ended.read([1, 4, 99, 2**62], 10)
    assert [ended.next_open(at) for at in (5, 9)] == [5, 9]
    ended.done_before(5)
    assert ended.op_offset == 1


def test_lost_op_messages_are_no_work_where_nothing_waits_for_them() -> None:
    ended = Ended(0, 0, max_marks=4)
    ended.lost(10**12)
    assert (ended.op_offset, ended.read_offset) == (10**12, 10**12)
    ended.read([2], 3)
    ended.lost(2)
    assert (ended.op_offset, ended.read_offset) == (10**12, 10**12 + 3)


def test_what_is_too_far_ahead_waits() -> None:
    ended = Ended(0, 0, max_marks=4)
    assert not ended.read([4], 100)
    assert ended.read([3], 100)
    for _ in range(3):
        assert not ended.is_full
        assert ended.read([], 100)
    assert ended.is_full
    assert ended.read_offset == 4
    ended.done_before(1)
    assert not ended.read([5], 100)
    assert ended.op_offset == 0


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=20), st.data())
def test_it_is_as_with_sets(ops: list[list[int]], data: st.DataObject) -> None:
    ended, named = Ended(0, 0), set[int]()
    done = 0
    for op in ops:
        assert ended.read(op, 31)
        named |= set(op)
        done = data.draw(st.integers(done, 31))
        ended.done_before(done)
    for at in range(done, 33):
        assert ended.next_open(at) == next(n for n in range(at, 99) if n not in named)
    still = [index for index, op in enumerate(ops) if max(op, default=-1) >= done]
    assert ended.op_offset <= (still[0] if still else len(ops))
    ended.done_before(31)
    assert ended.op_offset == ended.read_offset == len(ops)


def test_marks_may_come_before_their_op_messages() -> None:
    ended = Ended(5, 7, max_marks=4)
    ended.mark([4, 5, 7, 9])  # done with, and too far ahead: not kept
    assert [ended.next_open(at) for at in (5, 6, 7, 8)] == [6, 6, 8, 8]
    assert ended.read_offset == 7
    ended.done_before(6)
    ended.mark([9])
    assert ended.next_open(9) == 10
    assert ended.read([7], 100)
    assert ended.next_open(6) == 6
