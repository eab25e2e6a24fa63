# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message.tags import (
    SubscriptionData,
    SubscriptionError,
    build_subscription_data,
    java_string_hash,
    java_string_hashes,
    tags_code,
)

# Printed by String.hashCode() of a JDK.
BY_JAVA = {
    "": 0,
    "a": 97,
    "TagA": 2598919,
    "消息 🚀": 862979260,
    "topic#key": 386934027,
    "\ud83d": 55357,
    "polygenelubricants": -2147483648,
    "é": 233,
}


def plain_hash(text: str) -> int:
    """The definition, over UTF-16 code units."""
    packed = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(packed), 2):
        value = (31 * value + int.from_bytes(packed[at : at + 2], "big")) % 2**32
    return value - 2**32 if value >= 2**31 else value


@pytest.mark.parametrize("text", BY_JAVA)
def test_hash_as_java(text: str) -> None:
    assert java_string_hash(text) == BY_JAVA[text]


@given(st.text(st.characters(), max_size=50))
def test_hash_is_of_utf16_code_units(text: str) -> None:
    assert java_string_hash(text) == plain_hash(text)


@pytest.mark.parametrize("length", [31, 32, 33, 127, 128, 511, 512, 513, 5000])
@pytest.mark.parametrize("character", ["\x7f", "z", "息", "🚀"])
def test_hash_of_long_texts(length: int, character: str) -> None:
    assert java_string_hash(character * length) == plain_hash(character * length)


ASCII = st.text(st.characters(max_codepoint=127), max_size=300)


@given(st.lists(ASCII, max_size=10))
def test_hashes_of_many(texts: list[str]) -> None:
    assert java_string_hashes(texts) == [plain_hash(text) for text in texts]


@given(st.lists(st.text(st.characters(), max_size=5), max_size=10))
def test_hashes_of_many_of_any_alphabet(texts: list[str]) -> None:
    assert java_string_hashes(texts) == [plain_hash(text) for text in texts]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 8, 16, 17, 32, 64, 128, 255, 256, 257])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200])
def test_hashes_of_the_greatest_values(length: int, count: int) -> None:
    assert java_string_hashes(["\x7f" * length] * count) == [plain_hash("\x7f" * length)] * count


def test_tags_code_is_0_without_tags() -> None:
    assert tags_code(None) == tags_code("") == 0
    assert tags_code("TagA") == 2598919


# What FilterAPI.build of both versions answers: sub_string and tags.
AS_JAVA = [
    (None, "*", set()),
    ("", "*", set()),
    ("*", "*", set()),
    (" * ", " * ", {"*"}),
    ("a||b", "a||b", {"a", "b"}),
    ("a|||b", "a|||b", {"a", "|b"}),
    ("|| ", "|| ", set()),
    ("a || \u3000b||", "a || \u3000b||", {"a", "\u3000b"}),
    ("||a", "||a", {"a"}),
    (" ", " ", set()),
]


@pytest.mark.parametrize("expression_type", [None, "TAG"])
@pytest.mark.parametrize(("expression", "sub_string", "tags"), AS_JAVA)
def test_build_as_java(
    expression: str | None, sub_string: str, tags: set[str], expression_type: str | None
) -> None:
    built = build_subscription_data("T", expression, expression_type, 5)
    assert built == SubscriptionData(
        "T", sub_string, frozenset(tags), frozenset(map(java_string_hash, tags)), 5, "TAG"
    )


def test_build_of_other_types_keeps_the_expression() -> None:
    built = build_subscription_data("T", "a > 5 || b", "SQL92")
    assert built == SubscriptionData("T", "a > 5 || b", expression_type="SQL92")


@pytest.mark.parametrize(
    ("expression", "expression_type", "reason"),
    [
        ("||", None, "subString split error"),
        ("||||", "TAG", "subString split error"),
        (None, "SQL92", "Expression can't be null! SQL92"),
        ("", "SQL92", "Expression can't be null! SQL92"),
    ],
)
def test_build_refuses(expression: str | None, expression_type: str | None, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        build_subscription_data("T", expression, expression_type)


def test_accepts_tags() -> None:
    some = build_subscription_data("T", "a||b")
    assert some.accepts_tags("a")
    assert not some.accepts_tags("c")
    assert not some.accepts_tags(None)
    assert not some.accepts_all
    every = build_subscription_data("T", "*")
    assert every.accepts_tags(None)
    assert every.accepts_all
    # "Aa" and "BB" have one hash: the broker passes both, the client tells them apart.
    collision = build_subscription_data("T", "Aa")
    assert tags_code("BB") in collision.code_set
    assert not collision.accepts_tags("BB")


JSON = {
    "classFilterMode": False,
    "codeSet": [97, 98],
    "expressionType": "TAG",
    "subString": "a||b",
    "subVersion": 5,
    "tagsSet": ["a", "b"],
    "topic": "T",
}


def test_json_round_trip() -> None:
    built = build_subscription_data("T", "b||a", sub_version=5)
    assert SubscriptionData.from_json(JSON | {"subString": "b||a"}) == built
    assert built.to_json() == JSON | {"subString": "b||a"}


def test_from_json_takes_defaults_and_ignores_unknown_fields() -> None:
    sparse = {"topic": "T", "tagsSet": None, "expressionType": None, "filterClassSource": "x"}
    assert SubscriptionData.from_json(sparse) == SubscriptionData("T")


def test_the_version_may_be_a_text() -> None:
    """The C++ client sends it so."""
    assert SubscriptionData.from_json(JSON | {"subVersion": "-5"}).sub_version == -5


def test_the_codes_may_be_texts() -> None:
    """The Go client sends them so."""
    codes = SubscriptionData.from_json(JSON | {"codeSet": ["97", "-98"]}).code_set
    assert codes == frozenset({97, -98})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "not a JSON object"),
        (JSON | {"topic": 5}, "topic of a subscription must be str: 5"),
        (JSON | {"subVersion": "5x"}, "subVersion of a subscription must be int: '5x'"),
        (JSON | {"subVersion": True}, "subVersion of a subscription must be int: True"),
        (JSON | {"classFilterMode": 0}, "classFilterMode of a subscription must be bool: 0"),
        (JSON | {"tagsSet": ["a"] * 10_001}, "10001 items, and 10000 are allowed"),
        (JSON | {"codeSet": 5}, "codeSet of a subscription must be a list of int: 5"),
        (JSON | {"codeSet": [1, "x"]}, "codeSet of a subscription must be a list of int"),
        (JSON | {"tagsSet": [None]}, "tagsSet of a subscription must be a list of str"),
    ],
)
def test_from_json_names_what_is_wrong(value: Any, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        SubscriptionData.from_json(value)
