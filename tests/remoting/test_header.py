# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import (
    Header,
    Int,
    Long,
    NoHeader,
    camel_case,
    field,
    header,
)
from txrocketmq.remoting.primitives.java_numbers import integer, long

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)


@header("example.Base")
class Base(Header):
    namespace: str | None = None
    broker: str | None = field(wire="bname", default=None)


@header("example.Example", letters="abc")
class Example(Base):
    topic: str
    queue_id: Int
    born_time: Long = 7
    ok: bool
    order: bool = False
    ratio: float | None = None
    client_id: str = field(wire="clientID")
    nick: Int | None = field(wire="nickName", default=None)


EXAMPLES = st.builds(
    Example,
    topic=st.text(),
    queue_id=INTS,
    born_time=LONGS,
    ok=st.booleans(),
    order=st.booleans(),
    ratio=st.none() | st.floats(allow_nan=False),
    client_id=st.text(),
    nick=st.none() | INTS,
    namespace=st.none() | st.text(),
    broker=st.none() | st.text(),
)
SMALLEST = {"topic": "t", "queueId": "1", "ok": "true", "clientID": "c"}


@given(
    st.text("+-0123456789 ._x\u0663\uff13²", max_size=21)
    | st.builds("{}{:0{}}".format, st.sampled_from(["", "+", "-"]), LONGS, st.integers(1, 120))
)
def test_numbers_are_read_as_by_java_or_refused(text: str) -> None:
    """What is no number is never taken for another one, nor for a field that is absent."""
    for name, read in (("queueId", integer), ("bornTime", long)):
        try:
            expected = read(text)
        except ValueError:
            if name == "bornTime" and not text:
                continue  # an empty field that is not mandatory is absent
            with pytest.raises(HeaderError, match=f"<{name}>: For input string"):
                Example.decode({**SMALLEST, name: text})
        else:
            found = Example.decode({**SMALLEST, name: text})
            assert (found.queue_id if name == "queueId" else found.born_time) == expected


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "x", "0x1"])
def test_a_double_is_one_of_java(text: str) -> None:
    with pytest.raises(HeaderError, match="<ratio>"):
        Example.decode({**SMALLEST, "ratio": text})
    assert Example.decode({**SMALLEST, "ratio": " 1.5d "}).ratio == 1.5


@given(EXAMPLES)
def test_round_trip(example: Example) -> None:
    assert Example.decode(example.encode()) == example
    assert Example.decode(example.encode_letters()) == example


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (1e300, "1e+300")]
)
def test_a_double_is_written_for_java(value: float, text: str) -> None:
    ext_fields = {**SMALLEST, "ratio": text}
    example = Example.decode(ext_fields)
    assert example.ratio == value
    assert example.encode()["ratio"] == text


@given(EXAMPLES)
def test_field_by_field_is_the_same_as_compiled(example: Example) -> None:
    ext_fields = {**example.encode(), "nickName": ""}  # which the compiled function gives up on
    assert Example.decode(ext_fields) == dataclasses.replace(example, nick=None)


def test_names_and_texts_on_the_wire() -> None:
    example = Example(topic="T", queue_id=-1, ok=True, client_id="c", ratio=0.5, broker="b")
    assert example.encode() == {
        "topic": "T",
        "queueId": "-1",
        "bornTime": "7",
        "ok": "true",
        "order": "false",
        "ratio": "0.5",
        "clientID": "c",
        "bname": "b",
    }
    letters = example.encode_letters()
    assert {name for name in letters if len(name) == 1} == {"a", "b", "c"}
    assert (letters["a"], letters["b"], letters["c"]) == ("T", "-1", "7")
    assert letters["clientID"] == "c"


def test_fields_of_the_class_itself_come_first() -> None:
    assert [each.wire for each in Example.fields] == [
        "topic", "queueId", "bornTime", "ok", "order", "ratio", "clientID", "nickName",
        "namespace", "bname",
    ]  # fmt: skip
    assert [each.letter for each in Example.fields][:4] == ["a", "b", "c", None]
    assert [each.kind for each in Example.fields] == [
        "str", "int", "long", "bool", "bool", "double", "str", "int", "str", "str",
    ]  # fmt: skip
    assert [each.name for each in Example.fields if each.mandatory] == [
        "topic",
        "queue_id",
        "ok",
        "client_id",
    ]
    assert Example.java_class == "example.Example"


def test_absent_fields_have_their_defaults() -> None:
    example = Example.decode(SMALLEST)
    assert example == Example(topic="t", queue_id=1, ok=True, client_id="c")
    assert (example.born_time, example.order, example.nick, example.namespace) == (
        7,
        False,
        None,
        None,
    )


