# SPDX-License-Identifier: Apache-2.0
"""The operators of SQL92 expressions, as closures over the properties of a message.

The kind of an operand is known before any message comes: properties are texts, and all else follows
from the expression. So a comparison is chosen once for the kinds of its two operands. A closure
returns True, False or None, which is SQL's unknown, or raises EvaluationError. The original decides
which expressions are refused and how values compare; even its oddities are kept, such as that TRUE
= a fails for every a.

Java: filter.expression.ComparisonExpression, LogicExpression, UnaryExpression, PropertyExpression,
ConstantExpression, BooleanConstantExpression.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import chain, groupby
from typing import Any, Final, TypeAlias

from txrocketmq.remoting.primitives.java_numbers import (
    NumberFormatError,
    compare_doubles,
    double,
    integer,
    long,
)

MAX_DEPTH: Final = 128
"""How deep an expression may be nested; a chain of ANDs or of ORs counts as one level. This is far
below the interpreter's limit of recursion."""
_MAX_INTEGER: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1
_LEAST_DOUBLE: Final = 5e-324
_MOST_DOUBLE: Final = 1.7976931348623157e308

Properties: TypeAlias = Mapping[str, str]
Evaluate: TypeAlias = Callable[[Properties], Any]
Compare: TypeAlias = Callable[[Any, Any], int]


class ExpressionError(ValueError):
    """An expression that is not the original's SQL92, or too long or deep; the text says why."""


class EvaluationError(ValueError):
    """An expression cannot be evaluated for these properties: the message does not match."""


class Kind(Enum):
    """The kind of an operand's values when they are not null."""

    TEXT = auto()
    INTEGER = auto()
    LONG = auto()
    DOUBLE = auto()
    BOOLEAN = auto()
    NOTHING = auto()
    """The operand is always null."""


_NUMBERS: Final = (Kind.INTEGER, Kind.LONG, Kind.DOUBLE)
_READ: Final = {Kind.INTEGER: integer, Kind.LONG: long, Kind.DOUBLE: double}
_LOOKED_UP: Final = (Kind.TEXT, Kind.INTEGER, Kind.LONG)
"""Values of these kinds are equal to what a property is read as where they are the same number or
text; Doubles are not: 0.0 and -0.0 differ there."""


@dataclass(slots=True, frozen=True)
class OneOf:
    """Whether a property, which is read as `kind`, is one of some values: `=`, `<>`, IN, NOT IN.

    Such comparisons that follow each other become one: a long list costs no more than a short one.
    """

    name: str
    kind: Kind
    values: frozenset[Any]
    is_negated: bool


@dataclass(slots=True, frozen=True)
class Operand:
    """A part of an expression; `is_boolean` tells whether it can be a condition by itself."""

    kind: Kind
    evaluate: Evaluate
    is_boolean: bool = False
    is_constant: bool = False
    value: Any = None
    name: str | None = None
    depth: int = 1
    terms: int = 0
    """How many comparisons one evaluation may take."""
    one_of: OneOf | None = None
    """What the operand looks up, if it is nothing but that."""

    def __str__(self) -> str:
        """The operand as error messages show it to the author of the expression."""
        if self.name is not None:
            return self.name
        if not self.is_constant:
            return "an expression"
        return "NULL" if self.value is None else repr(self.value)


# ---------------------------------------------------------------- constants, properties


def constant(kind: Kind, value: Any, *, is_boolean: bool = False) -> Operand:
    """Makes the operand of a literal."""
    return Operand(kind, lambda _: value, is_boolean=is_boolean, is_constant=True, value=value)


TRUE: Final = constant(Kind.BOOLEAN, value=True, is_boolean=True)
FALSE: Final = constant(Kind.BOOLEAN, value=False, is_boolean=True)
NULL: Final = constant(Kind.NOTHING, None, is_boolean=True)


def whole(digits: str) -> Operand:
    """A number without a point: an Integer if it fits, otherwise a Long."""
    digits = digits.rstrip("lL")
    value = int(digits) if len(digits) <= 19 else _MAX_LONG + 1
    if value > _MAX_LONG:
        raise ExpressionError(f"{digits:.40} does not fit in a Long")
    return constant(Kind.INTEGER if value <= _MAX_INTEGER else Kind.LONG, value)


