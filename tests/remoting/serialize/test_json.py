# SPDX-License-Identifier: Apache-2.0
"""JSON headers and bodies: round trips, fastjson's own forms, and errors for all that is broken."""

from __future__ import annotations

import base64
import enum
import json as plain_json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.serialize import json
from txrocketmq.remoting.serialize.json_scanner import JsonError

GOLDEN = Path(__file__).parents[2] / "golden" / "json"

INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
COMMANDS = st.builds(
    RemotingCommand,
    code=INTS,
    ext_fields=st.none() | st.dictionaries(TEXTS, TEXTS, max_size=5),
    flag=st.integers(0, 3),
    opaque=INTS,
    remark=st.none() | TEXTS,
    language=st.sampled_from(["JAVA", "PYTHON", "CPP"]),
    version=st.integers(0, 1000),
)
QUEUES = st.builds(MessageQueue, TEXTS, TEXTS, INTS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS | st.floats(-1e9, 1e9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=4)
        | st.dictionaries(st.integers(-(2**63), 2**63), inner, max_size=4)
        | st.dictionaries(QUEUES, inner, max_size=2)
    ),
    max_leaves=12,
)


def fields(command: RemotingCommand) -> tuple[Any, ...]:
    return tuple(getattr(command, name) for name in RemotingCommand.__slots__)


def golden_commands(version: str) -> dict[str, bytes]:
    """JSON frames of the original by name."""
    lines = (GOLDEN / f"commands-{version}.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return {name: base64.b64decode(frame) for name, kind, frame in rows if kind == "JSON"}


# headers


@given(COMMANDS)
def test_header_round_trip(command: RemotingCommand) -> None:
    decoded = json.decode_header(json.encode_header(command))
    assert fields(decoded) == fields(command)


@pytest.mark.parametrize("name", ["bare", "answer", "fields"])
def test_header_is_written_as_the_original_does(golden_version: str, name: str) -> None:
    frame = golden_commands(golden_version)[name]
    header = frame[8 : 8 + int.from_bytes(frame[5:8])]
    command = json.decode_header(header)
    assert json.encode_header(command) == header
    if name == "fields":
        assert command.ext_fields == {"topic": 'Topicé中😀"\\/\n', "empty": ""}
        assert command.is_oneway
        assert command.opaque == 2**31 - 1
    if name == "answer":
        assert command.is_response
        assert (command.code, command.opaque, command.language) == (17, -5, "CPP")
        assert command.remark == "No topic\n <here>"
    if name == "bare":
        assert command.ext_fields is None
        assert command.remark is None


def test_header_without_members_has_the_originals_defaults() -> None:
    command = json.decode_header(b"{}")
    assert fields(command) == fields(RemotingCommand(0, None, version=0, language="JAVA"))


def test_header_may_have_null_members() -> None:
    header = b'{"code":1,"extFields":null,"flag":null,"language":null,"remark":null,"version":5}'
    command = json.decode_header(header)
    assert (command.code, command.ext_fields, command.flag, command.language) == (1, None, 0, None)


def test_header_numbers_may_be_texts() -> None:
    command = json.decode_header(b'{"code":"105","opaque":"-3","flag":0,"version":407}')
    assert (command.code, command.opaque) == (105, -3)


def test_fields_that_are_no_texts_become_texts() -> None:
    command = json.decode_header(
        b'{"code":1,"extFields":{"a":1,"b":true,"c":null,"d":1.5,"e":{"x":[1]},"f":"x"}}'
    )
    assert command.ext_fields == {"a": "1", "b": "true", "d": "1.5", "e": '{"x":[1]}', "f": "x"}


def test_header_that_is_no_utf8_is_read_with_replacements() -> None:
    command = json.decode_header(b'{"code":10,"extFields":{"i":"a\xffb"}}')
    assert command.ext_fields == {"i": "a�b"}


def test_header_with_unquoted_names_and_single_quotes() -> None:
    command = json.decode_header(b"{code:10,extFields:{'topic':'T'}}")
    assert (command.code, command.ext_fields) == (10, {"topic": "T"})


def test_lone_surrogates_are_written_as_question_marks() -> None:
    header = json.encode_header(RemotingCommand(1, {"a": "x\ud800"}, remark="y\udfff"))
    command = json.decode_header(header)
    assert (command.ext_fields, command.remark) == ({"a": "x?"}, "y?")


def test_fields_may_be_any_mapping() -> None:
    command = RemotingCommand(1, types.MappingProxyType({"a": "b"}))
    assert json.decode_header(json.encode_header(command)).ext_fields == {"a": "b"}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"5",
        b"null",
        b'"x"',
        b'{"code":1',
        b'{"code":1.5}',
        b'{"code":true}',
        b'{"code":[]}',
        b'{"code":2147483648}',
        b'{"opaque":-2147483649}',
        b'{"flag":"9999999999"}',
        b'{"version":"x"}',
        b'{"code":1,"extFields":[]}',
        b'{"code":1,"extFields":"x"}',
        b'{"code":1,"extFields":5}',
        b"\xff\xfe",
        b"{" * 5000,
        b"[" * 5000,
    ],
)
def test_broken_headers_are_frame_errors(header: bytes) -> None:
    with pytest.raises(FrameError):
        json.decode_header(header)


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":50,"extFields":{"secretKey":hidden}}',
        b'{"code":50,"extFields":{"secretKey":"x" hidden}}',
        b'{"code":50,"extFields":{"secretKey" "hidden"}}',
        b'{"code":50,"extFields":["hidden"]}',
        b'["code", 50, "hidden"]',
        b'{"extFields":{"secretKey":"hidden"' + b" " * json.MAX_LENIENT_HEADER_BYTES,
    ],
)
def test_what_is_wrong_is_said_without_what_may_be_a_secret(header: bytes) -> None:
    with pytest.raises(FrameError) as wrong:
        json.decode_header(header)
    assert "hidden" not in str(wrong.value)


