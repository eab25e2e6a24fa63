# SPDX-License-Identifier: Apache-2.0
"""Headers mean what hpack makes of them, however often they come and whatever came before."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError
from hpack.hpack import encode_integer
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import work_of
from tests.examples import examples
from tests.proxy.http2.test_huffman import ENCODER as HUFFMAN
from txrocketmq.proxy.http2.header_decoder import (
    LONGEST_BLOCK_BYTES,
    MOST_BLOCKS,
    HeaderDecoder,
)

MOST_BYTES = 300
_NAMES = st.sampled_from((":path", "content-type", "grpc-timeout", "x-mq-client-id", "cookie"))
_HEADERS = st.lists(st.tuples(_NAMES, st.text(max_size=20), st.booleans()), max_size=8)


def decoded(decoder: Decoder, data: bytes) -> Any:
    """Headers, or the type of the error."""
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(data, raw=True)]
    except (HPACKError, IndexError) as error:
        return type(error)


def named(decoder: HeaderDecoder, data: bytes) -> Any:
    """Headers by name, or the type of the error."""
    try:
        return decoder.by_name(data)
    except HPACKError as error:
        return type(error)


def as_hpack(blocks: list[bytes], most_bytes: int = MOST_BYTES) -> None:
    """Has blocks decoded in all ways, and compares; what is behind an error does not count."""
    ours, theirs = HeaderDecoder(most_bytes), Decoder(most_bytes)
    by_name = HeaderDecoder(most_bytes)
    for data in blocks:
        expected = decoded(theirs, data)
        assert decoded(ours, data) == expected
        names = expected if isinstance(expected, type) else dict(expected)
        assert named(by_name, data) == names
        for each in (ours, by_name):
            assert each.header_table.dynamic_entries == theirs.header_table.dynamic_entries
            assert each.header_table.maxsize == theirs.header_table.maxsize
            assert each.header_table.row[62:] == list(each.header_table.dynamic_entries)
        if isinstance(expected, type):
            break


@given(
    st.lists(
        st.tuples(
            _HEADERS, st.sampled_from((None, None, 0, 100, 4_096)), st.booleans(), st.integers(1, 3)
        ),
        max_size=6,
    )
)
def test_headers_are_decoded_as_hpack_does(blocks: list[tuple[Any, int | None, bool, int]]) -> None:
    encoder = Encoder()
    encoded = []
    for headers, size, is_short, times in blocks:
        if size is not None:
            encoder.header_table_size = size
        encoded += [encoder.encode(headers, huffman=is_short) for _ in range(times)]
    as_hpack(encoded)


def text(value: bytes, *, is_short: bool = False) -> bytes:
    """A text as HPACK writes it."""
    data = HUFFMAN.encode(value) if is_short else value
    length = encode_integer(len(data), 7)
    length[0] |= 0x80 * is_short
    return bytes(length) + data


def literal(form: int, name: bytes | int, value: bytes, *, is_short: bool = False) -> bytes:
    """A header that is written out; forms are 0x00, 0x10 (never indexed) and 0x40 (added)."""
    bits = 6 if form == 0x40 else 4
    number = encode_integer(name if isinstance(name, int) else 0, bits)
    number[0] |= form
    own = b"" if isinstance(name, int) else text(name, is_short=is_short)
    return bytes(number) + own + text(value, is_short=is_short)


_VALUES = st.one_of(
    st.sampled_from((b"", b"a", b"same", b"v" * 40, b"w" * 200)), st.binary(max_size=5)
)
_PIECES = st.one_of(
    st.integers(1, 70).map(lambda number: bytes((0x80 | number,))),
    st.sampled_from((b"\x80", b"\xff\x00", b"\xff\x80\x01", b"\x20", b"\x3f\x45", b"\x3f\xe1\x1f")),
    st.builds(
        literal,
        st.sampled_from((0x00, 0x10, 0x40)),
        st.one_of(st.sampled_from((b"x-id", b"te", b"n" * 130)), st.integers(1, 80)),
        _VALUES,
        is_short=st.booleans(),
    ),
)
_BLOCKS = st.lists(_PIECES, max_size=7)


@given(st.lists(_BLOCKS, max_size=4), st.lists(st.integers(0, 3), max_size=8))
@settings(max_examples=examples(400))
def test_pieces_of_all_forms_in_any_order(blocks: list[list[bytes]], order: list[int]) -> None:
    """Blocks come again, so that those that are remembered are used, and some must not be."""
    whole = [b"".join(block) for block in blocks]
    as_hpack([whole[number % len(whole)] for number in order] if whole else [])


@given(st.lists(st.binary(max_size=30), max_size=4))
def test_any_block_is_decoded_as_hpack_does(blocks: list[bytes]) -> None:
    as_hpack(blocks)


@given(
    before=st.lists(_PIECES, max_size=3),
    behind=st.lists(_PIECES, max_size=3),
    values=st.lists(st.binary(min_size=3, max_size=3), min_size=2, max_size=6),
    others=st.lists(st.binary(min_size=2, max_size=2), min_size=1, max_size=3),
    form=st.sampled_from((0x00, 0x10)),
)
@settings(max_examples=examples(300))
def test_one_value_varies_and_now_and_then_another(
    before: list[bytes], behind: list[bytes], values: list[bytes], others: list[bytes], form: int
) -> None:
    blocks = [
        b"".join((*before, literal(form, b"x-id", value), *behind, literal(0, b"x-at", other)))
        for other in others
        for value in values
    ]
    as_hpack(blocks, 2_000)


ALIKE = [literal(0, b"x-client", b"me") + literal(0, b"x-id", b"%036d" % n) for n in range(50)]


def test_blocks_that_are_alike_but_for_an_id_are_not_read_again() -> None:
    decoder = HeaderDecoder(16_384)
    for data in ALIKE[:2]:
        decoder.by_name(data)
    decoder._read = pytest.fail  # type: ignore[assignment, method-assign]
    for number, data in enumerate(ALIKE):
        expected = {b"x-client": b"me", b"x-id": b"%036d" % number}
        assert decoder.by_name(data) == expected


def test_headers_that_are_handed_out_stay_as_they_are() -> None:
    decoder = HeaderDecoder(16_384)
    given_out = [decoder.by_name(data) for data in ALIKE]
    assert [each[b"x-id"] for each in given_out] == [b"%036d" % number for number in range(50)]


def test_a_header_of_two_values_is_not_one_that_varies() -> None:
    blocks = [literal(0, b"x", value) + literal(0, b"x", b"last") for value in (b"1", b"2", b"3")]
    as_hpack(blocks)


def test_what_is_remembered_ends_when_the_table_changes() -> None:
    decoder = HeaderDecoder(16_384)
    decoder.by_name(literal(0x40, b"x", b"old"))
    assert decoder.by_name(b"\xbe") == {b"x": b"old"}
    decoder.by_name(literal(0x40, b"x", b"new"))
    assert decoder.by_name(b"\xbe") == {b"x": b"new"}


def test_few_blocks_are_remembered_and_no_long_ones() -> None:
    decoder = HeaderDecoder(16_384)
    for length in range(1, 50):
        decoder.by_name(literal(0, b"x", b"y" * length))
    decoder.by_name(literal(0, b"x", b"y" * LONGEST_BLOCK_BYTES))
    decoder.by_name(b"\x82" * 100)
    assert len(decoder._blocks) == MOST_BLOCKS
    assert max(decoder._blocks) < 60


@pytest.mark.parametrize(
    "piece",
    [b"\x82", b"\xbe", literal(0, b"", b""), literal(0x40, b"", b""), b"\x20", b"\xff\x00"],
    ids=["static", "added", "literal", "adds", "resizes", "long number"],
)
def test_a_long_block_costs_no_more_than_its_headers_may(piece: bytes) -> None:
    """As long as CONTINUATION lets it be; hpack stops at the limit, and so must we."""
    decoder = HeaderDecoder(16_384)
    decoder.by_name(literal(0x40, b"x", b"y"))
    block = piece * (1_000_000 // len(piece))
    work = work_of([lambda: named(decoder, block)], 1)
    assert isinstance(named(decoder, block), type)
    assert work.operations < 150_000


def test_ids_in_the_table_cost_little() -> None:
    """As Java writes them: each changes the table, so that nothing can be remembered."""
    decoder, encoder = HeaderDecoder(16_384), Encoder()
    own = [
        ("x-client", "me"),
        ("te", "trailers"),
        ("x-mq-language", "JAVA"),
        ("x-version", "5.2.0"),
    ]
    blocks = [encoder.encode([*own, ("x-id", f"{n:036}")], huffman=False) for n in range(80)]
    for data in blocks[:40]:
        decoder.by_name(data)
    halves = iter((blocks[40:60], blocks[60:]))
    work = work_of([lambda: list(map(decoder.by_name, next(halves)))], 20)
    assert work.operations < 600


def test_a_bomb_takes_no_time() -> None:
    decoder = HeaderDecoder(16_384)
    decoder.by_name(literal(0x40, b"x", b"y" * 4_000))
    begun_s = time.process_time()
    assert isinstance(named(decoder, b"\xbe" * 1_000_000), type)
    assert time.process_time() - begun_s < 1


REQUESTS = (
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com"),
     ("cache-control", "no-cache")],
    [(":method", "GET"), (":scheme", "https"), (":path", "/index.html"),
     (":authority", "www.example.com"), ("custom-key", "custom-value")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "headers"),
    [
        (  # C.2.1
            ["400a637573746f6d2d6b65790d637573746f6d2d686561646572"],
            [[("custom-key", "custom-header")]],
        ),
        (["040c2f73616d706c652f70617468"], [[(":path", "/sample/path")]]),  # C.2.2
        (["100870617373776f726406736563726574"], [[("password", "secret")]]),  # C.2.3
        (["82"], [[(":method", "GET")]]),  # C.2.4
        (  # C.3
            [
                "828684410f7777772e6578616d706c652e636f6d",
                "828684be58086e6f2d6361636865",
                "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
            ],
            REQUESTS,
        ),
        (  # C.4
            [
                "828684418cf1e3c2e5f23a6ba0ab90f4ff",
                "828684be5886a8eb10649cbf",
                "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
            ],
            REQUESTS,
        ),
    ],
)
def test_examples_of_the_standard(blocks: list[str], headers: list[list[tuple[str, str]]]) -> None:
    """RFC 7541, appendix C."""
    decoder, by_name = HeaderDecoder(MOST_BYTES), HeaderDecoder(MOST_BYTES)
    for block, pairs in zip(blocks, headers, strict=True):
        expected = [(name.encode(), value.encode()) for name, value in pairs]
        assert decoded(decoder, bytes.fromhex(block)) == expected
        assert by_name.by_name(bytes.fromhex(block)) == dict(expected)
