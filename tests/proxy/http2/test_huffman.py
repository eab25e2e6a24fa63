# SPDX-License-Identifier: Apache-2.0
"""Texts in the Huffman code are read as hpack reads them."""

from __future__ import annotations

import pytest
from hpack.exceptions import HPACKDecodingError
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import decode_huffman
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.http2 import huffman

ENCODER = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


@given(st.binary(max_size=60))
def test_a_text_is_what_was_encoded(text: bytes) -> None:
    assert huffman.decoded(ENCODER.encode(text)) == text


@given(st.one_of(st.binary(max_size=8), st.binary(max_size=4).map(lambda data: data + b"\xff\xff")))
def test_any_bytes_are_read_as_hpack_does(data: bytes) -> None:
    try:
        expected: object = decode_huffman(data)
    except HPACKDecodingError as error:
        expected = type(error)
    try:
        assert huffman.decoded(data) == expected
    except HPACKDecodingError as error:
        assert type(error) is expected


def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huffman, "_MOST_STEPS", 10)
    steps = huffman._Steps()
    monkeypatch.setattr(huffman, "_STEPS", steps)
    text = bytes(range(256))
    assert huffman.decoded(ENCODER.encode(text)) == text
    assert len(steps) == 10
