# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.examples import examples
from txrocketmq.broker.kernel.header_holes import holes_of
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.frame.frame import decode_header, encode_frame

USUAL = (
    b'{"code":310,"extFields":{"b":"T","g":"17","i":"UNIQ_KEY\\u0001A\\u0002"},"flag":0,'
    b'"language":"JAVA","opaque":5,"version":407}'
)


def header_of(frame: bytes) -> tuple[int, bytes]:
    """The kind of a frame's header, and the header."""
    mark = int.from_bytes(frame[4:8], "big")
    return mark >> 24, frame[8 : 8 + (mark & 0xFFFFFF)]


def filled(command: RemotingCommand) -> tuple[list[Any], str, str, int]:
    """What a command has besides the three values that differ in all messages, and these."""
    fields = dict(command.ext_fields or {})
    born = fields.pop("g", "") or fields.pop("bornTimestamp", "")
    text = fields.pop("i", "") or fields.pop("properties", "")
    others = [command.code, command.flag, command.language, command.version, command.remark]
    return [*others, fields], born, text, command.opaque


def encoded(kind: SerializeType, fields: dict[str, str]) -> bytes:
    """The header of a send with these fields."""
    command = RemotingCommand(310, fields, opaque=9, serialize_type=kind)
    return header_of(b"".join(encode_frame(command)))[1]


def test_a_usual_header_has_three_holes() -> None:
    holes = holes_of(0, USUAL)
    assert holes is not None
    assert (holes.opaque, holes.born_timestamp_ms, holes.properties) == (5, 17, b"UNIQ_KEY\1A\2")
    other = (
        USUAL.replace(b":5,", b":77,").replace(b'"17"', b'"0018"').replace(b"01A", b"01\xc3\xa4")
    )
    same = holes_of(0, other)
    assert same is not None
    assert same.key == holes.key
    assert same[1:] == (77, 18, "UNIQ_KEY\1ä\2".encode(), None)


def test_the_order_of_the_fields_does_not_count() -> None:
    fields = {"b": "T", "g": "17", "i": "UNIQ_KEY\1A\2", "e": "3", "empty": ""}
    for kind in SerializeType:
        keys = set()
        for order in permutations(fields):
            holes = holes_of(kind, encoded(kind, {name: fields[name] for name in order}))
            assert holes is not None
            assert holes[1:] == (9, 17, b"UNIQ_KEY\1A\2", None)
            keys.add(holes.key)
        assert len(keys) == 1
        for name in ("b", "e", "empty"):
            holes = holes_of(kind, encoded(kind, fields | {name: "other"}))
            assert holes is not None
            assert holes.key not in keys


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"opaque":5', b'"opaque":05'),
        (b'"opaque":5', b'"opaque":-5'),
        (b'"opaque":5', b'"opaque":2147483648'),
        (b'"opaque":5', b'"opaque":"5"'),
        (b'"opaque":5', b'"opaque":5,"opaque":6'),
        (b'"opaque":5', b'"opaque":5.0'),
        (b'"g":"17"', b'"g":"17","bornTimestamp":"18"'),
        (b'"g":"17"', b'"g":"17","g":"18"'),
        (b'"g":"17"', b'"g":17'),
        (b'"g":"17"', b'"g":"-17"'),
        (b'"g":"17",', b""),
        (b"u0001", b"x"),
        (b"u0001", b"ud800"),
        (b"A", b"\xff"),
        (b"{", b"{ "),
        (b"}", b"} "),
        (b'"b":', b'"\\u0062":'),
        (b'"b":"T"', b'"b":{}'),
        (b'"extFields"', b'"others"'),
        (b"407}", b"407},"),
    ],
)
def test_a_header_that_is_unusual_has_none(before: bytes, after: bytes) -> None:
    assert before in USUAL
    assert holes_of(0, USUAL.replace(before, after)) is None


def test_other_serializations_have_none() -> None:
    assert holes_of(2, USUAL) is None
    assert holes_of(0, b"") is None
    assert holes_of(1, b"") is None


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(300), deadline=None)
def test_headers_with_the_same_key_differ_in_their_holes_alone(seed: int) -> None:
    """Also damaged ones: what has holes is decoded to that, or its key is never learned."""
    chance = random.Random(seed)
    frames = Frames(chance)
    kind, header = header_of(frames.send())
    changed = frames.mutated(header)
    whole, part = holes_of(kind, header), holes_of(kind, changed)
    if part is None:
        return
    try:
        command, born, text, opaque = filled(decode_header(kind, changed))
    except FrameError:  # of what is in the key, for example an unknown escape in another field
        assert whole is None or whole.key != part.key
        return
    assert (int(born), text.encode(), opaque) == (
        part.born_timestamp_ms,
        part.properties,
        part.opaque,
    )
    if whole is not None and whole.key == part.key:
        assert command == filled(decode_header(kind, header))[0]
