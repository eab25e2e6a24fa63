# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.remoting.primitives.listeners import each_told, tell_all


def test_all_are_told_whatever_some_of_them_raise() -> None:
    heard: list[str] = []

    def fails(news: str) -> None:
        heard.append("fails")
        raise ValueError(f"of {news}, attempt {len(heard)}")

    steps = each_told([heard.append, fails, heard.append, fails], "b")
    assert [next(steps), next(steps)] == [None, None]
    assert heard == ["b", "fails"], "there is a pause after each"
    with pytest.raises(ValueError, match="of b, attempt 2"):
        list(steps)
    assert heard == ["b", "fails", "b", "fails"]


def test_listeners_may_come_while_others_are_told() -> None:
    heard: list[int] = []
    waiting: list[Callable[[], None]] = [lambda: heard.append(1)]
    waiting.append(lambda: waiting.append(lambda: heard.append(2)))
    tell_all(waiting)
    assert heard == [1, 2]