def fraction(digits: str) -> Operand:
    """A number with a point or an exponent. As in the original, 0.0 is refused."""
    value = double(digits)
    if not _LEAST_DOUBLE <= value <= _MOST_DOUBLE:
        raise ExpressionError(
            f"{digits:.40} is not from {_LEAST_DOUBLE} to {_MOST_DOUBLE}: write 0, perhaps"
        )
    return constant(Kind.DOUBLE, value)


def property_of(name: str) -> Operand:
    """A property of the message as text; null if the message does not have it."""
    return Operand(Kind.TEXT, lambda properties: properties.get(name), name=name)


def negated(operand: Operand) -> Operand:
    """A minus sign. The result is null for anything that is not a number, so for every property."""
    if operand.kind in _NUMBERS:
        value = -operand.evaluate({})
        return Operand(operand.kind, lambda _: value)
    if operand.kind == Kind.BOOLEAN:
        evaluate = operand.evaluate  # which may fail

        def evaluated(properties: Properties) -> None:
            evaluate(properties)

        return _checked(Operand(Kind.NOTHING, evaluated, depth=operand.depth + 1))
    if operand.kind == Kind.NOTHING and not operand.is_constant:
        return operand
    return Operand(Kind.NOTHING, lambda _: None)


# ---------------------------------------------------------------- conditions


def condition(operand: Operand) -> Operand:
    """Makes a condition of an operand. A property alone is false, whatever its value is."""
    if operand.is_boolean:
        return operand
    if operand.name is None:
        raise ExpressionError(f"{operand} is not true or false, so it cannot be a condition")
    name = operand.name
    return _boolean(lambda p: None if p.get(name) is None else False, operand)


def negation(operand: Operand) -> Operand:
    """NOT."""
    operand = condition(operand)
    if operand.one_of is not None:
        turned = replace(operand.one_of, is_negated=not operand.one_of.is_negated)
        return _looked_up(turned, operand.depth + 1)
    evaluate = operand.evaluate

    def evaluated(properties: Properties) -> bool | None:
        value = evaluate(properties)
        return None if value is None else not value

    return _boolean(evaluated, operand)


