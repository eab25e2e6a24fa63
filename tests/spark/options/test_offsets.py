# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    check_order,
    ending_offsets,
    queue_times,
    starting_offsets,
)
from txrocketmq.spark.options.option_values import EVERY_BROKER


def test_words() -> None:
    assert starting_offsets("startingOffsets", " Earliest ") == Offsets(EARLIEST)
    assert starting_offsets("startingOffsets", "latest") == Offsets(LATEST)
    assert ending_offsets("endingOffsets", "latest") == Offsets(LATEST)


def test_offsets_of_queues() -> None:
    found = starting_offsets("startingOffsets", '{"t": {"a": {"0": 23, "1": -1}}}')
    assert found.of_queue("t", "a", 0) == 23
    assert found.of_queue("t", "a", 1) == LATEST
    assert found.of_queue("t", "a", 2) == EARLIEST, "queues not named begin at their earliest"
    assert ending_offsets("endingOffsets", '{"t": {"a": {"0": 3}}}').of_queue("t", "b", 0) == LATEST
    assert found.brokers() == {"a"}
    assert found.of_log("a") == EARLIEST


def test_offsets_on_each_broker_as_for_kafka() -> None:
    """One that is given for a broker comes before one for each."""
    text = '{"t": {"0": 23, "1": -1, "a": {"0": 5, "2": 7}}, "u": {"b": {"0": 1}}}'
    found = starting_offsets("startingOffsets", text)
    assert [found.of_queue("t", "a", n) for n in range(4)] == [5, LATEST, 7, EARLIEST]
    assert [found.of_queue("t", "b", n) for n in range(3)] == [23, LATEST, EARLIEST]
    assert found.brokers() == {"a", "b"}
    assert found.queues_on("a") == {("t", 0), ("t", 1), ("t", 2)}
    assert found.queues_on("b") == {("t", 0), ("t", 1), ("u", 0)}
    assert queue_times("o", '{"t": {"0": 5}}') == {("t", EVERY_BROKER, 0): 5}


def test_offsets_on_each_broker_are_in_order() -> None:
    start = starting_offsets("startingOffsets", '{"t": {"0": 23}}')
    check_order(start, ending_offsets("endingOffsets", '{"t": {"0": 23}}'))
    with pytest.raises(OptionError, match="for queue 0 of t on any broker: 22 and 23"):
        check_order(start, ending_offsets("endingOffsets", '{"t": {"0": 22}}'))


def test_offsets_of_logs() -> None:
    found = starting_offsets("startingOffsets", '{"log": {"a": 1073741824}}')
    assert found.of_log("a") == 1 << 30
    assert found.of_log("b") == EARLIEST
    assert found.brokers() == {"a"}


def test_a_topic_may_be_called_log() -> None:
    found = starting_offsets("startingOffsets", '{"log": {"a": {"0": 5}}}')
    assert found.of_queue("log", "a", 0) == 5
    assert not found.logs


@given(
    st.dictionaries(
        st.tuples(
            st.text(max_size=5),
            st.text(max_size=5).filter(lambda name: name != EVERY_BROKER),
            st.integers(0, 99),
        ),
        st.integers(LATEST, (1 << 63) - 1),
        min_size=1,
    )
)
def test_every_queue_comes_back(queues: dict[tuple[str, str, int], int]) -> None:
    value: dict[str, dict[str, dict[str, int]]] = {}
    for (topic, broker, number), at in queues.items():
        value.setdefault(topic, {}).setdefault(broker, {})[str(number)] = at
    assert ending_offsets("endingOffsets", json.dumps(value)).queues == queues


@pytest.mark.parametrize(
    "text",
    [
        "first",
        "{",
        "[]",
        "{}",
        '{"log": {}}',
        '{"t": 5}',
        '{"t": {"a": 5}}',
        '{"t": {"a": {}}}',
        '{"t": {"a": {"x": 1}}}',
        '{"t": {"a": {"0": 1.5}}}',
        '{"t": {"a": {"0": true}}}',
        '{"t": {"a": {"0": -3}}}',
        '{"log": {"a": "0"}}',
        '{"log": {"a": 9223372036854775808}}',
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        starting_offsets("startingOffsets", text)


@pytest.mark.parametrize("text", ["earliest", '{"t": {"a": {"0": -2}}}', '{"log": {"a": -2}}'])
def test_nothing_ends_at_its_beginning(text: str) -> None:
    with pytest.raises(OptionError, match="endingOffsets: a read cannot end"):
        ending_offsets("endingOffsets", text)


def test_times_of_queues() -> None:
    assert queue_times("o", '{"t": {"b": {"0": 5, "1": 0}}}') == {
        ("t", "b", 0): 5,
        ("t", "b", 1): 0,
    }


@pytest.mark.parametrize(
    "text", ["latest", "{}", "[]", '{"t": 5}', '{"t": {"b": {"0": -1}}}',
             '{"t": {"b": {"0": "5"}}}', '{"t": {"b": {"x": 5}}}', '{"t": {"b": {}}}'],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="o"):
        queue_times("o", text)
