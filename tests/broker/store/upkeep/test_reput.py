# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.batches import batched, kind_of
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.dispatch import Dispatchers
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.upkeep.reput import Ahead, Reput
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK
from txrocketmq.remoting.message.tags import java_string_hash

NOW_MS = 1_700_000_000_000
FAR_MS = 1 << 50


class Rig:
    """A log that is written, with queues and an index that are not."""

    def __init__(self, files: Any, config: StoreConfig) -> None:
        self.log = CommitLog(files, config)
        self.queues = ConsumeQueues(files, config)
        self.index = Index(files, "/index", config.max_hash_slot_num, config.max_index_num)
        self.reput = Reput(config, self.log, self.queues, Dispatchers(config, self.index))

    def put(self, *messages: PutMessage) -> None:
        batch = self.log.encode(messages, self.queues, NOW_MS)
        self.log.write(batch)

    def found(self, topic: str, key: str, index_type: str | None = None) -> list[int]:
        self.index.write_pending(NOW_MS)
        return finished(self.index.find(topic, key, 64, 0, FAR_MS, index_type)).physical_offsets

    def max_offsets(self) -> dict[tuple[str, int], int]:
        return {
            (queue.topic, queue.queue_id): queue.max_offset
            for queue in self.queues
            if queue.max_offset
        }


@pytest.fixture
def rig(files: Any, config: Callable[..., StoreConfig]) -> Rig:
    return Rig(files, config())


Build = Callable[..., PutMessage]


def test_queues_and_index_are_made_from_the_log(rig: Rig, message: Build) -> None:
    rig.put(
        message("A", 0, uniq_key="U" * 32, keys="k1 k2", tags="Tag"),
        message("B", 2, body=bytes(5000)),
        message("A", 0, body=bytes(5000)),
    )
    touched = rig.reput.run(rig.log.max_offset)
    assert sorted((queue.topic, queue.queue_id) for queue in touched) == [("A", 0), ("B", 2)]
    assert rig.max_offsets() == {("A", 0): 2, ("B", 2): 1}
    unit = rig.queues.open("A", 0).unit(0)
    assert unit is not None
    assert unit.tags_code == java_string_hash("Tag")
    for key in ("U" * 32, "k1", "k2"):
        assert rig.found("A", key) == [0]
    assert rig.found("A", "Tag", "T") == [0]
    assert rig.reput.offset == rig.log.max_offset


def test_the_next_run_goes_on_where_the_last_ended(rig: Rig, message: Build) -> None:
    rig.put(*[message(body=bytes(3000))] * 3)
    first_end = rig.log.max_offset
    rig.put(*[message(body=bytes(3000))] * 4)
    rig.reput.run(first_end)
    assert rig.max_offsets() == {("Topic", 0): 3}
    assert rig.reput.offset == first_end
    rig.reput.run(rig.log.max_offset)
    assert rig.max_offsets() == {("Topic", 0): 7}
    assert rig.reput.run(rig.log.max_offset) == []


def test_dispatching_again_changes_nothing(rig: Rig, message: Build) -> None:
    rig.put(*[message(keys="k", body=bytes(3000))] * 5)
    rig.reput.run(rig.log.max_offset)
    rig.reput.offset = 0
    assert rig.reput.run(rig.log.max_offset) == []
    assert rig.max_offsets() == {("Topic", 0): 5}
    assert len(rig.found("Topic", "k")) == 5


def test_transactions_go_where_they_belong(rig: Rig, message: Build) -> None:
    kinds = {
        "half": MessageSysFlag.TRANSACTION_PREPARED_TYPE,
        "commit": MessageSysFlag.TRANSACTION_COMMIT_TYPE,
        "rollback": MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
    }
    rig.put(*(message(sys_flag=kind, keys=name) for name, kind in kinds.items()))
    rig.reput.run(rig.log.max_offset)
    assert rig.max_offsets() == {("Topic", 0): 1}
    assert [bool(rig.found("Topic", name)) for name in kinds] == [True, True, False]


def test_delayed_messages_get_their_time(rig: Rig, message: Build) -> None:
    delayed = message("SCHEDULE_TOPIC_XXXX", 2)._replace(properties=b"DELAY\x013\x02")
    rig.put(delayed)
    rig.reput.run(rig.log.max_offset)
    unit = rig.queues.open("SCHEDULE_TOPIC_XXXX", 2).unit(0)
    assert unit is not None
    assert unit.tags_code == NOW_MS + 10_000


