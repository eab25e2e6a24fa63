# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.steps import Steps, finished


def test_all_steps_are_taken_and_the_result_is_given() -> None:
    taken: list[int] = []

    def steps() -> Steps[str]:
        for number in range(3):
            taken.append(number)
            yield
        return "done"

    assert finished(steps()) == "done"
    assert taken == [0, 1, 2]
