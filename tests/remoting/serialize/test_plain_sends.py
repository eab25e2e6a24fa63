# SPDX-License-Identifier: Apache-2.0
"""What is told to be a plain send means what a JSON parser would say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.remoting.serialize.java_sends import KEY, LETTERS, USUAL, frame, header
from txrocketmq.remoting.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.serialize.json import decode_header
from txrocketmq.remoting.serialize.plain_sends import (
    MAX_HEADER_BYTES,
    PlainSends,
    match_header,
)


def received(data: bytes) -> list[Any]:
    decoder = FrameDecoder(plain_sends=True)
    found = decoder.receive(data)
    assert decoder.error is None
    return found


def groups(text: bytes) -> tuple[bytes | None, ...] | None:
    match = match_header(text)
    return None if match is None else match.groups()


def test_what_varies_is_cut_out() -> None:
    place = b'T","c":"TBW102","d":"4","e":"1","f":"0'
    born, key = b"1700000000000", KEY.encode()
    assert groups(header(7)) == (place, born, None, key, None, b"7")
    full = header(2_000_000_000, i=f"KEYS\x01a b\x02{USUAL}\x02TAGS\x01\u4e2d\x02", l="0")
    assert groups(full) == (place, born, b"a b", key, "\u4e2d".encode(), b"2000000000")


@pytest.mark.parametrize(
    "changes",
    [
        {"code": 10},
        {"flag": 2},
        {"flag": 1},
        {"remark": "x"},
        {"language": "GO"},
        {"opaque": -1},
        {"opaque": 2**31 - 1},
        {"opaque": "1"},
        {"version": -1},
        {"h": "1"},
        {"j": "1"},
        {"l": "1"},
        {"m": "true"},
        {"b": ""},
        {"b": 'a"b'},
        {"b": "a\\b"},
        {"b": "a\x01b"},
        {"o": "more"},
        {"g": "-1"},
        {"g": "1" * 16},
        {"i": None},
        {"i": "WAIT\x01true"},
        {"i": f"{USUAL}\x02own\x011"},
        {"i": f"{USUAL}\x02DELAY\x013"},
        {"i": f"KEYS\x01a\x02DELAY\x013\x02{USUAL}"},
        {"i": f"UNIQ_KEY\x01{KEY}\x02WAIT\x01false"},
        {"i": f"UNIQ_KEY\x01{KEY}-\x02WAIT\x01true"},
    ],
)
def test_all_else_is_decoded_as_any_command(changes: dict[str, Any]) -> None:
    text = header(**changes)
    assert match_header(text) is None
    if changes.get("flag") != 1:
        (command,) = FrameDecoder(plain_sends=True).receive(frame(text)) or [None]
        assert not isinstance(command, PlainSends)


def test_raw_control_characters_are_no_match() -> None:
    assert match_header(header(i=f"KEYS\x01ab\x02{USUAL}")) is not None
    assert match_header(header(i=f"KEYS\x01a@b\x02{USUAL}").replace(b"@", b"\x02")) is None
    assert match_header(header()[:-1]) is None
    assert match_header(header() + b" ") is None


def test_a_read_gives_runs_in_order() -> None:
    other = header(3, h="1")
    data = b"".join(map(frame, [header(1), header(2), other, header(4)]))
    first, second, third = received(data)
    assert [each.opaque for each in first.commands()] == [1, 2]
    assert second.opaque == 3
    assert [each.opaque for each in third.commands()] == [4]
    assert (first.code, first.flag) == (310, 0)


def test_frames_may_come_in_any_pieces() -> None:
    data = frame(header(1), b"one") + frame(header(2), b"")
    decoder = FrameDecoder(plain_sends=True)
    found = [each for at in range(len(data)) for each in decoder.receive(data[at : at + 1])]
    assert [command.body for run in found for command in run.commands()] == [b"one", b""]


def test_nobody_gets_them_unasked() -> None:
    (command,) = FrameDecoder().receive(frame(header(1)))
    assert command.ext_fields == LETTERS


def test_long_headers_are_no_match() -> None:
    long = header(a="x" * MAX_HEADER_BYTES)
    (command,) = received(frame(long))
    assert not isinstance(command, PlainSends)


def test_binary_headers_are_none() -> None:
    command = decode_header(header(1))
    command.serialize_type = 1
    (decoded,) = received(b"".join(map(bytes, encode_frame(command))))
    assert decoded.ext_fields == LETTERS


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(
    TEXTS,
    st.integers(-(10**4), 2**33),
    st.integers(0, 2**31),
    st.lists(TEXTS, max_size=2),
    st.binary(max_size=8),
)
def test_it_says_what_the_parser_says(
    topic: str, born: int, opaque: int, texts: list[str], body: bytes
) -> None:
    properties = USUAL if len(texts) < 1 else f"KEYS\x01{texts[0]}\x02{USUAL}"
    properties += "" if len(texts) < 2 else f"\x02TAGS\x01{texts[1]}"
    text = header(opaque, b=topic, g=str(born), i=properties)
    if match_header(text) is None:
        return
    (run,) = received(frame(text, body))
    ((place, born_text, keys, uniq_key, tags, opaque_text, found, *_),) = run.sends
    (command,) = run.commands()
    fields = command.ext_fields
    assert (int(opaque_text), found) == (command.opaque, body) == (opaque, command.body)
    assert place.decode().split('"')[0] == fields["b"] == topic
    assert int(born_text) == int(fields["g"])
    assert (keys is None) == (len(texts) < 1)
    pairs = [pair.split("\x01") for pair in fields["i"].split("\x02")]
    decoded = {"KEYS": keys, "UNIQ_KEY": uniq_key, "WAIT": b"true", "TAGS": tags}
    assert {k: v.decode() for k, v in decoded.items() if v is not None} == dict(pairs)
