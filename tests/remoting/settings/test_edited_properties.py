# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.settings.config_file import ConfigError, read_properties, write_properties
from txrocketmq.remoting.settings.edited_properties import edited

TEXTS = st.text(st.sampled_from("ab=: \t#!\\\n\r\fé\u2028"), max_size=30)
CHANGES = st.dictionaries(st.sampled_from(["a", "b", "ab", "a b", "#"]), TEXTS, max_size=3)


def test_all_else_stays_as_it_is() -> None:
    text = "# a comment\n\n  name : one \\\n   more\n! and another\nother=2\n"
    assert edited(text, {"name": "x", "new": "y"}) == (
        "# a comment\n\nname=x\n! and another\nother=2\nnew=y\n"
    )
    assert edited(text, {}) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a=1\n"),
        ("b=2", "b=2\na=1\n"),
        ("b=2\r\na=0\r\n", "b=2\r\na=1\r\n"),
        ("b=2\r\n", "b=2\r\na=1\r\n"),
        ("a=0\nb=2\na=3\n", "a=1\nb=2\na=1\n"),
        ("# a comment \\\na=0\n", "# a comment \\\na=1\n"),
        ("\\u0061=0\n", "a=1\n"),
        ("a\n", "a=1\n"),
    ],
)
def test_a_value_is_changed_where_it_stands(text: str, expected: str) -> None:
    assert edited(text, {"a": "1"}) == expected


def test_a_text_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError):
        edited("a=\\u12\n", {"b": "1"})


@given(TEXTS, CHANGES)
def test_it_reads_as_the_same_with_the_changes(text: str, changes: dict[str, str]) -> None:
    before = read_properties(text)
    read_back = read_properties(write_properties(changes))
    assert read_properties(edited(text, changes)) == {**before, **read_back}
