# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.base import (
    MOST_BYTES,
    SHORT_BYTES,
    Body,
    BodyError,
    body,
    member,
)
from txrocketmq.remoting.serialize.json_scanner import JsonError


@body("example.Part")
class Part(Body):
    name: str
    size_bytes: int = 0


@body("example.Whole")
class Whole(Body):
    text: str | None = None
    number: int = 5
    ratio: float = 1.5
    ok: bool = False
    colour: str = member(names=("RED", "GREEN"), default="RED")
    odd: int | None = member(wire="oddName", default=None)
    anything: Any = None
    part: Part | None = None
    parts: Sequence[Part] = ()
    ids: frozenset[int] = frozenset()
    queue: MessageQueue | None = None
    queues: frozenset[MessageQueue] = frozenset()
    by_name: Mapping[str, Part] = member(default_factory=dict)
    by_number: Mapping[int, Sequence[str]] = member(default_factory=dict)
    by_queue: Mapping[MessageQueue, int] = member(default_factory=dict)
    nested: Mapping[str, Mapping[int, int]] = member(default_factory=dict)
    subscription: SubscriptionData | None = None


@body("example.Child")
class Child(Part):
    age: int = 0


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
LONGS = st.integers(-(2**63), 2**63 - 1)
QUEUES = st.builds(MessageQueue, TEXTS, TEXTS, LONGS)
PARTS = st.builds(Part, name=TEXTS, size_bytes=LONGS)
WHOLES = st.builds(
    Whole,
    text=st.none() | TEXTS,
    number=LONGS,
    ratio=st.floats(-1e9, 1e9),
    ok=st.booleans(),
    colour=st.sampled_from(["RED", "GREEN"]),
    odd=st.none() | LONGS,
    anything=st.none() | TEXTS | st.lists(LONGS),
    part=st.none() | PARTS,
    parts=st.lists(PARTS, max_size=3).map(tuple),
    ids=st.frozensets(LONGS, max_size=3),
    queue=st.none() | QUEUES,
    queues=st.frozensets(QUEUES, max_size=3),
    by_name=st.dictionaries(TEXTS, PARTS, max_size=2),
    by_number=st.dictionaries(LONGS, st.lists(TEXTS).map(tuple), max_size=2),
    by_queue=st.dictionaries(QUEUES, LONGS, max_size=2),
    nested=st.dictionaries(TEXTS, st.dictionaries(LONGS, LONGS, max_size=2), max_size=2),
)


@given(WHOLES)
def test_round_trip(whole: Whole) -> None:
    assert Whole.decode(whole.encode()) == whole
    assert Whole.from_json(whole.to_json()) == whole


def test_members_are_sorted_and_none_is_left_out() -> None:
    whole = Whole(part=Part(name="n"), odd=3, ids=frozenset({2, 1}))
    assert whole.encode() == (
        b'{"byName":{},"byNumber":{},"byQueue":{},"colour":"RED","ids":[1,2],"nested":{},'
        b'"number":5,"oddName":3,"ok":false,"part":{"name":"n","sizeBytes":0},"parts":[],'
        b'"queues":[],"ratio":1.5}'
    )


def test_absent_and_null_members_have_their_defaults() -> None:
    names = [each.wire for each in Whole.members]
    assert Whole.from_json({}) == Whole.from_json(dict.fromkeys(names)) == Whole()


def test_unknown_members_are_passed_over() -> None:
    assert Part.from_json({"name": "n", "other": {}}) == Part(name="n")


