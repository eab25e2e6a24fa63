# SPDX-License-Identifier: Apache-2.0
"""SQL92 expressions: compiled once, kept while there is room, evaluated for each message.

The grammar and its parser are imported with the first expression that comes. What is compiled is
kept by its text, and so are refusals, since a client whose expression is wrong asks again with each
heartbeat.

Java: filter.SqlFilter, filter.parser.SelectorParser (PARSE_CACHE), MessageEvaluationContext.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from txrocketmq.broker.filter.operators import (
    EvaluationError,
    ExpressionError,
    Operand,
    Properties,
    evaluate,
)
from txrocketmq.remoting.message.message import record_properties
from txrocketmq.remoting.message.properties import decode_properties, pick_properties

__all__ = [
    "LEAST_CHARS",
    "MAX_CHARS",
    "MAX_KEPT_CHARS",
    "Expression",
    "ExpressionError",
    "Expressions",
]

MAX_CHARS: Final = 65_536
"""The longest expression. The grammar bounds the number of its words, too."""
MAX_KEPT_CHARS: Final = 1_048_576
"""How many characters of texts are kept compiled, together.

The least recently used expression goes first, and is compiled again when it is needed.
"""
_FEW_NAMES: Final = 4
LEAST_CHARS: Final = 256
"""A shorter expression counts as this many characters."""


@dataclass(slots=True, frozen=True, eq=False)
class Expression:
    """A compiled expression, and the names of the properties it looks at."""

    operand: Operand
    names: frozenset[str]

    def matches(self, properties: Properties) -> bool:
        """Whether the expression is true for these properties: neither false nor unknown nor an
        error.
        """
        try:
            return evaluate(self.operand, properties) is True
        except EvaluationError:
            return False

    def wants_record(self, record: memoryview) -> bool:
        """Whether the expression is true for the properties of a stored message."""
        text = record_properties(record)
        if len(self.names) <= _FEW_NAMES:
            return self.matches(pick_properties(text, self.names))
        return self.matches(decode_properties(text))


class Expressions:
    """The compiled expressions and the refusals that are kept."""

    def __init__(self, max_kept_chars: int = MAX_KEPT_CHARS) -> None:
        self._max_kept_chars = max_kept_chars
        self._kept: OrderedDict[str, Expression | ExpressionError] = OrderedDict()
        self._chars = 0

    def __len__(self) -> int:
        return len(self._kept)

    def compile(self, text: str) -> Expression:
        """Compiles an expression. Raises ExpressionError with the reason if it is not valid."""
        found = self._kept.get(text)
        if found is None:
            found = _compiled(text)
            self._keep(text, found)
        else:
            self._kept.move_to_end(text)
        if isinstance(found, ExpressionError):
            raise ExpressionError(str(found))
        return found

    def is_kept(self, text: str) -> bool:
        """Whether this text is kept, so that compiling it costs nothing."""
        return text in self._kept

    def _keep(self, text: str, found: Expression | ExpressionError) -> None:
        if len(text) > MAX_CHARS:
            return
        self._kept[text] = found
        self._chars += _weight(text)
        while self._chars > self._max_kept_chars:
            gone, _ = self._kept.popitem(last=False)
            self._chars -= _weight(gone)


def _weight(text: str) -> int:
    return max(len(text), LEAST_CHARS)


def _compiled(text: str) -> Expression | ExpressionError:
    if len(text) > MAX_CHARS:
        return ExpressionError(
            f"it has {len(text)} characters, and at most {MAX_CHARS} are allowed"
        )
    from txrocketmq.broker.filter.grammar import parse  # noqa: PLC0415 - not before it is needed

    try:
        return Expression(*parse(text))
    except ExpressionError as error:
        return ExpressionError(str(error))  # without what led to it
