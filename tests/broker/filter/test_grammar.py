# SPDX-License-Identifier: Apache-2.0
"""Of expressions that the original's filter judged: `tests/golden/filter`, and by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from txrocketmq.broker.filter.grammar import MAX_TOKENS, parse
from txrocketmq.broker.filter.operators import (
    MAX_DEPTH,
    EvaluationError,
    ExpressionError,
    evaluate,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "filter" / "outcomes.jsonl"


def outcome(expression: str, **properties: str) -> bool | str | None:
    """As the golden file has it."""
    try:
        return evaluate(parse(expression)[0], properties)
    except EvaluationError:
        return "throws"
    except ExpressionError:
        return "refused"


def test_the_original_judges_likewise() -> None:
    seen: Counter[bool | str | None] = Counter()
    for line in GOLDEN.read_text("utf-8").splitlines():
        expression, properties, outcomes = json.loads(line)
        found = outcome(expression, **properties)
        assert found is outcomes["5.4.0"] or found == outcomes["5.4.0"] == str(found), line
        seen[found] += 1
    assert sum(seen.values()) == 3000
    assert min(seen[each] for each in (True, False, None, "throws", "refused")) > 200


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a > 5", True),
        ("A > 5", None),
        ("a BETWEEN 7 AND 7", True),
        ("a between 7.5 and 6", "refused"),
        ("b IN ('x', 'it''s')", True),
        ("b NOT IN ('x')", True),
        ("c IN ('x')", None),
        ("c IS NULL", True),
        ("c IS NOT NULL", False),
        ("c = d", True),
        ("c <> 'x'", None),
        ("NOT (c > 1)", None),
        ("c > 1 OR a = 7", True),
        ("c > 1 AND a = 8", False),
        ("b CONTAINS 't''' AND b STARTSWITH 'it' AND b ENDSWITH '''s'", True),
        # NOT binds closer: it is the truth value of b that is looked at.
        ("NOT b contains 'x'", False),
        ("NOT (b contains 'x') AND b NOT CONTAINS 'x'", True),
        ("b CONTAINS ''", False),
        ("NOT a = 7", False),
        ("a", False),
        ("TRUE", True),
        ("NULL", None),
        ("a = 7 /* so */ AND -- yes\n TRUE", True),
        ("a = 7 and c follows # and is passed over", None),
        ("a = 7 ) what follows # is passed over", True),
        ("a = -(-7)", True),
        ("-a = 7", None),
        ("a > '5'", "refused"),
        ("a > b", "throws"),
        ("b > 5", "throws"),
        ("b = 5 OR a = 7", "throws"),
        ("a = 7 OR b = 5", True),
        ("TRUE = a", "throws"),
        ("a = TRUE", False),
        ("5 > 3", True),
        ("a = 0.0", "refused"),
        ("a > 9223372036854775807", False),
        ("a > 9223372036854775808", "refused"),
        ("a CONTAINS 'x' CONTAINS 'y'", False),
    ],
)
def test_some_expressions(expression: str, expected: bool | str | None) -> None:
    found = outcome(expression, a="7", b="it's")
    assert found is expected or found == expected == str(expected)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", r'Encountered "<EOF>" at line 1, column 1\.'),
        ("a >", r'Encountered "<EOF>" at line 1, column 3\.'),
        ("a =\n = b", r'Encountered "=" at line 2, column 2\.'),
        ("a = #", r'Lexical error at line 1, column 5. Encountered: "#"'),
        ("a > 'x'", "'x' cannot be compared by >"),
        ("a = NULL", "write IS NULL"),
        ("5", "5 is not true or false"),
        ("5 IN ('x')", "IN needs a property before it, not 5"),
    ],
)
def test_why_one_is_refused(expression: str, why: str) -> None:
    with pytest.raises(ExpressionError, match=why):
        parse(expression)


def test_the_names_it_looks_at() -> None:
    assert parse("a > 5 AND (b = 'x' OR NOT c IS NULL)")[1] == {"a", "b", "c"}


@pytest.mark.parametrize(
    "expression",
    [
        "NOT " * 1000 + "a",
        "(" * 1000 + "a" + " = 1)" * 1000,
        "a" + " CONTAINS 'x'" * 1000,
    ],
)
def test_deep_ones_are_refused(expression: str) -> None:
    with pytest.raises(ExpressionError, match=f"more than {MAX_DEPTH} deep"):
        parse(expression)


@pytest.mark.parametrize(
    "expression",
    ["(" * 10_000 + "a" + ")" * 10_000, "a = " + "- " * 10_000 + "1", "a = 1 OR " * 3000 + "TRUE"],
)
def test_long_ones_are_refused(expression: str) -> None:
    with pytest.raises(ExpressionError, match=f"more than {MAX_TOKENS} words"):
        parse(expression)


def test_what_would_take_long_to_read_is_refused() -> None:
    with pytest.raises(ExpressionError, match="too many -- behind its last line"):
        parse("a = \n" + "-" * 4990 + "x" * 60_000)
    assert outcome("a = -- so\n" + "--" * 500 + "7", a="7") is True


def test_brackets_and_chains_are_not_deep() -> None:
    wide = " OR ".join(["a = 1"] * 1000 + ["(" * 300 + "a = 7" + ")" * 300])
    assert outcome(wide, a="7") is True
    listed = ", ".join(f"'{number}'" for number in range(2000))
    assert outcome(f"a IN ({listed})", a="1999") is True
