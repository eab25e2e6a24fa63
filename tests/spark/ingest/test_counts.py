# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.ingest.stores_and_tables import SETTINGS, run
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.ingest.counts import (
    BrokerQueue,
    Count,
    CountedRange,
    CountLog,
    CountQueues,
    Counts,
    count_table,
    sum_of,
    together,
)
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable
from txrocketmq.spark.store import queue_files
from txrocketmq.spark.store.store import Store

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(INT64))
def test_sums_are_exact(values: list[int]) -> None:
    assert sum_of(np.array(values, np.int64)) == sum(values)


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3), INT64), max_size=9))
def test_counts_of_several_tasks_add_up(counted: list[tuple[str, int, int]]) -> None:
    total = together(
        {BrokerQueue("a", topic, queue): Count(1, offset, offset**2 % (1 << 64), 7)}
        for topic, queue, offset in counted
    )
    assert sum(count.messages for count in total.values()) == len(counted)
    assert sum(count.offsets for count in total.values()) == sum(each[2] for each in counted)
    assert together([total]) == total


def test_a_span_leaves_out_what_is_damaged() -> None:
    span = CountedRange(10, 50, ((12, 15), (40, 41)))
    offsets = np.array([9, 10, 12, 14, 15, 39, 40, 41, 49, 50])
    assert offsets[span.holds(offsets)].tolist() == [10, 15, 39, 41, 49]
    assert offsets[CountedRange(10, 15).holds(offsets)].tolist() == [10, 12, 14]


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=4096, queue_units=7)
    for number in range(40):
        writer.put(Draft(topic="AB"[number % 2], queue_id=number % 3, body=b"x" * number))
        if number % 5 == 0:
            writer.put(Draft(topic="Batches", inner=((b"1", {}), (b"2", {}), (b"3", {}))))
    return writer


def expected(store: StoreWriter, span: CountedRange) -> Counts:
    found: Counts = {}
    for stored in store.stored:
        if not span.start <= stored.physical_offset < span.end:
            continue
        queue = BrokerQueue("DefaultCluster/broker-a", stored.draft.topic, stored.draft.queue_id)
        for number in range(max(1, len(stored.draft.inner))):
            offset = stored.queue_offset + number
            one = Count(1, offset, offset * offset, 0 if number else stored.size)
            found[queue] = found.get(queue, Count()).plus(one)
    return found


@pytest.mark.parametrize("whole", [True, False])
def test_table_log_and_queues_are_counted_alike(
    store: StoreWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr(queue_files, "_STEP_UNITS", 3)
    run([store.root], tmp_path / "table")
    span = (
        CountedRange(0, store.end)
        if whole
        else CountedRange(4096, store.stored[-5].physical_offset)
    )
    opened = Store.open(str(store.root), broker_name="broker-a")
    in_table = count_table(
        DeltaLakeTable(str(tmp_path / "table")), {"DefaultCluster/broker-a": span}
    )
    in_log = [
        CountLog(opened, SETTINGS, segment.first_offset, min(segment.end, store.end), span)()
        for segment in opened.segments()
        if segment.first_offset < store.end
    ]
    in_queues = CountQueues(opened, opened.queues(), span)()
    right = expected(store, span)
    assert in_table == right
    assert together(each.all for each in in_log) == right
    assert not any(each.deleted for each in in_log)
    assert in_queues == right


def test_rows_of_other_brokers_and_what_is_left_out_are_not_counted(
    store: StoreWriter, tmp_path: Path
) -> None:
    run([store.root], tmp_path / "table")
    table = DeltaLakeTable(str(tmp_path / "table"))
    assert count_table(table, {"DefaultCluster/it's b": CountedRange(0, 1 << 40)}) == {}
    first = store.stored[0]
    span = CountedRange(
        0, store.end, ((first.physical_offset, first.physical_offset + first.size),)
    )
    counted = count_table(table, {"DefaultCluster/broker-a": span})
    whole = count_table(table, {"DefaultCluster/broker-a": CountedRange(0, store.end)})
    assert sum(each.messages for each in counted.values()) == (
        sum(each.messages for each in whole.values()) - 1
    )
