# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from threading import Barrier, get_ident

import pytest

from txrocketmq.spark.arrow.threads import asked, in_threads


def test_all_at_once_and_in_order() -> None:
    together = Barrier(3, timeout=30)

    def answer(number: int) -> int:
        together.wait()  # nobody goes on alone
        return number * 10

    assert in_threads(answer, [1, 2, 3]) == [10, 20, 30]


def test_one_needs_no_thread() -> None:
    assert in_threads(lambda _: get_ident(), ["x"]) == [get_ident()]
    assert in_threads(str, []) == []


def test_an_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 // number, [1, 0])


def test_only_what_comes_over_a_network_is_worth_threads() -> None:
    together = Barrier(20, timeout=30)
    assert len(set(asked(lambda _: together.wait(), range(20), is_remote=True))) == 20
    assert set(asked(lambda _: get_ident(), range(20), is_remote=False)) == {get_ident()}