def test_the_index_may_be_switched_off(
    files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    rig = Rig(files, config(message_index_enable=False))
    rig.put(message(keys="k"))
    rig.reput.run(rig.log.max_offset)
    assert rig.index.waiting == 0
    assert rig.max_offsets() == {("Topic", 0): 1}


def test_without_room_it_goes_on_later(rig: Rig, files: Any, message: Build) -> None:
    rig.put(*[message(f"T{each}", keys="k") for each in range(9)])
    rig.queues.table.clear()
    files.room_bytes = 400  # of queue files of 100
    with pytest.raises(OSError, match="No space"):
        rig.reput.run(rig.log.max_offset)
    some = len(rig.max_offsets())
    assert 0 < some < 9
    files.room_bytes = None
    rig.reput.run(rig.log.max_offset)
    assert rig.max_offsets() == {(f"T{each}", 0): 1 for each in range(9)}
    assert all(len(rig.found(f"T{each}", "k")) == 1 for each in range(9))


def test_many_entries_are_written_on_the_way(
    files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    rig = Rig(files, config(max_index_num=5000, mapped_file_size_commit_log=1 << 20))
    rig.put(*[message(keys="k")] * 1500)
    rig.reput.run(rig.log.max_offset)
    assert rig.index.waiting < 1024
    assert len(rig.index.paths()) == 1


def test_a_deleted_queue_is_made_anew(rig: Rig, message: Build) -> None:
    rig.put(message())
    rig.reput.run(rig.log.max_offset)
    rig.queues.delete_topic("Topic")
    rig.reput.forget_queues()
    rig.put(message())
    rig.reput.run(rig.log.max_offset)
    assert rig.max_offsets() == {("Topic", 0): 1}


def test_a_record_of_a_topic_that_cannot_be_is_left_out(rig: Rig, message: Build) -> None:
    rig.put(message("good"), message("good"))
    at = rig.log.files.mapped_files[0].map().find(b"good")
    rig.log.files.mapped_files[0].map()[at : at + 4] = b"a/bc"
    rig.queues.table.clear()
    rig.reput.run(rig.log.max_offset)
    assert rig.max_offsets() == {("good", 0): 2}, "the place before it is blank"
    assert rig.queues.open("good", 0).min_offset == 1


def test_a_part_of_the_log_that_was_deleted_meanwhile_is_passed_over(
    rig: Rig, message: Build
) -> None:
    rig.put(*[message(body=bytes(3000))] * 5)
    rig.log.files.take_first(1)
    rig.reput.run(rig.log.max_offset)
    assert rig.reput.offset == rig.log.max_offset
    assert rig.max_offsets() == {("Topic", 0): 5}


def test_batches_get_no_plain_units(rig: Rig, message: Build) -> None:
    rig.queues.kind_of = kind_of
    batch = batched(message("Batches", uniq_key="U" * 32), [b"a", b"b"])
    rig.put(batch, message("A"), message("Batches"))
    rig.queues.kind_of = lambda _: False
    rig.queues.forget()
    rig.reput.run(rig.log.max_offset)
    assert rig.max_offsets() == {("A", 0): 1, ("Batches", 0): 3}, "with a filler for the batch"
    assert rig.found("Batches", "U" * 32) == [0]
    assert rig.reput.unserved == {"Batches": 1}
    assert "1 batches" in rig.reput.why_unserved()
    assert ": Batches." in rig.reput.why_unserved()


def test_units_of_batches_have_the_time_of_their_record(rig: Rig, message: Build) -> None:
    rig.queues.kind_of = kind_of
    for at in range(3):
        batch = batched(message("Batches"), [b"a", b"b"])
        rig.log.write(rig.log.encode([batch, message("Batches")], rig.queues, NOW_MS + at))
    rig.queues.forget()
    rig.reput.run(rig.log.max_offset)
    queue = rig.queues.find("Batches", 0)
    assert isinstance(queue, BatchQueue)
    assert [unit[3:6] for unit in queue.columns()] == [
        (NOW_MS + at, 3 * at + behind, count)
        for at in range(3)
        for behind, count in ((0, 2), (2, 1))
    ]


def test_of_stores_without_batches_nothing_is_said(rig: Rig, message: Build) -> None:
    rig.put(message("A"))
    rig.reput.run(rig.log.max_offset)
    assert rig.reput.why_unserved() == ""


def test_a_run_may_end_sooner(rig: Rig, message: Build) -> None:
    rig.put(*(message("T", 0) for _ in range(700)))
    end = rig.log.max_offset
    rig.queues.table.clear()
    rig.reput.run(end, 1)
    first = rig.max_offsets()["T", 0]
    assert 0 < first <= 256
    rig.reput.run(end, 300)
    assert 300 <= rig.max_offsets()["T", 0] - first < 600
    rig.reput.run(end)
    assert rig.max_offsets() == {("T", 0): 700}
    assert rig.reput.ahead(end) is Ahead.NOTHING


def test_what_comes_next_is_told(rig: Rig, message: Build) -> None:
    rig.put(message("T", 0, b"x" * 100))
    end = rig.log.max_offset
    seen = [rig.reput.ahead(at) for at in range(end + 1)]
    assert seen == [Ahead.NOTHING] + [Ahead.BEGINNING] * (end - 1) + [Ahead.RECORD]
    rig.reput.run(end)
    assert rig.reput.ahead(end) is Ahead.NOTHING
    rig.log.append_raw(end, b"\xff" * 20)
    seen = [rig.reput.ahead(end + count) for count in range(1, 21)]
    assert seen == [Ahead.BEGINNING] * 7 + [Ahead.NO_RECORD] * 13


def test_a_blank_that_does_not_end_its_file_is_no_record(rig: Rig, message: Build) -> None:
    """Such a log has come from a master whose files are smaller."""
    rig.put(message("T", 0))
    end, size = rig.log.max_offset, rig.log.files.file_bytes
    for rest, ahead in ((size - end - 50, Ahead.NO_RECORD), (size - end, Ahead.RECORD)):
        rig.log.files.truncate(end)
        rig.log.append_raw(end, BLANK.build({"room": rest, "magic": MAGIC_BLANK}))
        rig.reput.offset = 0
        rig.reput.run(end + 8)
        assert rig.reput.ahead(end + 8) is (Ahead.NOTHING if ahead is Ahead.RECORD else ahead)
        assert rig.reput.offset == (size if ahead is Ahead.RECORD else end)
