# SPDX-License-Identifier: Apache-2.0
"""A text is read as pair by pair, whatever was learned of the texts before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.intake import plain_properties as module
from txrocketmq.broker.intake.plain_properties import PlainProperties, PlainValues

TOUCHED = "DELAY"
NAMES = st.sampled_from(["UNIQ_KEY", "KEYS", "TAGS", "WAIT", "own", "UNIQ", TOUCHED, "", "\u00e9"])
VALUES = st.sampled_from(["v", "two words", "", "\u00e9", "UNIQ_KEY", "true"])
TEXTS = st.one_of(
    st.builds(
        lambda pairs, end: "\x02".join(f"{name}\x01{value}" for name, value in pairs) + end,
        st.lists(st.tuples(NAMES, VALUES), max_size=5),
        st.sampled_from(["", "\x02", "\x01", "\x02\x02"]),
    ),
    st.lists(st.sampled_from(["UNIQ_KEY", "KEYS", "WAIT", "v", "\x01", "\x02"]), max_size=12).map(
        "".join
    ),
)


def expected(text: str) -> PlainValues | None:
    pairs = [pair.split("\x01") for pair in text.split("\x02")]
    if pairs[-1] == [""]:
        pairs.pop()
    names = [pair[0] for pair in pairs]
    if any(len(pair) != 2 or not pair[0] or not pair[1] for pair in pairs):
        return None
    if TOUCHED in names or len(set(names)) < len(names):
        return None
    values = dict(pairs)
    return (
        values.get("UNIQ_KEY"), values.get("KEYS"), values.get("TAGS"), values.get("WAIT"),
    )  # fmt: skip


@given(st.lists(st.tuples(TEXTS, st.integers(1, 3)), max_size=8))
def test_what_was_learned_changes_no_answer(texts: list[tuple[str, int]]) -> None:
    plain = PlainProperties({TOUCHED})
    for text, times in texts:
        for _ in range(times):
            assert plain.of(text) == expected(text)


@pytest.mark.parametrize(
    "text",
    [
        "UNIQ_KEY\x01k\x02WAIT\x01true\x01",
        "UNIQ_KEY\x01k\x02WAIT\x01",
        "UNIQ_KEY\x01\x02WAIT\x01true",
        "UNIQ_KEY\x01\x01k\x02WAIT",
        "UNIQ_KEY\x02k\x01WAIT\x01true",
        "UNIQ_KEY\x01k\x02WAIT\x01true\x02\x02",
        "UNIQ_KEY\x01k\x02UNIQ_KEY\x01k",
        "DELAY\x011\x02WAIT\x01true",
    ],
)
def test_what_looks_like_a_known_text_is_not_taken_for_one(text: str) -> None:
    plain = PlainProperties({TOUCHED})
    assert plain.of("UNIQ_KEY\x01k\x02WAIT\x01true") == ("k", None, None, "true")
    assert plain.of(text) is None


def test_names_are_learned_once_and_then_only_now_and_then() -> None:
    plain = PlainProperties(())
    plain.of("a\x01x\x02b\x01y")
    learned = plain._known[2]
    assert learned.beginnings == ("a\x01", "b\x01")
    for _ in range(module.MISSES_TO_LEARN - 1):
        plain.of("b\x01y\x02KEYS\x01k")
        assert plain._known[2] is learned
    plain.of("b\x01y\x02KEYS\x01k")
    assert plain._known[2] == (("b\x01", "KEYS\x01"), -1, 1, -1, -1)


def test_there_is_a_limit() -> None:
    plain = PlainProperties(())
    for count in range(module.MAX_PAIRS + 9):
        assert plain.of("\x02".join(f"n{n}\x01v" for n in range(count))) == (None,) * 4
    assert len(plain._known) == module.MAX_PAIRS
