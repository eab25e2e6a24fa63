# SPDX-License-Identifier: Apache-2.0
"""What the grammar never brings about; the rest is in test_grammar.py."""

from __future__ import annotations

import operator

import pytest

from txrocketmq.broker.filter import operators
from txrocketmq.broker.filter.operators import ExpressionError, Operand


def nested(depth: int) -> Operand:
    operand = operators.property_of("a")
    for _ in range(depth):
        operand = operators.negation(operand)
    return operand


def test_the_depth_is_bounded_below_what_the_interpreter_can_call() -> None:
    deepest = nested(operators.MAX_DEPTH - 2)
    assert operators.evaluate(deepest, {"a": "x"}) is False
    with pytest.raises(ExpressionError, match="nested more than"):
        nested(operators.MAX_DEPTH)


def test_operands_tell_what_they_are() -> None:
    number = operators.whole("5")
    assert str(number) == "5"
    assert str(operators.NULL) == "NULL"
    assert str(operators.property_of("a")) == "a"
    assert str(operators.ordered(operators.property_of("a"), number, operator.gt)) == (
        "an expression"
    )
