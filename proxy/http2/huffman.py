# SPDX-License-Identifier: Apache-2.0
"""Texts in the Huffman code of HPACK, read by bytes.

hpack reads four bits at a time. Some clients (Go, Rust) write a new id in this code into each call,
so what a byte leads to is remembered here: by the state before it, the bytes that it ends and the
state behind it. The steps themselves are hpack's, so that both read the same.
"""

from __future__ import annotations

from typing import Final

from hpack.exceptions import HPACKDecodingError
from hpack.huffman_table import (
    HUFFMAN_COMPLETE,
    HUFFMAN_EMIT_SYMBOL,
    HUFFMAN_FAIL,
    HUFFMAN_TABLE,
)

_MOST_STEPS: Final = 16_384
"""How many steps are remembered at most, about 3 MB. Ids and words take a few hundred of them."""

_Step = tuple[int, bytes, bool]
"""The state behind a byte (shifted by eight bits), what it ends, and whether a text may end so."""


class _Steps(dict[int, _Step]):
    """Steps by the state before them, shifted by eight bits, and the byte.

    Those of bytes that are no text raise HPACKDecodingError.
    """

    def __missing__(self, key: int) -> _Step:
        state, ended, flags = key >> 8, b"", 0
        for bits in (key >> 4 & 0xF, key & 0xF):
            state, flags, symbol = HUFFMAN_TABLE[state * 16 + bits]
            if flags & HUFFMAN_FAIL:
                raise HPACKDecodingError("a text is not in the Huffman code")
            if flags & HUFFMAN_EMIT_SYMBOL:
                ended += bytes((symbol,))
        step = state << 8, ended, bool(flags & HUFFMAN_COMPLETE)
        if len(self) < _MOST_STEPS:
            self[key] = step
        return step


_STEPS: Final = _Steps()


def decoded(data: bytes) -> bytes:
    """Returns the text that bytes are the code of. Raises HPACKDecodingError."""
    steps = _STEPS
    state, text, may_end = 0, b"", True
    for byte in data:
        state, ended, may_end = steps[state | byte]
        text += ended
    if not may_end:
        raise HPACKDecodingError("a text in the Huffman code is cut off")
    return text