def conjunction(*operands: Operand) -> Operand:
    """AND of two or more operands."""
    parts = _joined(map(condition, operands), is_negated=True)
    evaluates = [part.evaluate for part in parts]
    if len(evaluates) == 1:
        return parts[0]
    if len(evaluates) == 2:
        first, second = evaluates

        def of_two(properties: Properties) -> bool | None:
            value = first(properties)
            if value is False:
                return False
            other: bool | None = second(properties)
            return other if value or other is False else None

        return _boolean(of_two, *parts)

    def evaluated(properties: Properties) -> bool | None:
        result: bool | None = True
        for evaluate in evaluates:
            value = evaluate(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return _boolean(evaluated, *parts)


def disjunction(*operands: Operand) -> Operand:
    """OR of two or more operands."""
    parts = _joined(map(condition, operands), is_negated=False)
    evaluates = [part.evaluate for part in parts]
    if len(evaluates) == 1:
        return parts[0]

    def evaluated(properties: Properties) -> bool | None:
        result: bool | None = False
        for evaluate in evaluates:
            value = evaluate(properties)
            if value:
                return True
            if value is None:
                result = None
        return result

    return _boolean(evaluated, *parts)


def _joined(parts: Iterable[Operand], *, is_negated: bool) -> list[Operand]:
    """The parts of a chain, with neighbours that look up the same property made one.

    `a = 1 OR a = 2` is `a IN (1, 2)`, and `a <> 1 AND a <> 2` is `a NOT IN (1, 2)`: all of them are
    unknown where the property is missing, and fail where it cannot be read.
    """
    joined: list[Operand] = []
    for key, run in groupby(parts, lambda part: _place_of(part.one_of, is_negated=is_negated)):
        same = list(run)
        if key is None or len(same) == 1:
            joined += same
            continue
        name, kind = key
        values = frozenset(chain.from_iterable(part.one_of.values for part in same if part.one_of))
        depth = 1 + max(part.depth for part in same)
        joined.append(_looked_up(OneOf(name, kind, values, is_negated), depth))
    return joined


def _place_of(one_of: OneOf | None, *, is_negated: bool) -> tuple[str, Kind] | None:
    if one_of is None or one_of.is_negated != is_negated:
        return None
    return one_of.name, one_of.kind


def _looked_up(one_of: OneOf, depth: int) -> Operand:
    name, values, negate = one_of.name, one_of.values, one_of.is_negated
    read = _READ.get(one_of.kind)

    def with_text(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None else (text in values) != negate

    def with_number(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None or read is None else (read(text) in values) != negate

    evaluate = with_text if read is None else with_number
    return _checked(replace(_boolean(evaluate), depth=depth, one_of=one_of))


# ---------------------------------------------------------------- comparisons


def equal(left: Operand, right: Operand) -> Operand:
    """Equality; two values that are both null are equal."""
    for operand in (left, right):
        if operand.is_constant and operand.value is None:
            raise ExpressionError("NULL cannot be compared by = and <>: write IS NULL")
    if left.is_constant and right.is_constant and left.is_boolean and not right.is_boolean:
        raise ExpressionError(f"{left} cannot be compared with {right}")
    return _equal(left, right)


def not_equal(left: Operand, right: Operand) -> Operand:
    """Inequality: it is unknown exactly where equality is."""
    return negation(equal(left, right))


def is_null(operand: Operand) -> Operand:
    """IS NULL."""
    evaluate = operand.evaluate
    return _boolean(lambda p: evaluate(p) is None, operand)


def is_not_null(operand: Operand) -> Operand:
    """IS NOT NULL."""
    evaluate = operand.evaluate
    return _boolean(lambda p: evaluate(p) is not None, operand)


def _equal(left: Operand, right: Operand) -> Operand:
    first, second = left.evaluate, right.evaluate
    same = _equality(left.kind, right.kind)
    if left.name is not None and right.is_constant:
        name, value = left.name, right.value
        if right.kind in _LOOKED_UP:
            one_of = OneOf(name, right.kind, frozenset((value,)), is_negated=False)
            return _looked_up(one_of, left.depth + 1)

        def with_constant(properties: Properties) -> bool | None:
            text = properties.get(name)
            return None if text is None else same(text, value)

        return _boolean(with_constant, left)

    def evaluated(properties: Properties) -> bool | None:
        value, other = first(properties), second(properties)
        if value is None:
            return True if other is None else None
        return False if other is None else same(value, other)

    return _boolean(evaluated, left, right)


def _equality(left: Kind, right: Kind) -> Callable[[Any, Any], bool]:
    """Returns the function that tells whether two values of these kinds are equal."""
    if Kind.NOTHING in (left, right):
        return lambda _value, _other: False
    if left == right and left != Kind.DOUBLE:
        return operator.eq
    if left == Kind.TEXT and right == Kind.BOOLEAN:
        return lambda text, value: (text.lower() == "true") == value
    if left == Kind.BOOLEAN and right == Kind.TEXT:
        return _fail
    if Kind.BOOLEAN in (left, right):
        return lambda _value, _other: False
    compare = _comparison(left, right)
    return lambda value, other: compare(value, other) == 0


def _fail(_value: object, _other: object) -> bool:
    """Fails as the original does, which mistakes the truth value for a text."""
    raise EvaluationError("a truth value cannot be compared with a property: turn it round")


def ordered(left: Operand, right: Operand, test: Callable[[int, int], bool]) -> Operand:
    """A comparison by >, >=, <, or <=.

    `test` is called with the order of the two values (negative, 0 or positive) and 0.
    """
    for operand in (left, right):
        if operand.is_boolean or (operand.is_constant and operand.kind not in _NUMBERS):
            raise ExpressionError(f"{operand} cannot be compared by >, >=, <, <= and BETWEEN")
    if Kind.NOTHING in (left.kind, right.kind):
        # Operands that are always null but are no conditions may still fail when they are
        # evaluated.
        first, second = left.evaluate, right.evaluate
        return _boolean(lambda p: None if first(p) is None else (second(p), None)[1], left, right)
    compare = _comparison(left.kind, right.kind)
    if left.name is not None and right.name is None:
        return _boolean(_with_number(left.name, right, compare, test), left, right)
    first, second = left.evaluate, right.evaluate

    def evaluated(properties: Properties) -> bool | None:
        value = first(properties)
        if value is None:
            return None
        other = second(properties)
        return None if other is None else test(compare(value, other), 0)

    return _boolean(evaluated, left, right)


def _with_number(
    name: str, number: Operand, compare: Compare, test: Callable[[Any, Any], bool]
) -> Evaluate:
    """The most common comparison, which has a faster path: a property with a number."""
    value = number.evaluate({})
    if number.kind == Kind.DOUBLE:

        def with_double(properties: Properties) -> bool | None:
            text = properties.get(name)
            return None if text is None else test(compare(text, value), 0)

        return with_double
    read = _READ[number.kind]

    def with_whole(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None else test(read(text), value)

    return with_whole


def between(operand: Operand, low: Operand, high: Operand) -> Operand:
    """BETWEEN. If both bounds are literals, the first must not be greater than the second."""
    if low.is_constant and high.is_constant:
        if low.value is None or high.value is None:
            raise ExpressionError("BETWEEN needs two values, not NULL")
        are_numbers = low.kind in _NUMBERS and high.kind in _NUMBERS
        if are_numbers and _comparison(high.kind, low.kind)(high.value, low.value) < 0:
            raise ExpressionError(f"BETWEEN {low} AND {high} has nothing between")
    return conjunction(ordered(operand, low, operator.ge), ordered(operand, high, operator.le))


def not_between(operand: Operand, low: Operand, high: Operand) -> Operand:
    """NOT BETWEEN."""
    return disjunction(ordered(operand, low, operator.lt), ordered(operand, high, operator.gt))


def _comparison(left: Kind, right: Kind) -> Compare:
    """Returns a function that orders two values of these kinds, neither of them a truth value."""
    if left == right == Kind.TEXT or Kind.DOUBLE in (left, right):
        read, read_other = _to_double(left), _to_double(right)
        return lambda value, other: compare_doubles(read(value), read_other(other))
    if left == Kind.TEXT:
        return _texts_first(_READ[right])
    if right == Kind.TEXT:
        compare = _texts_first(_READ[left])
        return lambda value, other: -compare(other, value)
    return lambda value, other: (value > other) - (value < other)


def _texts_first(read: Callable[[str], Any]) -> Compare:
    def compare(text: str, number: Any) -> int:
        value = read(text)
        return int(value > number) - int(value < number)

    return compare


def _to_double(kind: Kind) -> Callable[[Any], float]:
    return double if kind == Kind.TEXT else float


# ---------------------------------------------------------------- texts


def is_in(operand: Operand, texts: Iterable[str], *, negate: bool) -> Operand:
    """IN, and NOT IN."""
    if operand.name is None:
        raise ExpressionError(f"IN needs a property before it, not {operand}")
    one_of = OneOf(operand.name, Kind.TEXT, frozenset(texts), negate)
    return _looked_up(one_of, operand.depth + 1)


def matches_text(
    operand: Operand, search: str, test: Callable[[str, str], bool], *, negate: bool
) -> Operand:
    """CONTAINS and its like, with or without NOT.

    The result is false when the operand is no text, or when `search` is empty.
    """
    if not search:
        return _boolean(lambda _: False, operand)
    evaluate = operand.evaluate
    if operand.kind == Kind.TEXT:

        def evaluated(properties: Properties) -> bool:
            text = evaluate(properties)
            return False if text is None else test(text, search) != negate

        return _boolean(evaluated, operand)
    return _boolean(lambda p: (evaluate(p), False)[1], operand)


# ----------------------------------------------------------------


def _boolean(evaluate: Evaluate, *operands: Operand) -> Operand:
    depth = 1 + max((operand.depth for operand in operands), default=1)
    terms = max(sum(operand.terms for operand in operands), 1)
    return _checked(Operand(Kind.BOOLEAN, evaluate, is_boolean=True, depth=depth, terms=terms))


def _checked(operand: Operand) -> Operand:
    if operand.depth > MAX_DEPTH:
        raise ExpressionError(f"it is nested more than {MAX_DEPTH} deep: use fewer NOT and ( )")
    return operand


def evaluate(operand: Operand, properties: Properties) -> bool | None:
    """Returns what an expression says of a message; raises EvaluationError."""
    try:
        result: bool | None = operand.evaluate(properties)
    except NumberFormatError as error:
        raise EvaluationError(str(error)) from None
    return result
