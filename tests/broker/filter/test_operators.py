# SPDX-License-Identifier: Apache-2.0
"""What the grammar never brings about; the rest is in test_grammar.py."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.filter import operators
from txrocketmq.broker.filter.grammar import parse
from txrocketmq.broker.filter.operators import (
    EvaluationError,
    ExpressionError,
    Operand,
    evaluate,
)


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


_LOOKED_UP = st.sampled_from(["1", "2", "1L", "'1'", "'x'", "NULLS", "99999999999"])
_TEXTS = st.sampled_from([None, "1", "2", "x", "01", "99999999999", "", "-0"])


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["=", "<>"]), _LOOKED_UP), min_size=2
    ),
    st.sampled_from([" OR ", " AND "]),
    st.booleans(),
    _TEXTS,
    _TEXTS,
)
def test_comparisons_that_become_one_say_what_they_say_one_by_one(
    terms: list[tuple[str, str, str]], word: str, negate: bool, a: str | None, b: str | None
) -> None:
    """Each term is parsed alone, and what they say is put together by the rules of SQL."""
    properties = {name: text for name, text in (("a", a), ("b", b)) if text is not None}
    texts = [f"{name} {sign} {value}" for name, sign, value in terms]
    whole = parse(f"{'NOT ' if negate else ''}({word.join(texts)})")[0]
    assert _said(whole, properties) == _by_rules(texts, properties, word, negate=negate)
    assert whole.terms <= len(terms)


def _said(operand: Operand, properties: dict[str, str]) -> bool | str | None:
    try:
        return evaluate(operand, properties)
    except EvaluationError:
        return "fails"


def _by_rules(
    texts: list[str], properties: dict[str, str], word: str, *, negate: bool
) -> bool | str | None:
    decides = word == " OR "
    result: bool | None = not decides
    for text in texts:
        said = _said(parse(text)[0], properties)
        if isinstance(said, str):
            return said
        if said is decides:
            result = said
            break
        if said is None:
            result = None
    return result if result is None or not negate else not result


def test_a_long_list_is_one_look_however_it_is_written() -> None:
    numbers = range(600)
    for text, terms in (
        (" OR ".join(f"a = {each}" for each in numbers), 1),
        (" AND ".join(f"a <> {each}" for each in numbers), 1),
        (" OR ".join(f"a IN ('{each}')" for each in numbers), 1),
        (" OR ".join(f"a > {each}" for each in numbers), 600),
        (" OR ".join(f"a = {each} OR b = {each}" for each in numbers), 1_200),
        ("a BETWEEN 1 AND 2", 2),
    ):
        assert parse(text)[0].terms == terms
