# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.work.patience import Patience, Reading
from txrocketmq.broker.work.slices import SLICE_MS, Slices


class Work:
    """Ten pieces, of 10 ms each."""

    def __init__(self) -> None:
        self.reading = Reading(Patience())
        self.left = 10
        self.steady_ms = 0

    @property
    def is_behind(self) -> bool:
        return self.left > 0

    def tick(
        self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool] = lambda: False
    ) -> None:
        while self.left:
            self.left -= 1
            self.steady_ms += 10
            if is_time_up():
                return


def test_others_have_their_turn_between_slices() -> None:
    waiting: list[Callable[[], None]] = []
    work = Work()
    slices = Slices(work, lambda: 1_000, lambda: work.steady_ms, waiting.append)
    slices.begin()
    assert work.left == 9
    slices.begin()  # while it is going on
    assert (work.left, len(waiting)) == (9, 1)
    turns = 0
    while waiting:
        waiting.pop()()
        turns += 1
    assert (work.left, turns) == (0, 9)


class Batches(Work):
    """The same pieces, of 1 ms each, and one with each tick."""

    def tick(
        self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool] = lambda: False
    ) -> None:
        self.left -= 1
        self.steady_ms += 1


def test_a_slice_is_used_up_by_work_that_does_little_at_once() -> None:
    waiting: list[Callable[[], None]] = []
    work = Batches()
    Slices(work, lambda: 1_000, lambda: work.steady_ms, waiting.append).begin()
    assert (work.left, len(waiting)) == (10 - SLICE_MS, 1)
    waiting.pop()()
    assert (work.left, waiting) == (0, [])
