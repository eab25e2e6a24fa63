# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import START_MS, Draft, StoreWriter
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.options.conditions import Bounds, Conditions
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.where import Predicate

DRAFTS = (
    Draft("Orders", 0),
    Draft("Orders", 1),
    Draft("Payments", 0),
    Draft("Orders", 1),
    Draft("SCHEDULE_TOPIC_XXXX", 2),
    Draft("Orders", 0, sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE),
    Draft("Orders", 0, sys_flag=MessageSysFlag.TRANSACTION_ROLLBACK_TYPE),
    Draft("Orders", 0, sys_flag=MessageSysFlag.TRANSACTION_COMMIT_TYPE),
    Draft("rmq_sys_x", 0),
    Draft("Payments", 70_000, v2=True, born_ipv6=True),
)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    writer = StoreWriter(tmp_path / "store")
    stored = writer.put_all(DRAFTS)
    data = b"".join(each.data for each in stored)
    return Records(
        np.frombuffer(data, np.uint8), np.array([each.physical_offset for each in stored])
    )


def _filter(broker: str = "a", **options: str) -> RecordFilter:
    return Selection.of(SourceOptions.of({"storePath": "/s", **options})).on(broker)


def _chosen(records: Records, wanted: RecordFilter) -> list[int]:
    kept = pickle.loads(pickle.dumps(wanted)).apply(records)  # noqa: S301 - as it goes to tasks
    return [records.physical_offset.tolist().index(at) for at in kept.physical_offset.tolist()]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, [0, 1, 2, 3, 7, 9]),
        ({"view": "physical"}, list(range(10))),
        ({"topic": "Payments"}, [2, 9]),
        ({"topic": "Payments,SCHEDULE_TOPIC_XXXX"}, [2, 4, 9]),
        ({"topic": "Orders", "view": "physical"}, [0, 1, 3, 5, 6, 7]),
        ({"topicPattern": ".*"}, [0, 1, 2, 3, 7, 9]),
        ({"topicPattern": ".*s", "view": "physical"}, [0, 1, 2, 3, 5, 6, 7, 9]),
        ({"assign": '{"Orders": {"a": [1]}, "Payments": [0]}'}, [1, 2, 3]),
        ({"assign": '{"Orders": {"b": [1]}}'}, []),
        ({"startingTimestamp": str(START_MS + 3)}, [2, 3, 7, 9]),
        ({"endingTimestamp": str(START_MS + 3)}, [0, 1]),
        ({"topic": "Nothing"}, []),
    ],
)
def test_options_choose(records: Records, options: dict[str, str], chosen: list[int]) -> None:
    assert _chosen(records, _filter(**options)) == chosen


def test_offsets_of_queues_choose(records: Records) -> None:
    selection = Selection(topics=frozenset({"Orders", "Payments"}))
    wanted = selection.on("a", {("Orders", 1): Bounds(low=1), ("Orders", 0): Bounds(high=1)})
    assert _chosen(records, wanted) == [0, 2, 3, 9]
    assert wanted.offsets("Orders", 1).low == 1
    assert wanted.offsets("Payments", 1) == Bounds()


def test_conditions_narrow(records: Records) -> None:
    conditions = Conditions.of(
        [Predicate("topic", "=", ("Payments",)), Predicate("queueId", "IN", (0, 1))]
    )
    wanted = Selection(conditions=conditions).on("a")
    assert _chosen(records, wanted) == [2]
    assert wanted.conditions_name_queues
    assert not wanted.names_queues, "other options do"
    assert wanted.wants_queue("Payments", 1)
    assert not wanted.wants_queue("Payments", 2)
    assert not wanted.wants_queue("Orders", 0)


def test_a_condition_does_not_show_what_the_view_hides(records: Records) -> None:
    hidden = Conditions.of([Predicate("topic", "=", ("SCHEDULE_TOPIC_XXXX",))])
    assert _chosen(records, Selection(conditions=hidden).on("a")) == []


def test_brokers_are_left_out_by_a_condition() -> None:
    conditions = Conditions.of([Predicate("brokerName", "=", ("b",))])
    assert Selection(conditions=conditions).on("b").wants_broker()
    assert not Selection(conditions=conditions).on("a").wants_broker()


def test_tags_for_pruning_are_those_that_both_want() -> None:
    asked = Conditions.of([Predicate("tags", "IN", ("B", "C"))])
    wanted = _filter(subExpression="A || B")
    assert wanted.pruning_tags == {"A", "B"}
    narrowed = Selection(tags=wanted.tags).on("a").narrowed(asked)
    assert narrowed.pruning_tags == {"B"}
    assert narrowed.tags == {"A", "B"}
    assert Selection(conditions=asked).on("a").pruning_tags == {"B", "C"}
    assert not _filter().names_queues


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=20),
    st.dictionaries(
        st.tuples(st.just("Topic"), st.integers(0, 2)),
        st.builds(Bounds, st.integers(-1, 9), st.integers(0, 1 << 63)),
    ),
)
def test_bounds_of_queues_are_exact(
    places: list[tuple[int, int]], bounds: dict[tuple[str, int], Bounds]
) -> None:
    writer_fields = [_record(queue, offset) for queue, offset in places]
    starts = np.cumsum([0, *(len(each) for each in writer_fields)])[:-1]
    records = Records(np.frombuffer(b"".join(writer_fields), np.uint8), starts.astype(np.int64))
    kept = Selection().on("a", bounds).apply(records)
    expected = [
        (queue, offset)
        for queue, offset in places
        if bounds.get(("Topic", queue), Bounds()).low
        <= offset
        < bounds.get(("Topic", queue), Bounds()).high
    ]
    assert list(zip(kept.queue_id.tolist(), kept.queue_offset.tolist(), strict=True)) == expected


def _record(queue_id: int, queue_offset: int) -> bytes:
    from txrocketmq.remoting.message.record import MAGIC_V1, build_record  # noqa: PLC0415

    host = {"ip": b"\x7f\0\0\1", "port": 1}
    return build_record(
        {
            "magic": MAGIC_V1, "body_crc": 0, "queue_id": queue_id, "flag": 0,
            "queue_offset": queue_offset, "physical_offset": 0, "sys_flag": 0,
            "born_timestamp": 0, "born_host": host, "store_timestamp": 0, "store_host": host,
            "reconsume_times": 0, "prepared_transaction_offset": 0, "body": b"",
            "topic": b"Topic", "properties": b"",
        }
    )  # fmt: skip
