# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.gather import around, encode, gather, utf8


def array_of(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[bytes], list[int], list[int], list[int]]:
    """Buffers, and positions and lengths in them; short ones, long ones, both; at both ends."""
    buffers = draw(st.lists(st.binary(max_size=80), min_size=1, max_size=3))
    longest = draw(st.sampled_from((0, 3, 12, 13, 80)))
    which, at, length = [], [], []
    for _ in range(draw(st.integers(0, 40))):
        which.append(draw(st.integers(0, len(buffers) - 1)))
        size = len(buffers[which[-1]])
        at.append(draw(st.integers(0, size)))
        length.append(min(draw(st.integers(0, longest)), size - at[-1]))
    return buffers, which, at, length


@given(found=spans(), data=st.data())
def test_byte_strings_are_those_that_lie_there(
    found: tuple[list[bytes], list[int], list[int], list[int]], data: st.DataObject
) -> None:
    buffers, which, at, length = found
    if len(set(which)) <= 1 and data.draw(st.booleans()):
        buffers, numbers = [buffers[which[0]]] if which else buffers, None
        which = [0] * len(which)
    else:
        numbers = np.array(which, np.int64)
    near = None
    if numbers is None and data.draw(st.booleans()):
        near = around(array_of(buffers[0]), np.array(at, np.int64))
    valid = data.draw(
        st.none() | st.lists(st.booleans(), min_size=len(at), max_size=len(at)).map(np.array)
    )
    result = gather(
        [array_of(each) for each in buffers],
        np.array(at, np.int64),
        np.array(length, np.int64),
        which=numbers,
        valid=None if valid is None else valid.astype(np.bool_),
        near=near,
    )
    expected = [
        buffers[number][start : start + size] if valid is None or valid[row] else None
        for row, (number, start, size) in enumerate(zip(which, at, length, strict=True))
    ]
    assert result.type == pa.binary()
    result.validate(full=True)
    assert result.to_pylist() == expected


@given(data=st.binary(max_size=60), places=st.lists(st.integers(0, 60)))
def test_what_lies_around_is_zero_beyond_the_ends(data: bytes, places: list[int]) -> None:
    at = [min(place, len(data)) for place in places]
    padded = b"\0" * 4 + data + b"\0" * 12
    found = around(array_of(data), np.array(at, np.int64))
    assert found.tolist() == [padded[place : place + 16] for place in at]


@given(texts=st.lists(st.none() | st.binary(max_size=20) | st.text(max_size=9).map(str.encode)))
def test_what_is_no_utf8_is_replaced(texts: list[bytes | None]) -> None:
    found = utf8(pa.array(texts, pa.binary()))
    assert found.type == pa.string()
    found.validate(full=True)
    expected = [None if each is None else each.decode("utf-8", "replace") for each in texts]
    assert found.to_pylist() == expected


@pytest.mark.parametrize("values", [[], [b"b", b"a", b"b", b""], [7, 7, 8]])
def test_codes_and_distinct_elements(values: list[bytes | int]) -> None:
    codes, distinct = encode(pa.array(values, pa.binary() if not values else None))
    assert codes.dtype == np.int64
    assert [distinct[code].as_py() for code in codes.tolist()] == values
    assert len(distinct) == len(set(values))
