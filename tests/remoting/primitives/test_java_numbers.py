# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.primitives import java_numbers
from txrocketmq.remoting.primitives.java_numbers import (
    NumberFormatError,
    compare_doubles,
    double,
    double_text,
    integer,
    long,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-5", -5), ("+5", 5), ("0" * 5000 + "7", 7), ("\u0665\u0660", 50), ("-0", 0)],
)
def test_whole_numbers(text: str, value: int) -> None:
    assert integer(text) == long(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "-", "+", " 5", "5 ", "5.0", "5L", "1e3", "0x10", "1_0", "\U0001d7d3", "9" * 5000, "x"],
)
def test_what_is_no_whole_number(text: str) -> None:
    for read in (integer, long):
        with pytest.raises(NumberFormatError):
            read(text)


@pytest.mark.parametrize("text", ["9" * 32_000 + "x", "1" * 16_000 + "." + "1" * 16_000 + "e"])
def test_long_texts_take_no_longer(text: str) -> None:
    """Were the time to grow as the square of the length, this would take minutes."""
    for read in (integer, long, double):
        for _ in range(100):
            with pytest.raises(NumberFormatError):
                read(text)


def test_their_bounds() -> None:
    assert integer("2147483647") == 2**31 - 1
    assert integer("-2147483648") == -(2**31)
    assert long("9223372036854775807") == 2**63 - 1
    assert long("-9223372036854775808") == -(2**63)
    for text, read in [
        ("2147483648", integer), ("-2147483649", integer),
        ("9223372036854775808", long), ("-9223372036854775809", long),
    ]:  # fmt: skip
        with pytest.raises(NumberFormatError):
            read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5.0), (" \t5.5\n", 5.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("5d", 5.0),
        ("5.5F", 5.5), ("-1E-2", -0.01), ("1e400", math.inf), ("-1e400", -math.inf),
        ("Infinity", math.inf), ("-Infinity", -math.inf), ("0x1p3", 8.0), ("0x1.8P1f", 3.0),
        ("0x.8p1", 1.0), ("0x1p2000", math.inf), ("-0x1p2000", -math.inf),
    ],
)  # fmt: skip
def test_doubles(text: str, value: float) -> None:
    assert double(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "x", "e5", ".", "1e", "0x10", "0x.p1", "NaNf", "Infinityd", "inf", "nan", "1_0",
     "\u0665", "\u00a05", "5dd", "5L"],
)  # fmt: skip
def test_what_is_no_double(text: str) -> None:
    with pytest.raises(NumberFormatError):
        double(text)


def test_the_order_of_doubles() -> None:
    rising = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, double("NaN")]
    for at, left in enumerate(rising):
        for other, right in enumerate(rising):
            order = compare_doubles(left, right)
            assert (order > 0) - (order < 0) == (at > other) - (at < other)


def test_a_long_number_is_read_once() -> None:
    digits = "0" * 30_000 + "7"
    assert long(digits) == integer(digits) == 7
    assert double(digits) == 7.0
    hits = java_numbers._long_of_long.cache_info().hits
    assert [long(digits) for _ in range(3)] == [7, 7, 7]
    assert java_numbers._long_of_long.cache_info().hits == hits + 3


@given(st.floats())
def test_a_double_as_text_is_read_again(value: float) -> None:
    assert compare_doubles(double(double_text(value)), value) == 0