def test_members_of_a_base_are_members() -> None:
    child = Child(name="n", age=3)
    assert child.encode() == b'{"age":3,"name":"n","sizeBytes":0}'
    assert Child.decode(child.encode()) == child


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("text", 5, "5"),
        ("text", True, "true"),
        ("number", "17", 17),
        ("number", "-17", -17),
        ("ratio", 3, 3.0),
        ("ratio", "0.25", 0.25),
        ("ok", "TRUE", True),
        ("ok", 1, True),
        ("ok", "false", False),
        ("colour", 1, "GREEN"),
        ("colour", "BLUE", "RED"),
        ("colour", 2, "RED"),
        ("byNumber", {"3": [1]}, {3: ("1",)}),
        ("byName", {3: {"name": "n"}}, {"3": Part(name="n")}),
        ("queue", {"topic": "t", "brokerName": "b"}, MessageQueue("t", "b", 0)),
    ],
)
def test_values_are_cast_as_fastjson_does(name: str, value: Any, read: Any) -> None:
    attribute = {"byNumber": "by_number", "byName": "by_name"}.get(name, name)
    assert getattr(Whole.from_json({name: value}), attribute) == read


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "an object is expected, not []"),
        ({"text": {}}, "text: a text is expected, not {}"),
        ({"number": "x"}, "number: a number is expected, not 'x'"),
        ({"number": 1.5}, "number: a number is expected, not 1.5"),
        ({"number": True}, "number: a number is expected, not True"),
        ({"number": 2**63}, f"number: a number is expected, not {2**63}"),
        ({"number": "9" * 100}, "number: a number is expected, not '" + "9" * 79),
        ({"ratio": "x"}, "ratio: a number is expected, not 'x'"),
        ({"ratio": False}, "ratio: a number is expected, not False"),
        ({"ok": "yes"}, "ok: true or false is expected, not 'yes'"),
        ({"ok": []}, "ok: true or false is expected, not []"),
        ({"colour": []}, "colour: one of RED, GREEN is expected, not []"),
        ({"part": 5}, "part: an object is expected, not 5"),
        ({"part": {}}, "part.name: is missing"),
        ({"parts": {}}, "parts: a list is expected, not {}"),
        ({"parts": [{"name": "n"}, {"name": []}]}, "parts[1].name: a text is expected, not []"),
        ({"parts": [None]}, "parts[0]: an object is expected, not None"),
        ({"ids": [1, "x"]}, "ids[1]: a number is expected, not 'x'"),
        ({"byName": []}, "byName: an object is expected, not []"),
        ({"byName": {"k": {}}}, "byName[k].name: is missing"),
        ({"byNumber": {"k": []}}, "byNumber[k]: a number is expected, not 'k'"),
        ({"nested": {"a": {"1": "b"}}}, "nested[a][1]: a number is expected, not 'b'"),
        ({"queue": 5}, "queue: a message queue is expected, not 5"),
        (
            {"queue": {"topic": "t"}},
            "queue: a text is expected, not None in the message queue {'topic': 't'}",
        ),
        ({"subscription": 5}, "subscription: the subscription is not a JSON object: 5"),
    ],
)
def test_errors_tell_the_way_to_them(value: Any, message: str) -> None:
    with pytest.raises(BodyError) as caught:
        Whole.from_json(value)
    assert str(caught.value) == message


def test_decoding_tells_the_class() -> None:
    with pytest.raises(BodyError) as caught:
        Whole.decode(b'{"part":{}}')
    assert str(caught.value) == "Whole.part.name: is missing"
    assert isinstance(caught.value, HeaderError)
    with pytest.raises(JsonError):
        Whole.decode(b"{")


JSON = st.recursive(
    st.none() | st.booleans() | LONGS | TEXTS | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([m.wire for m in Whole.members]) | TEXTS, inner)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([each.wire for each in Whole.members]), JSON))
def test_anything_is_a_body_or_a_body_error(value: dict[str, Any]) -> None:
    try:
        whole = Whole.from_json(value)
    except HeaderError:
        return
    assert isinstance(whole.number, int)
    whole.encode()


def test_a_member_of_another_type_is_refused() -> None:
    @body("example.Wrong")
    class Wrong(Body):
        value: complex = 0j

    with pytest.raises(TypeError, match="a member of a body cannot be"):
        _ = Wrong.members


@pytest.mark.parametrize("depth", [100, 1_015])
def test_what_is_nested_deep_is_a_body_error(depth: int) -> None:
    with pytest.raises(BodyError, match="Whole"):
        Whole.decode(b'{"text":' + b"[" * depth + b"]" * depth + b"}")


def in_steps(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    """What steps return, and how many there are."""
    count = 0
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration as end:
        return end.value, count


@given(st.dictionaries(st.sampled_from([each.wire for each in Whole.members]), JSON, max_size=4))
def test_steps_read_what_is_read_at_once(value: dict[str, Any]) -> None:
    try:
        wanted: object = Whole.from_json(value)
    except BodyError as error:
        wanted = str(error)
    try:
        found: object = in_steps(Whole.from_json_in_steps(value))[0]
    except BodyError as error:
        found = str(error)
    assert found == wanted


def test_a_long_body_is_read_in_steps() -> None:
    whole = Whole(
        part=Part(name="p"),
        parts=[Part(name=f"part {each}") for each in range(1_000)],
        queues=frozenset(MessageQueue("T", "b", each) for each in range(1_000)),
    )
    found, steps = in_steps(Whole.reading(whole.encode()))
    assert found == Whole.decode(whole.encode())
    assert steps > 100
    assert in_steps(Whole.reading(b"{text:'x'}")) == (Whole(text="x"), 0)


def test_a_long_body_has_limits() -> None:
    with pytest.raises(JsonError, match=f"more than the limit of {MOST_BYTES}"):
        in_steps(Whole.reading(b"{" + b" " * MOST_BYTES))
    with pytest.raises(JsonError, match="in so long a text"):
        in_steps(Whole.reading(b"{text:'" + b"x" * SHORT_BYTES + b"'}"))
    parts = ",".join(['{"name":"p"}'] * 16 + ["7"])
    bad = f'{{"parts":[{parts}],"text":"{"x" * SHORT_BYTES}"}}'.encode()
    with pytest.raises(BodyError, match=r"Whole.parts\[16\]: an object is expected"):
        in_steps(Whole.reading(bad))
