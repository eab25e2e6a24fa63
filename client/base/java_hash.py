# SPDX-License-Identifier: Apache-2.0
"""Java's hash codes, by which its clients choose queues and compare heartbeats."""

from __future__ import annotations

from typing import Any, Final

_INT: Final = 1 << 32
_SIGN: Final = 1 << 31
_LONG: Final = 1 << 64


def java_hash_code(key: Any) -> int:
    """The hash code of a text, a whole number or a truth value in Java.

    Numbers of up to 32 bits are Integers there, larger ones Longs. TypeError for anything else, and
    for numbers that no Long holds: the two clients could not agree.
    """
    if isinstance(key, str):
        value = 0
        encoded = key.encode("utf-16-be", "surrogatepass")
        for high, low in zip(encoded[::2], encoded[1::2], strict=True):
            value = (31 * value + (high << 8 | low)) % _INT
        return _signed(value)
    if isinstance(key, bool):
        return 1231 if key else 1237
    if isinstance(key, int) and -_SIGN <= key < _SIGN:
        return key
    if isinstance(key, int) and -_LONG // 2 <= key < _LONG // 2:
        bits = key % _LONG
        return _signed((bits ^ bits >> 32) % _INT)
    raise TypeError(f"a key is a text or a whole number of up to 64 bits, not {key!r:.80}")


def _signed(value: int) -> int:
    return value - _INT if value >= _SIGN else value
