# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.arrays import numbers_of, of_bytes, of_numbers, of_texts

KINDS = ("i1", "i2", "i4", "i8", "?")
NUMBERS = st.integers(-128, 127)


@given(st.lists(NUMBERS), st.sampled_from(KINDS), st.data())
def test_numbers_go_there_and_back_whatever_their_size(
    numbers: list[int], kind: str, data: st.DataObject
) -> None:
    values = np.array(numbers, kind)
    array = of_numbers(values)
    assert array.to_pylist() == values.tolist()
    array.validate(full=True)
    start = data.draw(st.integers(0, len(numbers)))
    found = numbers_of(array.slice(start))
    assert found.dtype == values.dtype
    assert found.tolist() == values[start:].tolist()


@given(st.lists(st.tuples(NUMBERS, st.booleans())), st.sampled_from(KINDS))
def test_numbers_that_are_not_valid_are_null(pairs: list[tuple[int, bool]], kind: str) -> None:
    values = np.array([number for number, _ in pairs], kind)
    array = of_numbers(values, valid=np.array([valid for _, valid in pairs], np.bool_))
    expected = [
        value if pair[1] else None for value, pair in zip(values.tolist(), pairs, strict=True)
    ]
    assert array.to_pylist() == expected
    array.validate(full=True)


def test_numbers_that_do_not_lie_in_a_row_are_copied() -> None:
    assert of_numbers(np.arange(6)[::2]).to_pylist() == [0, 2, 4]


def test_numbers_can_be_times() -> None:
    kind = pa.timestamp("us", "UTC")
    array = of_numbers(np.array([1, 2]), kind=kind)
    assert array.type == kind
    assert numbers_of(array).tolist() == [1, 2]


def test_nulls_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="1 of 2 elements are null"):
        numbers_of(pa.array([1, None]))


@given(st.lists(st.none() | st.text()))
def test_texts_are_those_that_were_given(texts: list[str | None]) -> None:
    array = of_texts(texts)
    assert array.type == pa.string()
    assert array.to_pylist() == texts
    array.validate(full=True)


@given(st.lists(st.tuples(st.binary(), st.booleans())))
def test_byte_strings_that_are_not_valid_are_null(pairs: list[tuple[bytes, bool]]) -> None:
    strings = [string for string, _ in pairs]
    array = of_bytes(strings, np.array([valid for _, valid in pairs], np.bool_))
    assert array.to_pylist() == [string if valid else None for string, valid in pairs]
    array.validate(full=True)
    assert of_bytes(strings).to_pylist() == strings
