# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.serialize.json import JsonError
from txrocketmq.remoting.serialize.json_members import SHORT, members

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
