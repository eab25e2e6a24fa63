# SPDX-License-Identifier: Apache-2.0
"""The binary header: round trips, the original's bytes, and errors for all that is broken."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.codes import LanguageCode, RequestCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError, HeaderError
from txrocketmq.remoting.serialize import rocketmq

GOLDEN = Path(__file__).parents[2] / "golden" / "json"

INTS = st.integers(-(2**31), 2**31 - 1)
SHORTS = st.integers(-(2**15), 2**15 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
COMMANDS = st.builds(
    RemotingCommand,
    code=SHORTS,
    ext_fields=st.none() | st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=5),
    flag=INTS,
    opaque=INTS,
    remark=st.none() | TEXTS,
    language=st.sampled_from([language.name for language in LanguageCode]),
    version=SHORTS,
    serialize_type=st.just(SerializeType.ROCKETMQ),
)


def fields(command: RemotingCommand) -> tuple[Any, ...]:
    return tuple(getattr(command, name) for name in RemotingCommand.__slots__)


def golden_commands(version: str) -> dict[str, bytes]:
    """Binary frames of the original by name."""
    lines = (GOLDEN / f"commands-{version}.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return {name: base64.b64decode(frame) for name, kind, frame in rows if kind == "ROCKETMQ"}


@given(COMMANDS)
def test_round_trip(command: RemotingCommand) -> None:
    assert fields(rocketmq.decode_header(rocketmq.encode_header(command))) == fields(command)


@pytest.mark.parametrize("name", ["bare", "answer"])
def test_header_is_written_as_the_original_does(golden_version: str, name: str) -> None:
    frame = golden_commands(golden_version)[name]
    command = rocketmq.decode_header(frame[8:])
    assert rocketmq.encode_header(command) == frame[8:]
    if name == "answer":
        assert (command.code, command.flag, command.opaque, command.language) == (17, 1, -5, "CPP")
        assert command.remark == "No topic\n <here>"
        assert command.serialize_type == SerializeType.ROCKETMQ


def test_empty_texts_are_read_as_absent(golden_version: str) -> None:
    frame = golden_commands(golden_version)["fields"]
    header = frame[8 : 8 + int.from_bytes(frame[5:8])]
    command = rocketmq.decode_header(header)
    assert command.ext_fields == {"topic": 'Topicé中😀"\\/\n'}
    assert command.opaque == 2**31 - 1
    assert command.is_oneway
    with_empty = RemotingCommand(105, {"topic": 'Topicé中😀"\\/\n', "empty": ""}, remark="")
    again = rocketmq.decode_header(rocketmq.encode_header(with_empty))
    assert (again.ext_fields, again.remark) == (command.ext_fields, None)


def test_fields_of_empty_texts_only_are_a_mapping() -> None:
    header = rocketmq.encode_header(RemotingCommand(1, {"a": ""}))
    assert rocketmq.decode_header(header).ext_fields == {}


def test_unknown_languages() -> None:
    header = bytearray(rocketmq.encode_header(RemotingCommand(1, language=None)))
    assert header[2] == LanguageCode.OTHER
    header[2] = 99
    assert rocketmq.decode_header(bytes(header)).language is None


def test_texts_that_are_no_utf8_are_read_with_replacements() -> None:
    header = rocketmq.encode_header(RemotingCommand(1, {"a": "xyz"}, remark="abc"))
    command = rocketmq.decode_header(header.replace(b"xyz", b"x\xffz").replace(b"abc", b"a\xffc"))
    assert (command.ext_fields, command.remark) == ({"a": "x�z"}, "a�c")


def test_lone_surrogates_are_written_as_question_marks() -> None:
    header = rocketmq.encode_header(RemotingCommand(1, {"a": "x\ud800"}, remark="\udfffy"))
    command = rocketmq.decode_header(header)
    assert (command.ext_fields, command.remark) == ({"a": "x?"}, "?y")


@pytest.mark.parametrize("code", [RequestCode.POP_MESSAGE, 32768])
def test_codes_that_do_not_fit_are_refused(code: int) -> None:
    with pytest.raises(HeaderError, match=f"code {code} does not fit into the two bytes"):
        rocketmq.encode_header(RemotingCommand(code))


@pytest.mark.parametrize(
    "command",
    [
        RemotingCommand(-32769),
        RemotingCommand(1, opaque=2**31),
        RemotingCommand(1, flag=-(2**31) - 1),
        RemotingCommand(1, version=40000),
        RemotingCommand(1, {"k" * 32768: "v"}),
    ],
)
def test_what_does_not_fit_is_refused(command: RemotingCommand) -> None:
    with pytest.raises(HeaderError):
        rocketmq.encode_header(command)


@given(COMMANDS)
def test_headers_truncated_anywhere_are_frame_errors(command: RemotingCommand) -> None:
    header = rocketmq.encode_header(command)
    for length in range(len(header)):
        with pytest.raises(FrameError):
            rocketmq.decode_header(header[:length])


def test_bytes_after_the_fields_are_passed_over() -> None:
    command = RemotingCommand(1, {"a": "b"}, serialize_type=SerializeType.ROCKETMQ)
    header = rocketmq.encode_header(command)
    assert fields(rocketmq.decode_header(header + b"xyz")) == fields(command)


HEAD = struct.pack(">hbhii", 1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "rest",
    [
        struct.pack(">i", -1) + bytes(8),
        struct.pack(">i", -8) + bytes(8),
        struct.pack(">i", 9) + bytes(8),
        struct.pack(">ii", 0, -1) + bytes(8),
        struct.pack(">ii", 0, 9) + bytes(8),
        struct.pack(">iih", 0, 8, -1) + bytes(6),
        struct.pack(">iih", 0, 8, 3) + bytes(6),
        struct.pack(">iihxi", 0, 8, 1, -1) + b"x",
        struct.pack(">iihxi", 0, 8, 1, 2) + b"x",
        struct.pack(">iihxi", 0, 7, 1, 1) + b"x",
        struct.pack(">ii", 0, 1) + b"x",
    ],
)
def test_lengths_that_do_not_fit_are_frame_errors(rest: bytes) -> None:
    with pytest.raises(FrameError):
        rocketmq.decode_header(HEAD + rest)


@given(COMMANDS, st.data())
def test_mutated_headers_are_commands_or_frame_errors(
    command: RemotingCommand, data: st.DataObject
) -> None:
    header = bytearray(rocketmq.encode_header(command))
    for _ in range(data.draw(st.integers(1, 4))):
        header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = rocketmq.decode_header(bytes(header))
    except FrameError:
        return
    assert len(decoded.ext_fields or {}) <= len(header) // 6


@given(st.binary(max_size=80))
def test_anything_is_a_command_or_a_frame_error(header: bytes) -> None:
    try:
        decoded = rocketmq.decode_header(header)
    except FrameError:
        return
    assert decoded.body == b""
