# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.engines.clock_steps import TOLERANCE_MS, ClockSteps


def test_a_clock_that_stays_concerns_nobody() -> None:
    steps = ClockSteps()
    assert steps.set_back_ms(5, 1_000) == 0
    assert not steps.is_step(1_000)
    assert not steps.is_step(1_000 - TOLERANCE_MS)
    assert steps.set_back_ms(5, 1_000) == 0


def test_what_was_stored_before_is_due_as_if_the_clock_had_not_been_set_back() -> None:
    steps = ClockSteps()
    steps.is_step(1_000)
    assert steps.is_step(-9_000)
    steps.note(-9_000, 7)
    assert not steps.is_step(-9_000)
    assert [steps.set_back_ms(offset, -9_000) for offset in (0, 6, 7, 8)] == [10_000, 10_000, 0, 0]


def test_back_and_forth() -> None:
    steps = ClockSteps()
    steps.is_step(0)
    steps.note(-5_000, 3)
    steps.note(0, 6)
    assert [steps.set_back_ms(offset, 0) for offset in (0, 3, 6)] == [0, 0, 0]
    steps = ClockSteps()
    steps.is_step(0)
    steps.note(-5_000, 3)
    steps.note(-7_000, 6)
    assert [steps.set_back_ms(offset, -7_000) for offset in (0, 3, 6)] == [7_000, 2_000, 0]


def test_a_clock_that_is_set_forward_delays_nothing() -> None:
    steps = ClockSteps()
    steps.is_step(0)
    steps.note(9_000, 3)
    assert [steps.set_back_ms(offset, 9_000) for offset in (0, 3)] == [0, 0]


def test_steps_that_no_message_was_stored_between_are_one() -> None:
    steps = ClockSteps()
    steps.is_step(0)
    for turn in range(1_000):
        steps.note(-1_000 * (turn % 2), 5)
    assert len(steps._since) == 2
    for turn in range(1_000):
        steps.note(-1_000 * (turn % 2), 0)
    assert len(steps._since) == 1
