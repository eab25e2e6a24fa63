# SPDX-License-Identifier: Apache-2.0
"""Frames: whole, in pieces, cut short, too long, damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import FrameError, FrameTooLong
from txrocketmq.remoting.frame.frame import (
    HELD_COMMAND_BYTES,
    MAX_FRAME_BYTES,
    MAX_HEADER_BYTES,
    FrameDecoder,
    bare_answers,
    cut,
    decode_header,
    encode_frame,
    first_code,
)

FORMS = pytest.mark.parametrize("form", list(SerializeType))


def frame(
    form: SerializeType = SerializeType.JSON, body: bytes = b"body", opaque: int = 5
) -> bytes:
    command = RemotingCommand(11, {"topic": "T"}, body, opaque=opaque, serialize_type=form)
    return b"".join(encode_frame(command))


def told(command: RemotingCommand) -> tuple[object, ...]:
    return command.code, command.ext_fields, command.body, command.opaque, command.serialize_type


@FORMS
def test_a_frame_comes_back(form: SerializeType) -> None:
    (command,) = FrameDecoder().receive(frame(form))
    assert told(command) == (11, {"topic": "T"}, b"body", 5, form)


@FORMS
def test_byte_by_byte_it_comes_with_the_last_one(form: SerializeType) -> None:
    decoder = FrameDecoder()
    data = frame(form)
    for at in range(len(data) - 1):
        assert decoder.receive(data[at : at + 1]) == []
        assert decoder.held_bytes == at + 1
    assert len(decoder.receive(data[-1:])) == 1
    assert decoder.held_bytes == 0


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.data())
def test_any_cuts_give_the_same_commands(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(body=body, opaque=n) for n, body in enumerate(bodies))
    decoder = FrameDecoder()
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += decoder.receive(stream[:size])
        stream = stream[size:]
    assert [(c.opaque, c.body) for c in found] == list(enumerate(bodies))
    assert decoder.error is None


def test_what_trails_is_kept_for_the_next() -> None:
    decoder = FrameDecoder()
    first, second = frame(opaque=1), frame(opaque=2)
    assert [c.opaque for c in decoder.receive(first + second[:9])] == [1]
    assert decoder.held_bytes == 9
    assert [c.opaque for c in decoder.receive(second[9:])] == [2]


def test_a_body_of_several_buffers_is_not_joined() -> None:
    command = RemotingCommand(0, flag=RESPONSE_FLAG)
    body = memoryview(b"abcdef")
    head, *parts = encode_frame(command, [body[:3], b"", body[3:]])
    assert parts == [body[:3], body[3:]]
    (decoded,) = FrameDecoder().receive(b"".join([head, *parts]))
    assert decoded.body == b"abcdef"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (struct.pack(">iI", MAX_FRAME_BYTES - 3, 0), "exceeds the limit"),
        (struct.pack(">iI", 0x7FFFFFFF, 0), "exceeds the limit"),
        (struct.pack(">iI", -1, 0), "too short"),
        (struct.pack(">iI", 3, 0), "too short"),
        (struct.pack(">iI", 10, 7), "does not fit"),
        (struct.pack(">iI", 4, 0xFFFFFF), "does not fit"),
        (struct.pack(">iI", 6, 2 << 24 | 2) + b"{}", "serialize type 2 is unknown"),
        (struct.pack(">iI", 6, 2) + b"[]", "not an object"),
        (struct.pack(">iI", 8, 4) + b"{{{{", "broken"),
        (b"GET / HTTP/1.1\r\n\r\n", "exceeds the limit"),
    ],
)
def test_what_is_no_frame_is_named_and_ends_the_stream(data: bytes, what: str) -> None:
    decoder = FrameDecoder()
    good = frame()
    assert len(decoder.receive(good + data)) == 1  # what came before is served
    assert what in str(decoder.error)
    assert decoder.receive(good) == []


def test_the_largest_frame_passes() -> None:
    limit = 4096
    empty = len(frame(body=b""))
    fits = frame(body=bytes(limit - empty))
    assert len(FrameDecoder(limit).receive(fits)) == 1
    decoder = FrameDecoder(limit)
    assert decoder.receive(frame(body=bytes(limit - empty + 1))) == []
    assert decoder.error is not None


def test_a_long_frame_is_joined_once() -> None:
    decoder = FrameDecoder()
    data = frame(body=bytes(4 * 1024 * 1024))
    pieces = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    for piece in pieces[:-1]:
        assert decoder.receive(piece) == []
    assert len(decoder._chunks) == len(pieces) - 1
    (command,) = decoder.receive(pieces[-1])
    assert len(command.body) == 4 * 1024 * 1024


def test_a_frame_in_tiny_pieces_costs_no_more_than_it_holds() -> None:
    decoder = FrameDecoder()
    data = frame(body=bytes(5_000))
    for at in range(len(data) - 1):
        assert decoder.receive(data[at : at + 1]) == []
        assert len(decoder._chunks) <= 1_025
    (command,) = decoder.receive(data[-1:])
    assert len(command.body) == 5_000


@FORMS
@given(at=st.integers(0, 200), value=st.integers(0, 255))
def test_a_damaged_frame_never_raises(form: SerializeType, at: int, value: int) -> None:
    data = bytearray(frame(form))
    data[at % len(data)] = value
    decoder = FrameDecoder()
    for command in decoder.receive(bytes(data)):
        assert isinstance(command.code, int)
    assert decoder.error is None or isinstance(decoder.error, FrameError)


@given(st.integers(0, 255), st.binary(max_size=200))
def test_a_header_of_any_bytes_gives_a_command_or_a_frame_error(form: int, data: bytes) -> None:
    try:
        command = decode_header(form, data)
    except FrameError:
        return
    assert command.body == b""


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.ROCKETMQ])
@given(code=st.integers(0, 32_767), opaque=st.integers(-(2**31), 2**31 - 1))
def test_answers_that_only_say_a_code(
    serialize_type: SerializeType, code: int, opaque: int
) -> None:
    command = RemotingCommand(code, flag=1, opaque=opaque, serialize_type=serialize_type)
    assert bare_answers(code, serialize_type)(opaque) == b"".join(encode_frame(command))


def test_what_was_looked_at_is_not_kept_for_long() -> None:
    one = frame()
    decoder = FrameDecoder(portion_commands=10)
    assert len(decoder.receive(100 * one)) == 10
    assert decoder.held_bytes == 100 * len(one)
    for left in range(80, -1, -10):
        assert len(decoder.receive(b"")) == 10
        assert decoder.is_behind == (left > 0)
        assert decoder.held_bytes <= 2 * left * len(one)


def test_a_portion_is_as_long_as_its_bytes() -> None:
    one = frame(body=bytes(1_000))
    decoder = FrameDecoder(portion_bytes=2 * len(one) + 1)
    assert len(decoder.receive(7 * one + one[:9])) == 3
    assert len(decoder.receive(one[9:])) == 3
    assert len(decoder.receive(b"")) == 2
    assert not decoder.is_behind
    assert decoder.held_bytes == 0


def test_a_portion_ends_behind_headers_that_take_long() -> None:
    header = b"{code:1,extFields:{a:'" + b"x" * 3_000 + b"'}}"
    one = struct.pack(">ii", 4 + len(header), len(header)) + header
    decoder = FrameDecoder(portion_bytes=1 << 16)
    found = [len(decoder.receive(10 * one))]
    while decoder.is_behind:
        found.append(len(decoder.receive(b"")))
    assert found == [3, 3, 3, 1]
    assert len(FrameDecoder().receive(10 * one)) == 10


def test_a_header_that_takes_too_long_is_not_waited_for() -> None:
    prefix = struct.pack(">ii", 5_000_000, MAX_HEADER_BYTES + 1)
    decoder = FrameDecoder(portion_bytes=1 << 16)
    assert decoder.receive(frame() + prefix + b"{")[0].opaque == 5
    assert "header length 262145 exceeds the limit" in str(decoder.error)
    decoder = FrameDecoder(portion_bytes=1 << 16)
    assert decoder.receive(struct.pack(">ii", 5_000_000, MAX_HEADER_BYTES)) == []
    assert decoder.error is None


def test_an_unfinished_frame_may_be_kept_and_looked_at_later() -> None:
    one = frame(body=bytes(1_000))
    decoder = FrameDecoder()
    assert decoder.receive(one[:500]) == []
    decoder.keep(one[500:900])
    assert not decoder.is_behind
    decoder.keep(one[900:] + one)
    assert decoder.is_behind
    assert len(decoder.receive(b"")) == 2
    decoder.keep(one)
    decoder.drop()
    assert (decoder.is_behind, decoder.held_bytes, decoder.receive(b"")) == (False, 0, [])


def test_no_frame_is_longer_than_its_reader_takes() -> None:
    command = RemotingCommand(0, flag=1)
    head = sum(map(len, encode_frame(command)))
    most = MAX_FRAME_BYTES - head
    frame = b"".join(encode_frame(command, [bytes(most - 1), b"x"]))
    assert len(frame) == MAX_FRAME_BYTES
    decoder = FrameDecoder()
    assert len(decoder.receive(frame)) == 1
    assert decoder.error is None
    with pytest.raises(FrameTooLong, match=f"{MAX_FRAME_BYTES + 1} bytes"):
        encode_frame(command, [bytes(most), b"x"])


class Served:
    """Takes a stream as a peer does: some commands are served, the others given back."""

    def __init__(self, portion_commands: int, portion_bytes: int) -> None:
        self.decoder = FrameDecoder(portion_commands=portion_commands, portion_bytes=portion_bytes)
        self.opaques: list[int] = []

    def take(self, data: bytes, count: int) -> None:
        """Serves `count` commands at most, and checks what is held."""
        commands = self.decoder.receive(data)
        self.opaques += [each.opaque for each in commands[:count]]
        rest = commands[count:]
        before = self.decoder.held_bytes
        self.decoder.leave(rest)
        counted = sum(HELD_COMMAND_BYTES + len(each.body) for each in rest)
        assert self.decoder.held_bytes == before + counted
        assert self.decoder.is_behind or not rest


@given(
    bodies=st.lists(st.binary(max_size=60), min_size=1, max_size=12),
    portion=st.tuples(st.integers(1, 5), st.integers(1, 400)),
    steps=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 4), st.booleans()), max_size=30),
)
def test_whatever_is_given_back_comes_first_and_nothing_twice(
    bodies: list[bytes], portion: tuple[int, int], steps: list[tuple[int, int, bool]]
) -> None:
    stream = b"".join(frame(body=body, opaque=n) for n, body in enumerate(bodies))
    served = Served(*portion)
    for size, count, is_kept in steps:
        if is_kept:
            served.decoder.keep(stream[:size])
        else:
            served.take(stream[:size], count)
        stream = stream[size:]
    served.take(stream, 1)
    while served.decoder.is_behind:
        served.take(b"", 3)
    assert served.opaques == list(range(len(bodies)))
    assert served.decoder.held_bytes == 0


def test_good_commands_are_served_though_the_stream_is_broken_behind_them() -> None:
    decoder = FrameDecoder()
    commands = decoder.receive(3 * frame() + b"GET / HTTP/1.1\r\n\r\n")
    decoder.leave(commands[1:])
    decoder.keep(frame())
    assert (decoder.is_behind, decoder.error is None) == (True, False)
    assert len(decoder.receive(b"")) == 2
    assert (decoder.is_behind, decoder.held_bytes, decoder.receive(frame())) == (False, 0, [])


def test_commands_are_forgotten_and_bytes_are_not() -> None:
    decoder = FrameDecoder(portion_commands=2)
    decoder.leave(decoder.receive(2 * frame() + frame(opaque=6) + frame()[:9]))
    decoder.forget_commands()
    assert [each.opaque for each in decoder.receive(b"")] == [6]
    assert decoder.held_bytes == 9


@given(
    bodies=st.lists(st.binary(max_size=60), max_size=6),
    at=st.integers(0, 20),
    cut_off=st.integers(0, 40),
    most=st.integers(0, 8),
)
def test_frames_are_cut_out_of_bytes_without_any_state(
    bodies: list[bytes], at: int, cut_off: int, most: int
) -> None:
    frames = [frame(body=body, opaque=n) for n, body in enumerate(bodies)]
    whole = bytes(at) + b"".join(frames)
    data = whole[: max(len(whole) - cut_off, at)]
    commands, end, found = cut(data, at, len(data) - 7, range(most), MAX_FRAME_BYTES)
    count, ends = 0, at
    while count < min(most, len(frames)) and ends + len(frames[count]) <= len(data):
        ends += len(frames[count])
        count += 1
    assert [each.body for each in commands] == bodies[:count]
    assert end == ends
    is_looked_at = count < min(most, len(frames)) and len(data) - end >= 8
    assert found == (len(frames[count]) if is_looked_at else 0)


def test_how_much_of_a_frame_is_missing_is_known() -> None:
    frame = b"".join(map(bytes, encode_frame(RemotingCommand(1, {}, bytes(100), opaque=1))))
    decoder = FrameDecoder()
    assert decoder.missing_bytes == 0
    for at in range(len(frame)):
        decoder.receive(frame[at : at + 1])
        # How long the frame is can be seen from eight bytes.
        expected = len(frame) - at - 1 if at >= 7 else 7 - at
        assert decoder.missing_bytes == expected
    decoder.receive(frame[:20])
    decoder.leave([RemotingCommand(1)])
    assert decoder.missing_bytes == 0, "there is a command to be served"


def test_how_long_one_frame_is_unfinished_is_known() -> None:
    frame = b"".join(map(bytes, encode_frame(RemotingCommand(10, body=b"x" * 50))))
    decoder = FrameDecoder()
    assert decoder.unfinished_ms(1_000) == 0
    decoder.receive(frame[:20])
    assert [decoder.unfinished_ms(now) for now in (2_000, 3_000)] == [0, 1_000]
    decoder.receive(frame[20:30])
    assert decoder.unfinished_ms(4_000) == 2_000, "a few more bytes of it change nothing"
    decoder.receive(frame[30:] + frame[:20])
    assert decoder.unfinished_ms(5_000) == 0, "it is another one"
    assert decoder.unfinished_ms(6_000) == 1_000
    decoder.receive(frame[20:])
    assert decoder.unfinished_ms(7_000) == 0


@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
def test_the_first_code_is_read_without_decoding(kind: SerializeType) -> None:
    command = RemotingCommand(310, {"code": "7"}, b"body", opaque=5, serialize_type=kind)
    data = b"".join(bytes(part) for part in encode_frame(command))
    assert first_code(data + b"more") == 310
    assert first_code(data[:8]) is None


@given(st.binary(min_size=8, max_size=60))
def test_no_bytes_make_the_first_code_raise(data: bytes) -> None:
    first_code(data)
    first_code(data[:4] + bytes([1]) + data[5:])