@pytest.mark.parametrize("name", ["code", "extFields", "remark", "language"])
@pytest.mark.parametrize("depth", [1_000, 1_015])
def test_headers_that_are_nested_too_deep_are_frame_errors(name: str, depth: int) -> None:
    value = b'{"a":' * depth + b"1" + b"}" * depth
    with pytest.raises(FrameError, match="is not an int|nested too deep"):
        json.decode_header(b'{"%b":%b}' % (name.encode(), value))


def test_a_long_broken_header_is_not_scanned() -> None:
    header = b'{"code":1,"remark":"' + b"x" * json.MAX_LENIENT_HEADER_BYTES + b"\xff" + b'"}'
    with pytest.raises(FrameError, match=f"a header of {len(header)} bytes"):
        json.decode_header(header)
    values = b"{" + b",".join([b"a:1"] * 2) + b"}"
    assert json.decode_header(values).code == 0
    values = b"{" + b",".join([b"a:1"] * (json.MAX_LENIENT_HEADER_COMMAS + 2)) + b"}"
    with pytest.raises(FrameError, match=f"a header of {len(values)} bytes"):
        json.decode_header(values)


@given(COMMANDS, st.data())
def test_truncated_headers_are_frame_errors(command: RemotingCommand, data: st.DataObject) -> None:
    header = json.encode_header(command)
    with pytest.raises(FrameError):
        json.decode_header(header[: data.draw(st.integers(0, len(header) - 1))])


@given(COMMANDS, st.data())
def test_mutated_headers_are_commands_or_frame_errors(
    command: RemotingCommand, data: st.DataObject
) -> None:
    header = bytearray(json.encode_header(command))
    for _ in range(data.draw(st.integers(1, 4))):
        header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = json.decode_header(bytes(header))
    except FrameError:
        return
    assert fields(json.decode_header(json.encode_header(decoded))) == fields(decoded)


# bodies


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_body_round_trip(value: Any) -> None:
    assert json.decode_body(json.encode_body(value)) == without_none(value)


@given(VALUES)
def test_pretty_body_round_trip(value: Any) -> None:
    assert json.decode_body(json.encode_pretty(value)) == without_none(value)


@given(VALUES)
def test_standard_body_is_strict_json(value: Any) -> None:
    plain_json.loads(json.encode_standard_body(value))


@given(st.dictionaries(INTS, VALUES))
def test_standard_body_sorts_its_members(value: dict[int, Any]) -> None:
    names = list(plain_json.loads(json.encode_standard_body(value)))
    assert names == [str(name) for name in sorted(without_none(value))]


def test_fastjsons_form_of_keys() -> None:
    value = {
        "addresses": {1: "b", 0: "a"},
        "table": {MessageQueue("t", "b", 3): {"x": None, "y": 1.5}},
    }
    text = (
        b'{"addresses":{1:"b",0:"a"},'
        b'"table":{{"brokerName":"b","queueId":3,"topic":"t"}:{"y":1.5}}}'
    )
    assert json.encode_body(value) == text
    assert json.decode_body(text) == {
        "addresses": {1: "b", 0: "a"},
        "table": {MessageQueue("t", "b", 3): {"y": 1.5}},
    }


def test_standard_form_sorts_numbers_as_numbers() -> None:
    value = {"z": {17: "z", 2: "y", 0: "x", 10**10: "l"}, "a": [{"c": 1, "b": None}]}
    assert json.encode_standard_body(value) == (
        b'{"a":[{"c":1}],"z":{"0":"x","2":"y","17":"z","10000000000":"l"}}'
    )


def test_standard_form_quotes_a_queue() -> None:
    text = json.encode_standard_body({MessageQueue("t", "b", 3): 1})
    ((name, value),) = plain_json.loads(text).items()
    assert plain_json.loads(name) == {"brokerName": "b", "queueId": 3, "topic": "t"}
    assert value == 1


