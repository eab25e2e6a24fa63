# SPDX-License-Identifier: Apache-2.0
"""Tables for people and for programs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zones import in_zone
from txrocketmq.cli.tables import (
    json_lines,
    json_text,
    size_text,
    table_text,
    terminal_width,
    time_text,
)
from txrocketmq.client.admin.results import TrackType
from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.remoting.protocol.body.topic import ExponentialRetryPolicy

ROWS = [
    {"name": "a", "count": 5, "rate": 1.25, "is_on": True, "more": 1},
    {"name": "long\x1b[2J", "count": 12345, "rate": None, "is_on": False, "more": 2},
]
COLUMNS = {"name": "NAME", "count": "COUNT", "rate": "IN/S", "is_on": "ON"}


def test_numbers_are_to_the_right_and_nothing_controls_a_terminal() -> None:
    assert table_text(ROWS, COLUMNS).splitlines() == [
        "NAME         COUNT  IN/S  ON",
        "a                5   1.2  yes",
        "long\\x1b[2J  12345     -  no",
    ]


LONG = [{"name": "n" * 100, "when": "2026-11-21 10:10:10.123", "all": "a b " * 9, "count": 7}]
HEADS = {"name": "NAME", "count": "THE COUNT", "when": "WHEN", "all": "ALL"}


def test_what_matters_least_is_folded_first() -> None:
    rows = [{**LONG[0], "name": "n" * 20}]
    lines = table_text(rows, HEADS, folds=("when", "all")).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split("  ")[0].strip() == "NAME"
    assert lines[1].split()[:3] == ["n" * 20, "7", "2026-11-21"]
    assert lines[2].split()[0] == "10:10:10.123"


def test_a_number_is_never_folded_but_its_head_is() -> None:
    lines = table_text([{"a": 123_456, "b": "x" * 70}], {"a": "IN FLIGHT", "b": "B"}, width=78)
    assert lines.splitlines() == ["    IN  B", "FLIGHT", f"123456  {'x' * 70}"]


texts = st.text(st.characters(exclude_categories=("C", "Z")), max_size=150)


@given(
    st.lists(st.tuples(texts, st.integers(0, 1 << 40), texts, texts), max_size=4),
    st.permutations(["name", "when", "all"]).flatmap(
        lambda names: st.integers(0, 3).map(lambda n: names[:n])
    ),
    st.integers(40, 120),
)
def test_a_table_is_never_too_wide_and_nothing_is_lost(
    values: list[tuple[str, int, str, str]], folds: list[str], width: int
) -> None:
    rows = [{"name": a, "count": n, "when": b, "all": c} for a, n, b, c in values]
    text = table_text(rows, HEADS, folds=folds, width=width)
    assert max(map(len, text.splitlines())) <= width
    shown = "".join(text.split())
    for row in rows:
        for value in row.values():
            assert set(plain(str(value))) <= set(shown)
    for row in rows:
        assert str(row["count"]) in text.split()


def test_sizes() -> None:
    sizes = [None, 0, 999, 1_000, 1_234_567, 9_999_999_999, 5e15]
    assert [size_text(each) for each in sizes] == [
        None, "0 B", "999 B", "1.0 kB", "1.2 MB", "10.0 GB", "5,000.0 TB"
    ]  # fmt: skip


def test_a_table_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "123")
    assert terminal_width() == 123


def test_a_table_without_rows_is_its_heads() -> None:
    assert table_text([], COLUMNS) == "NAME  COUNT  IN/S  ON"


def test_programs_get_all_values_one_object_a_line() -> None:
    assert [json.loads(line) for line in json_lines(ROWS).splitlines()] == ROWS
    assert json_text("\x9b2J") == r'"\u009b2J"'


def test_values_of_other_types() -> None:
    value = {"track": TrackType.CONSUMED, "policy": ExponentialRetryPolicy(), 5: 1}
    assert json.loads(json_text(value)) == {
        "track": "CONSUMED",
        "policy": {"initial": 5000, "max": 7200000, "multiplier": 2},
        "5": 1,
    }
    assert table_text([{"value": {"a": 1}}], {"value": "VALUE"}).splitlines()[1] == '{"a":1}'
    with pytest.raises(TypeError):
        json_text(object())


def test_times_are_local() -> None:
    with in_zone("UTC-2"):
        assert time_text(1_795_248_930_123) == "2026-11-21 10:15:30.123"
    assert time_text(0) is None
