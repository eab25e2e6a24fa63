# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.predicates import COMPARE, holds
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.record import MAGIC_V1, build_record
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.options.conditions import Conditions
from txrocketmq.spark.options.where import INTEGERS, TEXTS, TIMES, Predicate, parse_where

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOST = {"ip": b"\x7f\0\0\1", "port": 1}


def _records(*changes: dict[str, Any]) -> Records:
    starts, data = [], b""
    for change in changes:
        starts.append(len(data))
        fields = {
            "magic": MAGIC_V1, "body_crc": 0, "queue_id": 0, "flag": 0, "queue_offset": 0,
            "physical_offset": len(data), "sys_flag": 0, "born_timestamp": 0, "born_host": HOST,
            "store_timestamp": 0, "store_host": HOST, "reconsume_times": 0,
            "prepared_transaction_offset": 0, "body": b"", "topic": b"t", "properties": b"",
        }  # fmt: skip
        data += build_record(fields | change)
    return Records(np.frombuffer(data, np.uint8), np.array(starts, np.int64))


def _of(text: str) -> Conditions:
    return Conditions.of(parse_where("where", text))


def _passing(text: str, *changes: dict[str, Any]) -> list[bool]:
    mask = _of(text).mask(_records(*changes))
    return [True] * len(changes) if mask is None else mask.tolist()


def test_texts_are_intersected() -> None:
    found = _of("topic IN ('a', 'b') AND topic = 'b'")
    assert found.allows("topic", "b")
    assert not found.allows("topic", "a")
    assert found.allows("tags", "anything")


def test_patterns_narrow_by_what_is_before_their_wildcards() -> None:
    found = _of("topic LIKE 'Or_er%' AND topic LIKE 'O%' AND tags LIKE '%x'")
    assert found.prefixes == {"topic": "Or"}
    assert found.allows("topic", "Orders")
    assert not found.allows("topic", "Other")
    assert found.allows("tags", "anything")
    assert not _of("topic LIKE 'O%' AND topic = 'a'").allows("topic", "Orders")


def test_what_cannot_narrow_is_left_to_the_rows() -> None:
    found = _of("topic != 'a' AND tags IS NULL AND topic > 'b' AND queueId != 3")
    assert not found.texts
    assert not found.prefixes
    assert not found.numbers
    assert len(found.predicates) == 4
    assert Conditions().mask(_records({})) is None


@pytest.mark.parametrize("operator", COMPARE)
def test_numbers_pass_exactly(operator: str) -> None:
    changes = [{"queue_id": number} for number in range(5)]
    exact = [COMPARE[operator](number, 2) or operator == "!=" for number in range(5)]
    assert _passing(f"queueId {operator} 2", *changes) == exact
    times = [{"store_timestamp": number} for number in range(5)]
    if operator != "!=":
        moment = "'1970-01-01T00:00:00.002Z'"
        assert _passing(f"storeTimestamp {operator} {moment}", *times) == exact


def test_lists_of_numbers_become_ranges() -> None:
    changes = [{"queue_id": number} for number in range(6)]
    passing = _passing("queueId IN (4, 2)", *changes)
    assert passing == [False, False, True, True, True, False]


@pytest.mark.parametrize("value", [1 << 63, 1 << 70, -(1 << 70)])
def test_numbers_beyond_64_bits(value: int) -> None:
    assert _passing(f"queueOffset = {value}", {}) == [False]
    assert _passing(f"queueOffset < {value}", {}) == [value > 0]
    assert _passing(f"queueOffset > {value}", {}) == [value < 0]


def test_messages_of_an_inner_batch_may_have_other_offsets() -> None:
    batch = {"sys_flag": MessageSysFlag.INNER_BATCH, "queue_offset": 5}
    assert _passing("queueOffset = 7", batch, {"queue_offset": 5}) == [True, False]
    assert _passing("queueId = 7", batch) == [False]


_WORDS = st.sampled_from(("", "a", "ab", "b", "%", "_", "a%", "é", "a\nb"))
_NUMBERS = st.sampled_from((-(1 << 63), -1, 0, 1, 2, (1 << 63) - 1))
_LITERALS = st.sampled_from((-(1 << 70), -(1 << 63), -1, 0, 1, 2, (1 << 63) - 1, 1 << 63))
_MOMENTS = st.sampled_from((-1, 0, 1, 2, 1_763_600_000_000))


@st.composite
def _predicates(draw: st.DrawFn, column: str) -> Predicate:
    literals = _WORDS if column in TEXTS else _MOMENTS if column in TIMES else _LITERALS
    operators = [*COMPARE, "IN", "IS NULL", "IS NOT NULL", *(["LIKE"] if column in TEXTS else [])]
    operator = draw(st.sampled_from(operators))
    if operator.endswith("NULL"):
        return Predicate(column, operator)
    many = operator == "IN"
    return Predicate(
        column, operator, tuple(draw(st.lists(literals, min_size=1, max_size=3 if many else 1)))
    )


def _of_column(column: str) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    if column in TEXTS:
        return pa.string(), _WORDS
    if column in TIMES:
        return pa.timestamp("us", "UTC"), _MOMENTS.map(
            lambda ms: EPOCH + timedelta(milliseconds=ms)
        )
    return pa.int64(), _NUMBERS


@given(data=st.data())
def test_rows_are_those_that_fulfil_all_conditions(data: st.DataObject) -> None:
    """And a record that does is not left out before."""
    columns = data.draw(
        st.lists(st.sampled_from((*TEXTS, *INTEGERS, *TIMES)), min_size=1, max_size=3, unique=True)
    )
    count = data.draw(st.integers(0, 5))
    arrays = []
    for column in columns:
        kind, values = _of_column(column)
        nulls = st.nothing() if column in INTEGERS else st.none()
        drawn = data.draw(st.lists(values | nulls, min_size=count + 1, max_size=count + 1))
        arrays.append(pa.array(drawn, kind)[1:])  # not at the beginning of its buffers
    batch = pa.RecordBatch.from_arrays(arrays, columns)
    asked = [data.draw(_predicates(column)) for column in columns]
    expected = [row for row in batch.to_pylist() if all(holds(each, row) for each in asked)]
    conditions = Conditions.of(asked)
    assert conditions.rows(batch).to_pylist() == expected
    for row in expected:
        for column in columns:
            if column in TEXTS and row[column] is not None:
                assert conditions.allows(column, row[column])
