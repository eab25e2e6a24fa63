# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus

NOW_MS = 1_700_000_000_000
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


def flushed(store: MessageStore) -> list[str]:
    """Runs what is to be flushed; the directories of the files that were synced."""
    job = store.flush.begin()
    if job is None:
        return []
    job.run()
    store.flush.finish(job)
    return [path.split("/")[2] for path in job.paths]


def test_nothing_is_to_be_done_twice(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    assert store.flush.begin() is None
    store.put([message()], NOW_MS)
    assert store.flush.flushed_offset == 0
    assert flushed(store) == ["commitlog"]
    assert store.flush.flushed_offset == store.flush.appended_offset == store.max_physical_offset
    assert store.flush.begin() is None


def test_one_job_at_a_time_and_each_for_all_before_it(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    job = store.flush.begin()
    assert job is not None
    first_end = store.max_physical_offset
    store.put([message()], NOW_MS)
    assert store.flush.begin() is None
    job.run()
    store.flush.finish(job)
    assert store.flush.flushed_offset == first_end
    assert flushed(store) == ["commitlog"]
    assert store.flush.flushed_offset == store.max_physical_offset


def test_every_file_with_new_bytes_is_synced(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(body=bytes(3000)) for _ in range(7)], NOW_MS)
    assert flushed(store) == ["commitlog"] * 4
    store.put([message()], NOW_MS)
    assert flushed(store) == ["commitlog"]


def test_waiting_is_answered_when_the_offset_is_durable(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store()
    told: list[tuple[int, bool]] = []
    ends = []
    for number in range(3):
        (result,) = store.put([message()], NOW_MS)
        ends.append(result.physical_offset + result.size)
        store.when_durable(
            ends[-1],
            NOW_MS,
            lambda durable, n=number: told.append((n, durable)),  # type: ignore[misc]
        )
        if number == 1:
            job = store.flush.begin()
    assert store.flush.is_wanted
    assert job is not None
    job.run()
    assert told == []
    store.flush.finish(job)
    assert told == [(0, True), (1, True)]
    flushed(store)
    assert told[2:] == [(2, True)]
    assert not store.flush.is_wanted
    store.when_durable(ends[0], NOW_MS, lambda durable: told.append((9, durable)))
    assert told[3:] == [(9, True)], "what is durable already is told at once"


def test_waiting_ends_with_the_deadline(open_store: OpenStore, message: Build) -> None:
    store = open_store(sync_flush_timeout=5000)
    store.put([message()], NOW_MS)
    told: list[bool] = []
    store.when_durable(store.max_physical_offset, NOW_MS, told.append)
    store.flush.expire(NOW_MS + 4999)
    assert told == []
    store.flush.expire(NOW_MS + 5000)
    assert told == [False]
    flushed(store)
    assert told == [False], "once"


def test_who_waits_asks_for_a_job_unless_one_is_under_way(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store()
    asked: list[int] = []
    store.flush.on_demand = lambda: asked.append(1)
    store.put([message()], NOW_MS)
    store.when_durable(store.max_physical_offset, NOW_MS, lambda _: None)
    assert asked == [1]
    job = store.flush.begin()
    assert job is not None
    store.put([message()], NOW_MS)
    store.when_durable(store.max_physical_offset, NOW_MS, lambda _: None)
    assert asked == [1]
    job.run()
    store.flush.finish(job)
    assert store.flush.is_wanted


def test_a_failing_disk_ends_the_taking_of_messages(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    told: list[bool] = []
    store.when_durable(store.max_physical_offset, NOW_MS, told.append)
    files.broken.add("/store/commitlog/" + "0" * 20)
    flushed(store)
    assert store.flush.flushed_offset == 0
    assert store.flush.begin() is None
    (result,) = store.put([message()], NOW_MS)
    assert result.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "disk failed" in store.why_not_writeable()
    store.flush.expire(NOW_MS + 10_000)
    assert told == [False]


def test_a_file_that_retention_deleted_needs_no_sync(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(body=bytes(3000)) for _ in range(5)], NOW_MS)
    job = store.flush.begin()
    assert job is not None
    sync = files.sync

    def gone(path: str) -> None:
        if path.endswith("0" * 20):
            raise FileNotFoundError(path)
        sync(path)

    files.sync = gone
    job.run()
    store.flush.finish(job)
    assert store.flush.error is None
    assert store.flush.flushed_offset == store.max_physical_offset


def test_queues_are_flushed_by_their_pages_and_thoroughly_by_the_minute(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(mapped_file_size_consume_queue=200_000, mapped_file_size_commit_log=1 << 20)
    store.tick(NOW_MS)
    store.put([message("Busy") for _ in range(410)] + [message("Quiet")], NOW_MS)
    assert flushed(store) == ["commitlog"], "queues only when they are due"
    store.tick(NOW_MS + 1000)
    assert flushed(store) == ["consumequeue"]
    assert files.synced[-1].split("/")[3] == "Busy"
    store.tick(NOW_MS + 2000)
    assert flushed(store) == []
    for second in range(3, 61):
        store.tick(NOW_MS + 1000 * second)
    assert flushed(store) == ["consumequeue"]
    assert files.synced[-1].split("/")[3] == "Quiet"
    assert flushed(store) == ["checkpoint"]
    assert flushed(store) == []


def test_many_queues_are_flushed_a_few_at_a_time(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(mapped_file_size_commit_log=1 << 20)
    store.tick(NOW_MS)
    store.put([message(queue_id=each) for each in range(100)], NOW_MS + 1)
    store.tick(NOW_MS + 60_000)
    assert len(flushed(store)) == 1 + 32
    store.put([message(queue_id=each) for each in range(100)], NOW_MS + 2)
    store.tick(NOW_MS + 61_000)
    logics = files.maps["/store/checkpoint"]
    assert [len(flushed(store)) for _ in range(2)] == [1 + 32, 32]
    assert int.from_bytes(logics[8:16], "big") == 0, "as long as one is missing"
    assert len(flushed(store)) == 4
    assert int.from_bytes(logics[8:16], "big") == NOW_MS + 1


def test_the_checkpoint_never_says_more_than_is_durable(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()

    def stamps() -> list[int]:
        data = files.maps["/store/checkpoint"]
        return [int.from_bytes(data[at : at + 8], "big") for at in (0, 8, 16)]

    store.tick(NOW_MS)
    store.put([message()], NOW_MS + 1)
    assert stamps() == [0, 0, 0]
    job = store.flush.begin()
    assert job is not None
    store.put([message()], NOW_MS + 2)
    job.run()
    store.flush.finish(job)
    assert stamps() == [NOW_MS + 1, 0, 0]
    store.tick(NOW_MS + 61_000)
    flushed(store)
    assert stamps() == [NOW_MS + 2, NOW_MS + 2, 0]


def test_full_index_files_are_flushed_and_noted(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(uniq_key=f"{each:032X}") for each in range(50)], NOW_MS + 5)
    store.tick(NOW_MS + 5)
    assert flushed(store)[-1] == "index"
    assert int.from_bytes(files.maps["/store/checkpoint"][16:24], "big") == NOW_MS + 5
    assert "index" not in flushed(store)


def test_all_is_durable_when_the_store_is_stopped(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(uniq_key="U" * 32, body=bytes(3000)) for _ in range(5)], NOW_MS)
    job = store.flush.begin()  # a thread has it, and never comes back in time
    assert job is not None
    store.stop(NOW_MS)
    again = open_store(files.after_power_loss())
    assert again.max_offset("Topic", 0) == 5
    assert len(again.query("Topic", "U" * 32, 32, 0, NOW_MS * 2).buffers) == 5
    store.flush.finish(job)  # now it does


def test_stopping_with_a_failing_disk_leaves_the_store_open(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    files.broken.add("/store/commitlog/" + "0" * 20)
    with pytest.raises(Exception, match="could not be closed in order"):
        store.stop(NOW_MS)
    assert files.exists("/store/abort")
    assert not files.held


def test_with_sync_flush_consumers_see_what_is_durable(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    assert store.sync_flush
    arrived: list[tuple[str, int, int]] = []
    store.on_arrival = lambda *where: arrived.append(where)
    results = store.put([message(uniq_key="U" * 32), message("B", 3), message()], NOW_MS)
    assert [result.queue_offset for result in results] == [0, 0, 1]
    assert store.max_offset("Topic", 0) == 0
    assert store.dispatch_behind_bytes > 0
    assert arrived == []
    flushed(store)
    assert store.max_offset("Topic", 0) == 2
    assert store.dispatch_behind_bytes == 0
    assert sorted(arrived) == [("B", 3, 1), ("Topic", 0, 2)]
    assert store.put([message()], NOW_MS)[0].queue_offset == 2
    assert len(store.query("Topic", "U" * 32, 32, 0, NOW_MS * 2).buffers) == 1


def test_with_sync_flush_a_full_disk_hides_messages_only_until_there_is_room(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    for _ in range(2):
        store.put([message() for _ in range(4)], NOW_MS)
    files.room_bytes = 0
    flushed(store)
    assert store.dispatch_behind_bytes > 0
    files.room_bytes = None
    store.tick(NOW_MS)
    assert store.dispatch_behind_bytes == 0
    assert store.max_offset("Topic", 0) == 8


def test_with_sync_flush_a_stopped_store_has_all_in_its_queues(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    store.put([message(uniq_key="U" * 32, body=bytes(3000)) for _ in range(7)], NOW_MS)
    store.stop(NOW_MS)
    assert not files.exists("/store/abort")
    again = open_store(files.after_power_loss())
    assert again.max_offset("Topic", 0) == 7
    assert len(again.query("Topic", "U" * 32, 32, 0, NOW_MS * 2).buffers) == 7


def test_with_sync_flush_consumers_may_see_all_if_told(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH", read_un_committed=True)
    store.put([message()], NOW_MS)
    assert store.max_offset("Topic", 0) == 1
