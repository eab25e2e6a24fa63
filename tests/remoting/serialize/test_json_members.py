# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.serialize import json_members
from txrocketmq.remoting.serialize.json import encode_body
from txrocketmq.remoting.serialize.json_members import SHORT, members, taking
from txrocketmq.remoting.serialize.json_scanner import JsonError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def taken(text: str, *path: str) -> tuple[dict[str, Any], Any]:
    """The members, and the value of what is left of the text."""
    steps, found = members(text, path), {}
    try:
        while True:
            name, value = next(steps)
            found[name] = value
    except StopIteration as end:
        return found, json.loads(end.value)


@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.sampled_from([None, 1]),
)
def test_one_object_is_read_by_itself_wherever_it_stands(
    around: dict[str, Any], table: dict[str, Any], indent: int | None
) -> None:
    whole = {"before": around, "its": {**around, "wanted": table, "after": 1}, **around}
    whole["its"] = {**around, "wanted": table, "after": 1}
    found, rest = taken(json.dumps(whole, indent=indent), "its", "wanted")
    assert found == table
    whole["its"]["wanted"] = {}
    assert rest == whole


@pytest.mark.parametrize(
    "text", ["{}", '{"a":1}', '{"a":{}}', '{"a":{"b":null}}', '{"a":{"b":[1]}}', "[1]", "7"]
)
def test_where_there_is_no_such_object_nothing_is_taken(text: str) -> None:
    assert taken(text, "a", "b") == ({}, json.loads(text))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"a":{[1]:2}}', 6),
        ('{"a":{"b" 2}}', 10),
        ('{"a":{"b":}}', 10),
        ('{"a":{"b":1 "c":2}}', 12),
        ('{"a":{"b":1,}}', 12),
        ('{"a":{"b":1', 11),
        ('{"a":{"b', 6),
        ('{"a":{"b":' + "[" * 100_000, 10),
    ],
)
def test_what_is_no_json_is_refused(text: str, position: int) -> None:
    with pytest.raises(JsonError) as refused:
        taken(text, "a")
    assert refused.value.position == position


def test_short_members_are_read_as_fastjson_does() -> None:
    text = """{'x':1,b:2,"a":{1:2,'c':{0:[1],d:'e'},"f":3}}"""
    steps = members(text, ("a",))
    found = dict(steps)
    assert found == {"1": 2, "c": {0: [1], "d": "e"}, "f": 3}


def test_a_long_member_has_to_be_plain() -> None:
    long = "[" + "1," * SHORT + "1]"
    assert taken(f'{{"a":{{"b":{long}}}}}', "a")[0] == {"b": json.loads(long)}
    with pytest.raises(JsonError):
        taken(f'{{"a":{{"b":{{1:{long}}}}}}}', "a")


@given(st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)))
def test_maps_of_numbers_are_read_at_once(numbers: dict[int, int]) -> None:
    """The tables of consumers' offsets consist of them."""
    written = encode_body({"a": {"T@G": numbers, "b": 1}}).decode()
    steps = members(written, ("a",))
    assert dict(steps) == {"T@G": numbers, "b": 1}
    many = {number: number for number in range(5000)}
    assert dict(members(encode_body({"a": {"T@G": many}}).decode(), ("a",))) == {"T@G": many}


@pytest.mark.parametrize("wrong", ["{1:2]", "{1:2,}", "{1:}", "{1 2}", "{,1:2}", "{1:2,,3:4}"])
def test_what_only_looks_like_a_map_of_numbers_is_refused(wrong: str) -> None:
    with pytest.raises(JsonError):
        dict(members(f'{{"a":{{"b":{wrong}}}}}', ("a",)))


def test_no_member_costs_more_because_others_come_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error that says its place counts the lines of the text before it."""
    looked_at: list[int] = []
    decode = json_members._decode

    def counting(text: str, at: int = 0) -> tuple[Any, int]:
        try:
            return decode(text, at)
        except ValueError:
            looked_at.append(at)
            raise

    monkeypatch.setattr(json_members, "_decode", counting)
    text = '{"a":{' + ",".join(f'"{number}":{{b:1}}' for number in range(1000)) + "}}"
    assert len(dict(members(text, ("a",)))) == 1000
    assert len(looked_at) == 1000
    assert max(looked_at) == 0


def test_a_few_members_are_taken_in_each_step() -> None:
    found = dict[str, str]()
    steps = taking('{"a":{"b":1,"c":2,"d":3},"e":4}', ("a",), found, str)
    next(steps)
    assert found == {"b": "1", "c": "2"}
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert found == {"b": "1", "c": "2", "d": "3"}
    assert end.value.value == '{"a":{},"e":4}'