def test_empty_numbers_that_are_optional_are_absent() -> None:
    assert Example.decode({**SMALLEST, "bornTime": "", "nickName": "", "ratio": ""}) == (
        Example.decode(SMALLEST)
    )


def test_unknown_fields_are_passed_over() -> None:
    assert Example.decode({**SMALLEST, "other": "x"}) == Example.decode(SMALLEST)


def test_a_letter_goes_before_the_long_name() -> None:
    assert Example.decode({**SMALLEST, "a": "letter"}).topic == "letter"


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("false", False), ("1", False), ("", False)]
)
def test_booleans_are_read_as_java_reads_them(text: str, value: bool) -> None:
    assert Example.decode({**SMALLEST, "ok": text}).ok is value


def test_plain_values_pass_too() -> None:
    ext_fields: dict[str, Any] = {"topic": 5, "queueId": 3, "ok": True, "clientID": False}
    example = Example.decode(ext_fields)
    assert (example.queue_id, example.ok) == (3, True)


@pytest.mark.parametrize("name", SMALLEST)
def test_a_missing_field_is_named(name: str) -> None:
    rest = {wire: text for wire, text in SMALLEST.items() if wire != name}
    with pytest.raises(HeaderError) as caught:
        Example.decode(rest)
    assert str(caught.value) == f"the custom field <{name}> is null"


def test_without_any_fields_the_first_is_named() -> None:
    with pytest.raises(HeaderError, match="the custom field <topic> is null"):
        Example.decode(None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queueId", "x"),
        ("queueId", ""),
        ("queueId", "1.5"),
        ("queueId", "2147483648"),
        ("queueId", "-2147483649"),
        ("bornTime", "9223372036854775808"),
        ("bornTime", "-9223372036854775809"),
        ("bornTime", "9" * 5000),
        ("ratio", "x"),
        ("nickName", "-"),
        ("queueId", " 1"),
        ("queueId", "1_0"),
        ("queueId", "\u00b2"),
        ("bornTime", "1 "),
        ("bornTime", "1_000"),
        ("bornTime", "1\n"),
    ],
)
def test_wrong_numbers_are_named(name: str, text: str) -> None:
    with pytest.raises(HeaderError) as caught:
        Example.decode({**SMALLEST, name: text})
    assert str(caught.value) == f'the custom field <{name}>: For input string: "{text[:80]}"'


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queueId", 2**31 - 1),
        ("queueId", -(2**31)),
        ("bornTime", 2**63 - 1),
        ("bornTime", -(2**63)),
    ],
)
def test_numbers_at_their_bounds(name: str, value: int) -> None:
    example = Example.decode({**SMALLEST, name: str(value)})
    assert example.encode()[name] == str(value)


@pytest.mark.parametrize(("text", "value"), [("+5", 5), ("-0", 0), ("007", 7), ("\u0663", 3)])
def test_numbers_are_read_as_java_reads_them(text: str, value: int) -> None:
    example = Example.decode({**SMALLEST, "queueId": text, "bornTime": text})
    assert (example.queue_id, example.born_time) == (value, value)


@given(st.dictionaries(st.sampled_from([each.wire for each in Example.fields]), st.text()))
def test_anything_is_a_header_or_a_header_error(ext_fields: dict[str, str]) -> None:
    try:
        example = Example.decode(ext_fields)
    except HeaderError:
        return
    assert {"topic", "queueId", "ok", "clientID"} <= set(ext_fields)
    assert example.topic == ext_fields["topic"]


def test_headers_are_frozen_and_without_dict() -> None:
    example = Example.decode(SMALLEST)
    with pytest.raises(dataclasses.FrozenInstanceError):
        example.topic = "other"  # type: ignore[misc]
    assert not hasattr(example, "__dict__")


def test_no_header() -> None:
    assert NoHeader().encode() == {}
    assert NoHeader.decode({"any": "thing"}) == NoHeader.decode(None) == NoHeader()


def test_a_field_of_another_type_is_refused() -> None:
    @header("example.Wrong")
    class Wrong(Header):
        items: list[str]

    with pytest.raises(TypeError, match="a header field cannot be"):
        _ = Wrong.fields


@pytest.mark.parametrize(
    ("name", "wire"), [("topic", "topic"), ("queue_id", "queueId"), ("body_crc32", "bodyCrc32")]
)
def test_camel_case(name: str, wire: str) -> None:
    assert camel_case(name) == wire
