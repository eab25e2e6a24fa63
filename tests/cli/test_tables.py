# SPDX-License-Identifier: Apache-2.0
"""Tables for people and for programs."""

from __future__ import annotations

import json

import pytest

from tests.zones import in_zone
from txrocketmq.cli.tables import json_lines, json_text, table_text, time_text
from txrocketmq.client.admin.results import TrackType
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
