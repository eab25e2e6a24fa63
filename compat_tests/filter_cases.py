# SPDX-License-Identifier: Apache-2.0
"""Random SQL92 expressions and properties: correct ones, almost correct ones, and wrong ones.

The same seed gives the same cases.
"""

import random
from typing import NamedTuple

_NAMES = ("a", "b", "c", "_d", "$e", "Contains_", "notes", "A")
_WORDS = ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS")
_TEXT_WORDS = ("CONTAINS", "STARTSWITH", "ENDSWITH")
_SIGNS = ("=", "<>", ">", ">=", "<", "<=", "(", ")", ",", "+", "-")
_ORDERS = (">", ">=", "<", "<=")
_WHOLES = (
    "0", "1", "2", "5", "7", "10", "5L", "10l", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "9007199254740993", "3000000000", "0L", "012", "99999999999999999999",
)  # fmt: skip
_FRACTIONS = (
    "1.0", "5.", ".5", "5.5", "1e1", "5E-1", "0.0", "1e400", "1.5L", "2.0", "7.000", "1e-400",
    "9007199254740993.0", "5e", "0.1", "1.7976931348623157E308", "4.9e-324",
)  # fmt: skip
_TEXTS = (
    "x",
    "",
    "it's",
    "true",
    "TRUE",
    "5",
    "5.5",
    "ab",
    "xyz",
    "é",
    "a b",
    "-- no",
    "日本",
    "7",
)
_VALUES = (
    "5", "7", "10", "-5", "+5", "05", "5.5", "5.0", "1e1", "x", "xyz", "ab", "it's", "true", "TRUE",
    "false", "NaN", "Infinity", "-Infinity", "+NaN", "-0.0", "0.0", "0", " 5 ", "5 ", "5L", "5d",
    "5.f", "0x10", "0x1p3", "0x1.8P1", "\u0665", "5_0", "2147483648", "3000000000",
    "9223372036854775808", "9223372036854775807", "9007199254740993", "é", "日本", "a b", "1e400",
    "00000000000000000000000000000000007", "\u0660\u0665", "null", "-", "+", ".5", "5.", ".", "e5",
    "\U0001d7d3", "-9223372036854775808", "-- no", "\t5", "\u00a05", "NaNf", "Infinityd", "1e", "1",
    "0x1p2000", "-0x1p2000", "0x.p1", "0x.8p1", "99999999999999999999", "1f", "0.1", "2",
)  # fmt: skip
_BLANKS = (" ", " ", " ", " ", "  ", "\t", "\n", "\r\n", " /* c */ ", " -- c\n", "\f", " /***/ ")
_TAILS = (
    "", "", "", "", "", "", " b", " )", " #", " 'x'", " b #", " -- c", " -- c\n", " /*", ";", " '",
    " not", " and", " 5", " \u00e9", " is", "\u00a0",
)  # fmt: skip


class Case(NamedTuple):
    """An expression, and the properties of a message."""

    expression: str
    properties: dict[str, str]


def cases(seed: int, count: int) -> list[Case]:
    """Returns so many random cases."""
    dice = random.Random(seed)
    return [Case(_Writer(dice).expression(), _properties(dice)) for _ in range(count)]


def _properties(dice: random.Random) -> dict[str, str]:
    names = [name for name in _NAMES if dice.random() < 0.7]
    return {name: dice.choice(_VALUES) for name in names}


