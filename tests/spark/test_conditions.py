# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from tests.spark.stores import START_MS
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.record import MAGIC_V1, build_record
from txrocketmq.spark.conditions import Bounds, Conditions
from txrocketmq.spark.records import Records

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


def _passing(filters: list[Filter], *changes: dict[str, Any]) -> list[bool]:
    mask = Conditions.of(filters).mask(_records(*changes))
    return [True] * len(changes) if mask is None else mask.tolist()


def test_texts_are_intersected() -> None:
    found = Conditions.of([In(("topic",), ("a", "b")), EqualTo(("topic",), "b")])
    assert found.allows("topic", "b")
    assert not found.allows("topic", "a")
    assert found.allows("tags", "anything")


def test_what_cannot_narrow_is_ignored() -> None:
    filters = [
        IsNotNull(("topic",)),
        Not(EqualTo(("topic",), "a")),
        StringStartsWith(("topic",), "a"),
        EqualTo(("properties", "colour"), "red"),
        EqualTo(("body",), b"x"),
        EqualNullSafe(("tags",), None),
        EqualNullSafe(("queueId",), None),
        In(("queueId",), (None,)),
    ]
    assert Conditions.of(filters) == Conditions()
    assert Conditions().mask(_records({})) is None


def test_names_of_kafka_mean_the_same() -> None:
    found = Conditions.of([EqualTo(("partition",), 3), EqualTo(("key",), b"k")])
    assert found.bounds("queueId") == Bounds(3, 4)
    assert set(found.numbers) == {"queueId"}


FILTERS: dict[type[Any], Callable[[Any, Any], bool]] = {
    EqualTo: lambda a, b: a == b,
    GreaterThan: lambda a, b: a > b,
    GreaterThanOrEqual: lambda a, b: a >= b,
    LessThan: lambda a, b: a < b,
    LessThanOrEqual: lambda a, b: a <= b,
}


@pytest.mark.parametrize("kind", FILTERS)
@given(
    base_ms=st.sampled_from((0, START_MS)),
    microseconds=st.integers(0, 5000),
    stored_ms=st.integers(0, 6),
)
def test_no_record_within_the_time_is_left_out(
    kind: type[Any], base_ms: int, microseconds: int, stored_ms: int
) -> None:
    stored_ms += base_ms
    moment = EPOCH + timedelta(milliseconds=base_ms, microseconds=microseconds)
    holds = FILTERS[kind](EPOCH + timedelta(milliseconds=stored_ms), moment)
    (passes,) = _passing([kind(("storeTimestamp",), moment)], {"store_timestamp": stored_ms})
    assert passes or not holds
    if microseconds % 1000 == 0:
        assert passes == holds


@pytest.mark.parametrize("kind", FILTERS)
def test_numbers_pass_exactly(kind: type[Any]) -> None:
    changes = [{"queue_id": number} for number in range(5)]
    holds = [FILTERS[kind](number, 2) for number in range(5)]
    assert _passing([kind(("queueId",), 2)], *changes) == holds


def test_lists_of_numbers_become_ranges() -> None:
    changes = [{"queue_id": number} for number in range(6)]
    passing = _passing([In(("queueId",), (4, 2, None))], *changes)
    assert passing == [False, False, True, True, True, False]


@pytest.mark.parametrize("value", [1 << 63, 1 << 70, -(1 << 70)])
def test_numbers_beyond_64_bits(value: int) -> None:
    assert _passing([EqualTo(("queueOffset",), value)], {}) == [False]
    assert _passing([LessThan(("queueOffset",), value)], {}) == [value > 0]
    assert _passing([GreaterThan(("queueOffset",), value)], {}) == [value < 0]


def test_messages_of_an_inner_batch_may_have_other_offsets() -> None:
    batch = {"sys_flag": MessageSysFlag.INNER_BATCH, "queue_offset": 5}
    assert _passing([EqualTo(("queueOffset",), 7)], batch, {"queue_offset": 5}) == [True, False]
    assert _passing([EqualTo(("queueId",), 7)], batch) == [False]
