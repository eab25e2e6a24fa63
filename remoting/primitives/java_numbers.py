# SPDX-License-Identifier: Apache-2.0
"""Reads numbers from text, and compares them, as Java does.

The fields of a header and the properties of a message are texts. Those that mean numbers are read
as Java's class of that number reads them: nothing around the digits of an Integer or a Long, but
digits of any script and a sign; of a Double also blanks around it, hexadecimal digits, a type
suffix, NaN, Infinity. Whatever is no such number is an error, and never counts as absent.

Java: Integer.parseInt, Long.parseLong, Double.parseDouble, Double.compareTo.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
)
_SUFFIXES: Final = "fFdD"
_BLANKS: Final = "".join(map(chr, range(0x21)))
_MOST_DIGITS: Final = 19
_MOST_SHORT: Final = 64
_KEPT: Final = 8
"""How many numbers of longer texts are kept: an expression of a thousand terms does not read a
property of 32,767 digits a thousand times."""
_MAX_INTEGER: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1
_LAST_OF_BMP: Final = "\uffff"


class NumberFormatError(ValueError):
    """A text is not a number, or not one that fits."""


def integer(text: str) -> int:
    """`Integer.parseInt`."""
    value = long(text)
    if -_MAX_INTEGER - 1 <= value <= _MAX_INTEGER:
        return value
    raise NumberFormatError(f"{text:.50} is not an Integer")


def long(text: str) -> int:
    """`Long.parseLong`."""
    return _long(text) if len(text) <= _MOST_SHORT else _long_of_long(text)


def _long(text: str) -> int:
    if _WHOLE.fullmatch(text) and (text.isascii() or max(text) <= _LAST_OF_BMP):
        if len(text) > _MOST_DIGITS:
            text = _without_zeros(text)
        if len(text) <= _MOST_DIGITS + 1:
            value = int(text)
            if -_MAX_LONG - 1 <= value <= _MAX_LONG:
                return value
    raise NumberFormatError(f"{text:.50} is not a Long")


def _without_zeros(text: str) -> str:
    """Returns the same number with at most one leading zero; digits may be of any script."""
    sign = text[0] if text[0] in "+-" else ""
    digits = text[len(sign) :]
    if digits.isascii():
        return sign + (digits.lstrip("0") or "0")
    at = next((at for at, digit in enumerate(digits) if int(digit)), len(digits) - 1)
    return sign + digits[at:]


def double(text: str) -> float:
    """`Double.parseDouble`."""
    return _double(text) if len(text) <= _MOST_SHORT else _double_of_long(text)


def _double(text: str) -> float:
    text = text.strip(_BLANKS)
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip(_SUFFIXES))
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.rstrip(_SUFFIXES))
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    raise NumberFormatError(f"{text:.50} is not a Double")


def double_text(value: float) -> str:
    """A text that `Double.parseDouble` reads as this value."""
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_long_of_long = lru_cache(_KEPT)(_long)
_double_of_long = lru_cache(_KEPT)(_double)


def compare_doubles(left: float, right: float) -> int:
    """`Double.compareTo`: -0.0 is less than 0.0, and NaN equals itself and is more than all."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right and left:
        return 0
    return _rank(left) - _rank(right)


def _rank(value: float) -> int:
    """Orders values of which neither is less than the other: zeros, and NaN beside anything."""
    if math.isnan(value):
        return 2
    return -1 if value == 0 and math.copysign(1, value) < 0 else 0