class _Writer:
    """Writes one expression."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def expression(self) -> str:
        dice = self._dice
        if dice.random() < 0.04:
            return self._salad()
        text = self._either(dice.randrange(4))
        if dice.random() < 0.06:
            text = self._damaged(text)
        return text + (dice.choice(_TAILS) if dice.random() < 0.2 else "")

    def _salad(self) -> str:
        dice = self._dice
        count = dice.randrange(7)
        pieces = [self._operand(0) if dice.random() < 0.4 else self._token() for _ in range(count)]
        return " ".join(pieces)

    def _token(self) -> str:
        return self._dice.choice((*_WORDS, *_TEXT_WORDS, *_SIGNS, *_NAMES, *_WHOLES, *_FRACTIONS))

    def _damaged(self, text: str) -> str:
        at = self._dice.randrange(len(text) + 1)
        if self._dice.random() < 0.5:
            return text[:at] + text[at + 1 :]
        return f"{text[:at]} {self._token()} {text[at:]}"

    def _either(self, depth: int) -> str:
        return self._chain("OR", [self._both(depth) for _ in range(self._few())])

    def _both(self, depth: int) -> str:
        return self._chain("AND", [self._equality(depth) for _ in range(self._few())])

    def _few(self) -> int:
        return self._dice.choice((1, 1, 1, 2, 2, 3))

    def _chain(self, word: str, parts: list[str]) -> str:
        return f"{self._blank()}{self._word(word)}{self._blank()}".join(parts)

    def _equality(self, depth: int) -> str:
        dice = self._dice
        text = self._comparison(depth)
        kind = dice.random()
        if kind < 0.2:
            text = f"{dice.choice(_NAMES)}{self._maybe()}={self._maybe()}{self._value()}"
        elif kind < 0.35:
            text = f"{text}{self._maybe()}={self._maybe()}{self._comparison(depth - 1)}"
        elif kind < 0.45:
            text = f"{text}{self._maybe()}<>{self._maybe()}{self._comparison(depth - 1)}"
        elif kind < 0.55:
            negate = self._blank() + self._word("NOT") if dice.random() < 0.5 else ""
            null = self._blank() + self._word("NULL")
            text = f"{text}{self._blank()}{self._word('IS')}{negate}{null}"
        return text

    def _comparison(self, depth: int) -> str:
        dice, blank = self._dice, self._blank
        kind = dice.random()
        text = self._operand(depth)
        if kind < 0.55 and dice.random() < 0.92:
            text = dice.choice(_NAMES)
        if kind < 0.25:
            sign = dice.choice(_ORDERS)
            return f"{text}{self._maybe()}{sign}{self._maybe()}{self._number(depth - 1)}"
        negate = blank() + self._word("NOT") if dice.random() < 0.4 else ""
        if kind < 0.35:
            low, high = self._number(depth - 1), self._number(depth - 1)
            word, and_ = self._word("BETWEEN"), self._word("AND")
            return f"{text}{negate}{blank()}{word}{blank()}{low}{blank()}{and_}{blank()}{high}"
        if kind < 0.45:
            listed = ("," + self._maybe()).join(
                self._text() for _ in range(dice.choice((1, 2, 3, 6)))
            )
            return f"{text}{negate}{blank()}{self._word('IN')}{self._maybe()}({listed})"
        if kind < 0.55:
            word = self._word(dice.choice(_TEXT_WORDS))
            return f"{text}{negate}{blank()}{word}{self._maybe()}{self._text()}"
        return text

    def _value(self) -> str:
        return self._text() if self._dice.random() < 0.5 else self._literal()

    def _number(self, depth: int) -> str:
        kind = self._dice.random()
        if kind < 0.95:
            return self._literal() if kind < 0.7 else self._dice.choice(_NAMES)
        return self._operand(depth)

    def _literal(self) -> str:
        kind = self._dice.random()
        number = self._dice.choice(_WHOLES[:9])
        if kind < 0.3:
            number = self._dice.choice(_FRACTIONS[:6])
        elif kind < 0.36:
            number = self._dice.choice(_WHOLES + _FRACTIONS)
        return number if self._dice.random() < 0.85 else f"-{self._maybe()}{number}"

    def _operand(self, depth: int) -> str:
        dice = self._dice
        kind = dice.random()
        if depth > 0 and kind < 0.2:
            return f"({self._maybe()}{self._either(depth - 1)}{self._maybe()})"
        if depth > 0 and kind < 0.28:
            return f"{self._word('NOT')}{self._blank()}{self._operand(depth - 1)}"
        if depth > 0 and kind < 0.32:
            return f"{dice.choice('+-')}{self._maybe()}{self._operand(depth - 1)}"
        if kind < 0.85:
            return dice.choice(_NAMES)
        if kind < 0.9:
            return self._literal()
        if kind < 0.96:
            return self._text()
        return self._word(dice.choice(("TRUE", "FALSE", "NULL")))

    def _text(self) -> str:
        return "'" + self._dice.choice(_TEXTS).replace("'", "''") + "'"

    def _word(self, word: str) -> str:
        return self._dice.choice((word, word, word.lower(), word.title()))

    def _blank(self) -> str:
        return self._dice.choice(_BLANKS)

    def _maybe(self) -> str:
        return self._dice.choice(("", " ", " ", self._blank()))
