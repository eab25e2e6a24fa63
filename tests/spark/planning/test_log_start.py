# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import DataLossError, OptionError
from txrocketmq.spark.log.fingerprint import fingerprint
from txrocketmq.spark.log.log_position import LogPosition
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.log_start import first_positions
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.store import Store


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    made = StoreWriter(tmp_path / "a", segment_bytes=4096)
    made.put_all(Draft(queue_id=number % 2, body=b"x" * 300) for number in range(30))
    made.write_config()
    return made


def position(writer: StoreWriter, **options: str) -> LogPosition:
    given = SourceOptions.of({"storePath": str(writer.root), **options})
    return first_positions([Store.open(str(writer.root))], given)["DefaultCluster/a"]


def test_the_default_is_the_end(writer: StoreWriter) -> None:
    found = position(writer)
    assert found.log == writer.end
    assert found.fingerprint == fingerprint(Store.open(str(writer.root)), writer.end)
    assert position(writer, startingOffsets="latest") == found


def test_the_earliest_is_where_the_log_begins_now(writer: StoreWriter) -> None:
    assert position(writer, startingOffsets="earliest") == LogPosition(log=0, until=writer.end)
    writer.delete_segment()
    assert position(writer, startingOffsets="earliest").log == 4096


def test_offsets_of_queues_begin_with_the_first_that_is_wanted(writer: StoreWriter) -> None:
    offsets = '{"Topic": {"a": {"0": 9, "1": 7}}}'
    found = position(writer, startingOffsets=offsets, topic="Topic")
    assert found.log == writer.stored[15].physical_offset, "message 7 of queue 1"
    assert found.first == {("Topic", 0): 9, ("Topic", 1): 7}
    assert found.until == writer.end
    one = position(writer, startingOffsets='{"Topic": {"a": {"0": 9}}}', topic="Topic")
    assert one.log == writer.stored[1].physical_offset, "the other one begins at its earliest"
    ends = position(writer, startingOffsets='{"Topic": {"a": {"0": -1, "1": -1}}}', topic="Topic")
    assert ends.log == writer.end


def test_offsets_that_are_gone_or_not_there_are_errors(writer: StoreWriter) -> None:
    with pytest.raises(OptionError, match="ends at 15, before 16"):
        position(writer, startingOffsets='{"Topic": {"a": {"0": 16}}}')
    writer.delete_segment()
    with pytest.raises(DataLossError, match="begins at"):
        position(writer, startingOffsets='{"Topic": {"a": {"0": 0}}}')
    with pytest.raises(DataLossError, match="from 5 to 4096"):
        position(writer, startingOffsets='{"log": {"a": 5}}')


def test_a_broker_that_is_not_there_is_an_error(writer: StoreWriter) -> None:
    for more in ({}, {"startingTimestamp": "0"}):
        with pytest.raises(OptionError, match="assign names the broker b; the stores are of"):
            position(writer, assign='{"Topic": {"b": [0]}}', **more)


def test_a_time_is_settled_at_once_unless_it_is_to_come(writer: StoreWriter) -> None:
    time = writer.stored[11].store_timestamp
    found = position(writer, startingTimestamp=str(time))
    assert (found.log, found.since_ms) == (writer.stored[11].physical_offset, None)
    last = writer.stored[-1].store_timestamp
    to_come = position(writer, startingTimestamp=str(last + 1))
    assert (to_come.log, to_come.since_ms) == (writer.end, last + 1)
    assert position(writer, startingTimestamp="0").log == 0


def test_what_queues_do_not_know_yet_is_read_all_the_same(writer: StoreWriter) -> None:
    late = writer.put(Draft(queue_id=0), dispatch=False)
    offsets = '{"Topic": {"a": {"0": 15, "1": 15}}}'
    assert position(writer, startingOffsets=offsets, topic="Topic").log == late.physical_offset


def test_what_comes_while_the_start_is_looked_for_has_its_bounds_too(writer: StoreWriter) -> None:
    class Growing(Store):
        def queue(self, topic: str, queue_id: int) -> Queue | None:
            writer.put(Draft(queue_id=queue_id))
            return super().queue(topic, queue_id)

    store = Growing(**vars(Store.open(str(writer.root))))
    given = SourceOptions.of(
        {"storePath": str(writer.root), "startingOffsets": '{"Topic": {"a": {"0": -1}}}'}
    )
    found = first_positions([store], given)["DefaultCluster/a"]
    assert found.first == {("Topic", 0): 16}
    assert found.until == writer.end, "the message before offset 16 is not wanted"


def test_messages_that_are_missing_hide_none_behind_them(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a", queue_units=5)
    writer.put_all(Draft("Batches", inner=((b"a", {}), (b"b", {}))) for _ in range(20))
    (writer.root / "batchconsumequeue/Batches/0" / f"{5 * 46:020d}").unlink()
    found = position(writer, startingOffsets='{"Batches": {"a": {"0": 12}}}', topic="Batches")
    assert found.log == writer.stored[10].physical_offset
