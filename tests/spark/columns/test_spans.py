# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np

from txrocketmq.spark.columns.spans import Spans

FIRST = np.frombuffer(b"zero one two", np.uint8)


def spans() -> Spans:
    return Spans((FIRST,), np.array([0, 5, 9]), np.array([4, 3, 3]))


def test_byte_strings_by_row_and_all() -> None:
    assert [spans().bytes_of(row) for row in range(3)] == [b"zero", b"one", b"two"]
    assert spans().gather().to_pylist() == [b"zero", b"one", b"two"]


def test_some_are_replaced() -> None:
    before = spans()
    once = before.replaced(np.array([0, 2]), [b"null", b""])
    assert before.gather().to_pylist() == [b"zero", b"one", b"two"]
    assert once.gather().to_pylist() == [b"null", b"one", b""]
    twice = once.replaced(np.array([1, 2]), [b"eins", b"zwei"])
    assert [twice.bytes_of(row) for row in range(3)] == [b"null", b"eins", b"zwei"]
    assert twice.gather().to_pylist() == [b"null", b"eins", b"zwei"]


def test_a_byte_lies_before_each_that_was_replaced() -> None:
    replaced = spans().replaced(np.array([0]), [b"new"])
    assert replaced.at[0] > 0
