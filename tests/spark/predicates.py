# SPDX-License-Identifier: Apache-2.0
"""Predicates as the text of the option `where`, and what they mean for a row, written plainly."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from txrocketmq.spark.options.where import TIMES, Predicate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def where(predicates: Iterable[Predicate]) -> dict[str, str]:
    """The option that says so; no option when there are no predicates."""
    text = " AND ".join(map(_text, predicates))
    return {"where": text} if text else {}


def _text(predicate: Predicate) -> str:
    literals = [repr(value) for value in predicate.values]
    shown = f"({', '.join(literals)})" if predicate.operator == "IN" else "".join(literals)
    return f"{predicate.column} {predicate.operator} {shown}"


def holds(predicate: Predicate, row: Mapping[str, Any]) -> bool:
    """Whether a row, as Arrow gives it to Python, fulfils a predicate."""
    value = row[predicate.column]
    if predicate.operator in ("IS NULL", "IS NOT NULL"):
        return (value is None) == (predicate.operator == "IS NULL")
    if value is None:
        return False
    if predicate.column in TIMES:
        value = round((value - EPOCH).total_seconds() * 1000)
    if predicate.operator == "IN":
        return value in predicate.values
    (literal,) = predicate.values
    if predicate.operator == "LIKE":
        pattern = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in str(literal))
        return re.fullmatch(pattern, value, re.DOTALL) is not None
    if isinstance(value, str):
        return COMPARE[predicate.operator](value.encode(), str(literal).encode())
    return COMPARE[predicate.operator](value, literal)