def test_pretty_form_is_that_of_5_4() -> None:
    value = {
        "dataVersion": {"counter": 1},
        "empty": {},
        "list": ["a", "b"],
        "objects": [{"k": 1}, {"k": 2}],
        "nothing": [],
        "offsetTable": {"t@g": {0: 5, 1: 7}},
    }
    assert json.encode_pretty(value).decode() == (
        '{\n\t"dataVersion":{\n\t\t"counter":1\n\t},\n\t"empty":{\n\t\t\n\t},\n\t"list":["a","b"],'
        '\n\t"objects":[\n\t\t{\n\t\t\t"k":1\n\t\t},\n\t\t{\n\t\t\t"k":2\n\t\t}\n\t],\n\t"nothing":[],'
        '\n\t"offsetTable":{\n\t\t"t@g":{\n\t\t\t0:5,\n\t\t\t1:7\n\t\t}\n\t}\n}'
    )


def test_config_file_of_4_9_is_read() -> None:
    text = b'{\n\t"offsetTable":{\n\t\t"t@g":{0:5,1:7\n\t\t}\n\t}\n}'
    assert json.decode_body(text) == {"offsetTable": {"t@g": {0: 5, 1: 7}}}


class Colour(enum.Enum):
    RED = "r"


class Number(enum.IntFlag):
    TWO = 2


class Text(enum.StrEnum):
    A = "a"


class Made:
    def to_json(self) -> dict[str, Any]:
        return {"queue": MessageQueue("t", "b", 1), "none": None}


def test_what_can_be_written() -> None:
    value = {
        "enum": Colour.RED,
        "flag": Number.TWO,
        "text": Text.A,
        "set": frozenset({3, 1, 2}),
        "tuple": (1, None),
        "mapping": types.MappingProxyType({"a": 1}),
        "made": Made(),
        Text.A: True,
        True: 1,
        Number.TWO: 2,
    }
    assert json.encode_body(value) == (
        b'{"enum":"RED","flag":2,"text":"a","set":[1,2,3],"tuple":[1,null],"mapping":{"a":1},'
        b'"made":{"queue":{"brokerName":"b","queueId":1,"topic":"t"}},"a":true,true:1,2:2}'
    )


def test_numbers_beyond_64_bits_are_written() -> None:
    assert (
        json.encode_body([2**70, -(2**70)]) == b"[1180591620717411303424,-1180591620717411303424]"
    )


def test_what_is_no_number_is_written_as_null() -> None:
    assert json.encode_body({"a": float("nan"), 1: float("inf")}) == b'{"a":null,1:null}'


@pytest.mark.parametrize("value", [b"bytes", object(), {b"key": 1}, {1.5: 1}, {None: 1}, [1j]])
def test_what_json_does_not_know_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="JSON"):
        json.encode_body(value)


def test_too_long_a_body_is_refused_unread() -> None:
    assert json.decode_body(b"[1,2]", max_bytes=5) == [1, 2]
    with pytest.raises(JsonError, match="6 bytes are more than the limit of 5"):
        json.decode_body(b"[1, 2]", max_bytes=5)


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("text", [b'{"a":1}', b"{1:1}"])
def test_any_buffer_is_read(make: Any, text: bytes) -> None:
    assert json.decode_body(make(text)) in ({"a": 1}, {1: 1})


@given(st.dictionaries(st.integers() | QUEUES, VALUES, min_size=1), st.data())
def test_truncated_bodies_are_json_errors(value: Any, data: st.DataObject) -> None:
    text = json.encode_body(value)
    with pytest.raises(JsonError):
        json.decode_body(text[: data.draw(st.integers(0, len(text) - 1))])


@given(VALUES, st.data())
def test_mutated_bodies_are_values_or_json_errors(value: Any, data: st.DataObject) -> None:
    text = bytearray(json.encode_body(value))
    for _ in range(data.draw(st.integers(1, 5))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = json.decode_body(bytes(text))
    except JsonError:
        return
    json.encode_body(decoded)


WITHOUT_MEMORY = """
import resource, sys
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.serialize.json import encode_body, encode_header

command = RemotingCommand(10, ext_fields={"topic": "T"})
body = {"name": "x" * 500}
writes = {"body": lambda: encode_body(body), "header": lambda: encode_header(command)}
write = writes[sys.argv[1]]
write()
with open("/proc/self/statm") as statm:
    used_pages = int(statm.read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used_pages * resource.getpagesize(), -1))
held, has_failed = None, False
try:
    for size in (100, 700):
        try:
            while True:
                held = (held, bytes(size))
        except MemoryError:
            pass
    for _ in range(20_000):
        held = (held, write())
except MemoryError:
    has_failed = True
held = None
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print("no memory" if has_failed else "memory")
"""


@pytest.mark.parametrize("what", ["body", "header"])
def test_a_process_without_memory_gets_an_error_and_goes_on(what: str) -> None:
    """The library that writes JSON would end the process with SIGSEGV."""
    command = [sys.executable, "-c", WITHOUT_MEMORY, what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "no memory\n"), done.stderr
