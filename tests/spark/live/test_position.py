# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.live.fakes import queue
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.live.position import Position

NAMES = st.text("abc%-_", min_size=1, max_size=3)
QUEUES = st.builds(MessageQueue, NAMES, NAMES, st.integers(0, 20))
OFFSETS = st.dictionaries(QUEUES, st.integers(0, 2**63 - 1), max_size=8)


def test_the_form_in_the_checkpoint() -> None:
    position = Position(
        {queue("t", "b", 10): 3, queue("t", "b", 2): 1, queue("s", "a", 0): 0},
        {queue("t", "b", 2): 0},
        {queue("s", "a", 0): 1790000000000},
    )
    assert json.dumps(position.to_json()) == (
        '{"v": 1, "topics": {"s": {"a": {"0": 0}}, "t": {"b": {"2": 1, "10": 3}}},'
        ' "new": {"t": {"b": {"2": 0}}}, "stored": {"s": {"a": {"0": 1790000000000}}}}'
    )
    assert Position({}).to_json() == {"v": 1, "topics": {}}


@given(OFFSETS, OFFSETS, OFFSETS)
def test_it_comes_back(
    after: dict[MessageQueue, int], new: dict[MessageQueue, int], stored: dict[MessageQueue, int]
) -> None:
    position = Position(after, new, stored)
    text = json.dumps(position.to_json())
    assert Position.of_json(json.loads(text)) == position
    shuffled = Position(*(dict(reversed(each.items())) for each in (after, new, stored)))
    assert json.dumps(shuffled.to_json()) == text


def test_a_position_of_an_earlier_version() -> None:
    value = {"v": 1, "topics": {"t": {"a": {"0": 3}}}, "new": {"t": {"a": {"0": 1}}}}
    assert Position.of_json(value) == Position({queue("t", "a", 0): 3}, {queue("t", "a", 0): 1})


def test_what_lies_between() -> None:
    known, new, same, anew = (queue("t", "a", number) for number in range(4))
    end = Position({known: 9, new: 7, same: 5, anew: 2}, {new: 4, anew: 0})
    assert end.ranges_from(Position({known: 3, same: 5, anew: 8})) == {
        known: (3, 9),
        new: (4, 7),
        same: (5, 5),
        anew: (0, 2),
    }


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"v": 2, "topics": {}},
        {"v": 1, "brokers": {"a": {"log": 3}}},
        {"v": 1, "topics": {"t": 3}},
        {"v": 1, "topics": {"t": {"a": {"x": 3}}}},
        {"v": 1, "topics": {"t": {"a": {"0": None}}}},
        {"v": 1, "topics": {}, "new": []},
        {"v": 1, "topics": {}, "stored": {"t": {"a": {"0": "soon"}}}},
    ],
)
def test_what_is_no_position(value: Any) -> None:
    with pytest.raises(SparkSourceError, match="the checkpoint's offset"):
        Position.of_json(value)
