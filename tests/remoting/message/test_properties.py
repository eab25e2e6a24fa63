# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message import properties
from txrocketmq.remoting.message.properties import (
    check_user_property,
    decode_properties,
    encode_properties,
    pick_properties,
)

# What both versions of MessageDecoder.string2messageProperties answer, with = for \x01, ; for \x02.
AS_JAVA = {
    "": {},
    "a=b": {"a": "b"},
    "a=b;": {"a": "b"},
    "a=b;c": {"a": "b"},
    "a=;c=d": {"c": "d"},
    "=b;c=d": {"c": "d"},
    "a=b=c;x=y": {"a": "b=c", "x": "y"},
    ";;a=b;;": {"a": "b"},
    "ab;c=d": {"c": "d"},
    "a=b;a=c": {"a": "c"},
    "a==": {"a": "="},
    "a==b": {"a": "=b"},
    "abc;=x=": {},
    "===": {},
}


@pytest.mark.parametrize("text", AS_JAVA)
def test_decode_as_java(text: str) -> None:
    expected = {
        name: value.replace("=", "\x01").replace(";", "\x02")
        for name, value in AS_JAVA[text].items()
    }
    assert decode_properties(text.replace("=", "\x01").replace(";", "\x02")) == expected


@given(st.text(st.sampled_from("ab\x01\x02")) | st.text(st.sampled_from("a\x01\x02"), max_size=9))
def test_decode_is_the_same_pair_by_pair(text: str) -> None:
    expected = {}
    for pair in text.split("\x02"):
        name, _, value = pair.partition("\x01")
        if name and value:
            expected[name] = value
    assert list(decode_properties(text).items()) == list(expected.items())


def test_encode_ends_every_pair() -> None:
    assert encode_properties({}) == ""
    assert encode_properties({"a": "b", "消息": "🚀"}) == "a\x01b\x02消息\x01🚀\x02"


WORDS = st.text(st.characters(exclude_characters="\x01\x02"), min_size=1)


@given(st.dictionaries(WORDS, WORDS))
def test_round_trip_with_and_without_the_last_separator(values: dict[str, str]) -> None:
    text = encode_properties(values)
    assert decode_properties(text) == values
    assert decode_properties(text.removesuffix("\x02")) == values


@given(st.text(st.sampled_from("ab\x01\x02")))
def test_decode_never_fails_and_is_stable(text: str) -> None:
    values = decode_properties(text)
    assert all(values)
    assert all(values.values())
    assert decode_properties(encode_properties(values)) == values


def test_what_is_no_text_is_not_encoded() -> None:
    wrong: dict[Any, Any] = {"a": "1", "n": 5, 6: "x"}
    with pytest.raises(TypeError, match=r"must be str, not \{'n': 5, 6: 'x'\}"):
        encode_properties(wrong)
    assert encode_properties({}) == ""
    for name, value in (("n", 5), (5, "n")):
        with pytest.raises(TypeError, match="name and value of a property must be str, not 5"):
            check_user_property(name, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (properties.KEYS, "x", "used by system"),
        (properties.TIMER_OUT_MS, "1", "used by system"),
        ("", "x", "null or blank"),
        (" ", "x", "null or blank"),
        ("x", "", "null or blank"),
        ("x", "\t", "null or blank"),
        ("a\x01b", "x", "separator"),
        ("a", "x\x02", "separator"),
    ],
)
def test_what_users_may_not_set(name: str, value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_user_property(name, value)


def test_what_users_may_set() -> None:
    check_user_property("colour", "red")
    # Not in MessageConst.STRING_HASH_SET: applications do set it.
    check_user_property(properties.SHARDING_KEY, "order-7")


def test_system_properties_are_those_of_5_4() -> None:
    assert len(properties.SYSTEM_PROPERTIES) == 53
    assert properties.TRANSACTION_ID not in properties.SYSTEM_PROPERTIES


@given(
    st.text(st.sampled_from("ab\x01\x02"), max_size=30),
    st.sets(st.text(st.sampled_from("ab"), min_size=1, max_size=2)),
)
def test_picking_some_gives_what_all_have(text: str, wanted: set[str]) -> None:
    everything = decode_properties(text)
    picked = pick_properties(text, wanted)
    assert {name: picked.get(name) for name in wanted} == {
        name: everything.get(name) for name in wanted
    }
