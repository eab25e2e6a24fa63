# SPDX-License-Identifier: Apache-2.0
"""The binary header: round trips, the original's bytes, and errors for all that is broken."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from txrocketmq.remoting import formats
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


# ------------------------------------------------------------------------------- learned layouts


def declared_fields(header: bytes) -> dict[str, str]:
    """The fields as the declaration has them; the last of equal names counts."""
    return {
        each.name.decode("utf-8", "replace"): each.value.decode("utf-8", "replace")
        for each in formats.BINARY_HEADER.parse(header).fields
        if each.name and each.value
    }


def header_of(pairs: list[tuple[bytes, bytes]], code: int = 310) -> bytes:
    """A header without a remark, of any bytes as names and values."""
    encoded = b"".join(
        formats.BINARY_FIELD.build(
            {"name_length": len(name), "name": name, "value_length": len(value), "value": value}
        )
        for name, value in pairs
    )
    head = {"code": code, "language": 0, "version": 407, "opaque": 9, "flag": 0, "remark_length": 0}
    length = formats.BINARY_FIELDS_LENGTH.build({"fields_length": len(encoded)})
    return bytes(formats.BINARY_HEAD.build(head) + length + encoded)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> rocketmq._Layouts:
    """A decoder that knows nothing yet, and learns each layout that it sees."""
    layouts = rocketmq._Layouts()
    monkeypatch.setattr(rocketmq, "_layouts", layouts)
    monkeypatch.setattr(rocketmq, "_MISSES_TO_LEARN", 1)
    return layouts


PIECES = st.sampled_from([b"", b"a", b"b", b"\xff", b"\0", "\u4e2d".encode()]) | st.binary(
    max_size=5
)
PAIRS = st.lists(st.tuples(PIECES, PIECES), min_size=1, max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PAIRS, min_size=1, max_size=6))
def test_headers_of_learned_layouts_are_as_declared(
    eager: rocketmq._Layouts, headers: list[list[tuple[bytes, bytes]]]
) -> None:
    for header in [header_of(pairs) for pairs in headers] * 2:
        assert rocketmq.decode_header(header).ext_fields == declared_fields(header)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS, st.data())
def test_a_damaged_header_is_not_taken_for_one_of_a_learned_layout(
    eager: rocketmq._Layouts, pairs: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    header = header_of(pairs)
    rocketmq.decode_header(header)
    damaged = bytearray(header)
    damaged[data.draw(st.integers(21, len(header) - 1))] = data.draw(st.integers(0, 255))

    def outcome() -> dict[str, str] | str:
        try:
            return dict(rocketmq.decode_header(bytes(damaged)).ext_fields or {})
        except FrameError as error:
            return str(error)

    learned = outcome()
    eager._known.clear()
    assert learned == outcome()


def test_a_layout_is_learned_once_and_serves_other_values(
    eager: rocketmq._Layouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = header_of([(b"topic", b"T1"), (b"", b"x"), (b"i", b"key"), (b"e", b"")])
    second = header_of([(b"topic", b"T2"), (b"", b"x"), (b"i", "\u4e2d".encode()), (b"e", b"")])
    other = header_of([(b"topic", b"T12"), (b"", b"x"), (b"i", b"ke"), (b"e", b"")])
    rocketmq.decode_header(first)
    walked: list[bytes] = []
    walk = rocketmq._walk

    def noted(header: bytes, at: int, end: int) -> tuple[list[str], list[slice]]:
        walked.append(header)
        return walk(header, at, end)

    monkeypatch.setattr(rocketmq, "_walk", noted)
    assert rocketmq.decode_header(first).ext_fields == {"topic": "T1", "i": "key"}
    assert rocketmq.decode_header(second).ext_fields == {"topic": "T2", "i": "\u4e2d"}
    assert rocketmq.decode_header(other).ext_fields == {"topic": "T12", "i": "ke"}
    assert walked == [other]


def test_layouts_are_bounded(eager: rocketmq._Layouts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager._known, "most", 3)
    for code in range(5):
        rocketmq.decode_header(header_of([(b"a", b"b")], code))
    assert [code for code, _ in eager._known] == [2, 3, 4]
    rocketmq.decode_header(header_of([(b"a", b"b" * 9000)]))
    rocketmq.decode_header(header_of([(b"a", b"b")] * 65))
    rocketmq.decode_header(header_of([(b"a", b"")]))
    assert [code for code, _ in eager._known] == [2, 3, 4]


def test_few_of_the_headers_that_never_come_again_are_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layouts = rocketmq._Layouts()
    monkeypatch.setattr(rocketmq, "_layouts", layouts)
    for size in range(1, 161):
        rocketmq.decode_header(header_of([(b"a", b"b" * size)]))
    assert len(layouts._known) == 10
