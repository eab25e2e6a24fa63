# SPDX-License-Identifier: Apache-2.0
"""The language of the option `where`: conditions on columns of messages, which must all hold.

    topic = 'Orders' AND queueId IN (0, 1) AND storeTimestamp >= '2026-11-20T08:00:00Z'

Each condition compares a column with literals, as SQL writes it. What is not understood is refused:
an option that was ignored in part would give other rows than it says. This module only parses;
`spark.conditions` says what the conditions mean for records and rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo
from typing import Final, NamedTuple

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options import option_values as values
from txrocketmq.spark.options.zones import in_zone_ms

INTEGERS: Final = (
    "queueId", "queueOffset", "flag", "physicalOffset", "storeSize", "sysFlag", "reconsumeTimes",
    "preparedTransactionOffset",
)  # fmt: skip
TIMES: Final = ("bornTimestamp", "storeTimestamp")
TEXTS: Final = ("topic", "brokerName", "tags")

_NAMES: Final = (*TEXTS, *INTEGERS, *TIMES)
OF_KAFKA: Final = {"partition": "queueId", "offset": "queueOffset", "timestamp": "storeTimestamp"}
"""Other names of columns, those of `kafkaNames`."""
_COLUMNS: Final = {name.lower(): name for name in _NAMES} | OF_KAFKA
"""The columns that conditions may name, by their names in lower case."""
VALID: Final = (
    "conditions joined by AND, each of one column and literals: =, <=>, !=, <, <=, >, >=, IN (...),"
    " BETWEEN ... AND ..., LIKE, IS NULL, IS NOT NULL; columns: "
    + ", ".join(_NAMES)
    + "; texts and times are in quotes, and all other conditions belong into a where of the query"
)
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*|`[^`]+`)|(?P<number>-?[0-9]+)(?![\w.])"
    r"|(?P<text>'[^'\\]*'|\"[^\"\\]*\")(?!['\"])|(?P<sign><=>|<=|>=|<>|!=|==|[=<>(),]))\s*"
)
_SIGNS: Final = {"==": "=", "<=>": "=", "<>": "!="}
_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})


class Predicate(NamedTuple):
    """One condition. `operator` is a comparison, IN, LIKE, IS NULL or IS NOT NULL."""

    column: str
    """The name that the column is declared with."""
    operator: str
    values: tuple[str | int, ...] = ()
    """What the column is compared with; of times, milliseconds since 1970, or LocalTime."""

    @property
    def is_local(self) -> bool:
        """Whether it names a time without its zone."""
        return any(isinstance(value, values.LocalTime) for value in self.values)

    def in_zone(self, zone: tzinfo) -> Predicate:
        """Returns the condition with such times taken as those of clocks in this zone."""
        return self._replace(
            values=tuple(
                in_zone_ms(each, zone) if isinstance(each, values.LocalTime) else each
                for each in self.values
            )
        )


def parse_where(option: str, text: str) -> tuple[Predicate, ...]:
    """Parses the value of the option. Raises OptionError, which names what is valid."""
    return _Parser(option, text).predicates()


def no_push_down(option: str, value: str) -> bool:
    """Parses the option that `where` takes the place of: only `false` is valid."""
    if values.boolean(option, value):
        raise OptionError(
            f"option {option}=true is not offered any more, since Spark lets the conditions of one"
            " query take effect in others: name conditions by the option where, such as"
            " where=\"topic = 'Orders'\", which count for this load alone"
        )
    return False


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(option: str, text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _error(option, text, repr(text[at : at + 40]))
        kind = match.lastgroup or ""
        found.append(_Token(kind, match[kind]))
        at = match.end()
    return found


class _Parser:
    def __init__(self, option: str, text: str) -> None:
        self._option, self._text = option, text
        self._left = _tokens(option, text)[::-1]

    def predicates(self) -> tuple[Predicate, ...]:
        found = self._predicate()
        while self._left:
            self._word("AND")
            found += self._predicate()
        return tuple(found)

    def _predicate(self) -> list[Predicate]:
        column = self._column()
        token = self._next()
        sign = _SIGNS.get(token.text, token.text)
        if token.kind == "sign" and sign in _COMPARISONS:
            return [Predicate(column, sign, (self._literal(column),))]
        match token.text.upper():
            case "IN":
                return [Predicate(column, "IN", self._list(column))]
            case "LIKE" if column in TEXTS:
                return [Predicate(column, "LIKE", (self._literal(column),))]
            case "BETWEEN":
                low = self._literal(column)
                self._word("AND")
                return [
                    Predicate(column, ">=", (low,)),
                    Predicate(column, "<=", (self._literal(column),)),
                ]
            case "IS":
                negated = bool(self._left) and self._left[-1].text.upper() == "NOT"
                if negated:
                    self._next()
                self._word("NULL")
                return [Predicate(column, "IS NOT NULL" if negated else "IS NULL")]
        raise self._error(token.text)

    def _list(self, column: str) -> tuple[str | int, ...]:
        self._sign("(")
        found = [self._literal(column)]
        while self._left and self._left[-1] == ("sign", ","):
            self._next()
            found.append(self._literal(column))
        self._sign(")")
        return tuple(found)

    def _column(self) -> str:
        token = self._next()
        column = _COLUMNS.get(token.text.strip("`").lower()) if token.kind == "name" else None
        if column is None:
            raise self._error(token.text)
        return column

    def _literal(self, column: str) -> str | int:
        token = self._next()
        if token.kind == "name" and token.text.upper() == "TIMESTAMP" and column in TIMES:
            token = self._next()
            if token.kind != "text":
                raise self._error(token.text)
        text = token.text[1:-1] if token.kind == "text" else token.text
        if column in TIMES and token.kind in ("text", "number"):
            if re.search(r"\.\d{3}\d*[1-9]", text):
                raise self._error(f"{token.text}, as times are in whole milliseconds")
            return values.timestamp(self._option, text)
        if column in INTEGERS and token.kind == "number":
            return int(text)
        if column in TEXTS and token.kind == "text":
            return text
        raise self._error(f"{token.text} as a value of {column}")

    def _word(self, word: str) -> None:
        token = self._next()
        if token.kind != "name" or token.text.upper() != word:
            raise self._error(token.text)

    def _sign(self, sign: str) -> None:
        token = self._next()
        if token != ("sign", sign):
            raise self._error(token.text)

    def _next(self) -> _Token:
        if not self._left:
            raise self._error("the end")
        return self._left.pop()

    def _error(self, what: str) -> OptionError:
        return _error(self._option, self._text, what)


def _error(option: str, text: str, what: str) -> OptionError:
    return OptionError(f"option {option}={text!r}: {what} is not understood; valid: {VALID}")


def columns_of(predicates: Sequence[Predicate]) -> tuple[str, ...]:
    """Returns the columns that the conditions name."""
    return tuple(dict.fromkeys(each.column for each in predicates))
