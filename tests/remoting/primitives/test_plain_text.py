# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.primitives.plain_text import plain, plain_error, plain_json, shortened


def test_what_a_terminal_obeys_is_escaped() -> None:
    assert plain("Grüße, 你好") == "Grüße, 你好"
    assert plain("a\x1b[31m\r\nb\x9b\x00\u202e\ud800") == r"a\x1b[31m\r\nb\x9b\x00\u202e\ud800"
    assert plain("a\n\tb\x1b", keep="\n") == "a\n\\tb\\x1b"


@given(st.text())
def test_everything_else_is_printable(text: str) -> None:
    assert plain(text).isprintable()
    assert plain(text, keep="\n").replace("\n", "").isprintable()
    plain(text).encode()


def test_an_error_keeps_its_lines() -> None:
    assert plain_error(ValueError("two\nlines\x1b[2J")) == "two\nlines\\x1b[2J"


def test_json_escapes_what_it_need_not() -> None:
    assert plain_json('{"a":"\x7f\x9b\u202e\U000e0001 Grüße"}') == (
        r'{"a":"\u007f\u009b\u202e\udb40\udc01 Grüße"}'
    )


@given(st.dictionaries(st.text(), st.text()), st.sampled_from([None, 2]))
def test_json_means_the_same(value: dict[str, str], indent: int | None) -> None:
    text = plain_json(json.dumps(value, ensure_ascii=False, indent=indent))
    assert json.loads(text) == value
    assert re.sub("\n", "", text).isprintable()


def test_long_texts_are_cut_and_say_so() -> None:
    assert [shortened("abc", most) for most in (4, 3, 2, 0)] == [
        "abc", "abc", "ab... (3 characters)", "... (3 characters)",
    ]  # fmt: skip
