# SPDX-License-Identifier: Apache-2.0
"""A search in a sequence whose elements are expensive to look at, with a hint. It does no I/O."""

from __future__ import annotations

from collections.abc import Callable


def first_true(predicate: Callable[[int], bool], low: int, high: int, hint: int) -> int:
    """Returns the first number in [low, high) for which the predicate is true, else `high`.

    The predicate is false up to some number and true from there on. It is asked about few numbers
    when `hint` is near the answer.
    """
    false, true = low - 1, high
    probe, step = min(max(hint, low), high - 1), 1
    while true - false > 1:
        if predicate(probe):
            true = probe
        else:
            false = probe
        if true == high:
            probe = min(false + step, true - 1)
        elif false == low - 1:
            probe = max(true - step, false + 1)
        else:
            probe = (true + false) // 2
        step *= 2
    return true
