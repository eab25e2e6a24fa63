# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.primitives.plain_text import plain, shortened


def test_what_a_terminal_obeys_is_escaped() -> None:
    assert plain("Grüße, 你好") == "Grüße, 你好"
    assert plain("a\x1b[31m\r\nb\x9b\x00\u202e\ud800") == r"a\x1b[31m\r\nb\x9b\x00\u202e\ud800"
    assert plain("a\n\tb\x1b", keep="\n") == "a\n\\tb\\x1b"


@given(st.text())
def test_everything_else_is_printable(text: str) -> None:
    assert plain(text).isprintable()
    assert plain(text, keep="\n").replace("\n", "").isprintable()
    plain(text).encode()


def test_long_texts_are_cut_and_say_so() -> None:
    assert [shortened("abc", most) for most in (4, 3, 2, 0)] == [
        "abc", "abc", "ab... (3 characters)", "... (3 characters)",
    ]  # fmt: skip
