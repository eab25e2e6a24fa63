# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.stored import for_each_queue
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.upkeep import flush

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
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


def test_a_failing_disk_ends_the_taking_of_messages(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    store.put([message()], NOW_MS)
    ticket = store.commit.outcome(store.max_physical_offset)
    assert isinstance(ticket, Ticket)
    files.broken.add("/store/commitlog/" + "0" * 20)
    flushed(store)
    assert store.flush.flushed_offset == 0
    assert store.flush.begin() is None
    (result,) = store.put([message()], NOW_MS)
    assert result.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "disk failed" in store.why_not_writeable()
    store.commit.expire(NOW_MS)
    store.commit.expire(NOW_MS + 10_000)
    assert ticket.outcome is PutStatus.FLUSH_DISK_TIMEOUT


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


def test_many_queues_are_looked_at_some_at_a_time(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    max_offset: Any = vars(ConsumeQueue)["max_offset"]

    def looked_at(queue: ConsumeQueue) -> int:
        seen.append(queue.queue_id)
        found: int = max_offset.__get__(queue)
        return found

    store = open_store(message_index_enable=False)
    store.put([message(queue_id=each) for each in range(10)], NOW_MS)
    store.flush.flush_all()
    before_ms = store.flush._checkpoint.logics_msg_timestamp_ms
    store.put([message(queue_id=9)], NOW_MS + 5)
    monkeypatch.setattr(flush, "_LOOKED_AT", 3)
    store.tick(NOW_MS)
    monkeypatch.setattr(ConsumeQueue, "max_offset", property(looked_at, max_offset.__set__))
    store.flush.tick(NOW_MS + 120_000)
    assert seen == [], "that is for the jobs"
    synced = []
    for expected in ([0, 1, 2], [3, 4, 5], [6, 7, 8], [9]):
        seen.clear()
        assert store.flush._checkpoint.logics_msg_timestamp_ms == before_ms
        synced += flushed(store)
        assert seen == expected
    assert synced == ["commitlog", "consumequeue"]
    assert store.flush._checkpoint.logics_msg_timestamp_ms == NOW_MS + 5


def test_the_last_flush_looks_at_all_queues(
    open_store: OpenStore, files: Any, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "_LOOKED_AT", 1)
    store = open_store()
    store.put([message(queue_id=each) for each in range(4)], NOW_MS)
    store.flush.flush_all()
    store.put([message(queue_id=3)], NOW_MS)
    store.flush.flush_all()
    disk = files.after_power_loss()
    assert open_store(disk).max_offset("Topic", 3) == 2


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
    assert len(finished(again.query("Topic", "U" * 32, 32, 0, NOW_MS * 2)).buffers) == 5
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
    arrived: list[tuple[str, int, int]] = []
    store.on_arrivals.append(for_each_queue(lambda *where: arrived.append(where)))
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
    assert len(finished(store.query("Topic", "U" * 32, 32, 0, NOW_MS * 2)).buffers) == 1


def test_with_sync_flush_a_disk_that_is_full_by_then_hides_nothing(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    for _ in range(2):
        store.put([message() for _ in range(4)], NOW_MS)
    files.room_bytes = 0  # room for the units was made when the messages were put
    flushed(store)
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
    assert len(finished(again.query("Topic", "U" * 32, 32, 0, NOW_MS * 2)).buffers) == 7


def test_with_sync_flush_consumers_may_see_all_if_told(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH", read_un_committed=True)
    store.put([message()], NOW_MS)
    assert store.max_offset("Topic", 0) == 1


def test_the_log_is_open_for_its_syncs_until_a_file_is_full_and_durable(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(body=bytes(3000)) for _ in range(5)], NOW_MS)
    logs = sorted(path for path in files.maps if "/commitlog/" in path)
    assert len(logs) == 3
    assert files.open == set(logs)
    flushed(store)
    assert files.open == {logs[-1]}
    store.stop(NOW_MS)
    assert files.open == set()


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN]
)
def test_what_is_not_the_disks_is_tried_again(
    open_store: OpenStore, files: Any, message: Build, number: int
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    store.put([message()], NOW_MS)
    ticket = store.commit.outcome(store.max_physical_offset)
    assert isinstance(ticket, Ticket)
    files.failures["/store/commitlog/"] = number
    assert flushed(store) == ["commitlog"]
    assert store.flush.flushed_offset == 0
    assert store.flush.trouble is not None
    assert store.flush.trouble.errno == number
    assert ticket.outcome is None
    assert store.put([message()], NOW_MS)[0].status is PutStatus.PUT_OK
    assert store.why_not_writeable() == ""
    files.failures.clear()
    assert flushed(store) == ["commitlog"]
    assert store.flush.flushed_offset == store.max_physical_offset
    assert store.flush.trouble is None
    assert ticket.outcome is PutStatus.PUT_OK


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_what_is_the_disks_is_not_tried_again(
    open_store: OpenStore, files: Any, message: Build, number: int
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    files.failures["/store/commitlog/"] = number
    flushed(store)
    files.failures.clear()
    assert store.flush.begin() is None, "a sync that succeeds now would mean nothing"
    assert store.flush.flushed_offset == 0
    assert store.put([message()], NOW_MS)[0].status is PutStatus.SERVICE_NOT_AVAILABLE


def test_without_descriptors_for_queues_the_log_becomes_durable_all_the_same(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(max_index_num=4)
    store.put([message(keys="a b c d e")], NOW_MS)
    store.put([message(queue_id=1)], NOW_MS)
    store.tick(NOW_MS)
    store.tick(NOW_MS + 120_000)
    files.failures["/store/consumequeue/"] = errno.EMFILE
    for others in (["commitlog"], [], []):
        wanted = flushed(store)
        assert wanted == [*others, "consumequeue", "consumequeue", "index"]
        assert store.flush.flushed_offset == store.max_physical_offset
    assert "/store/checkpoint" not in files.synced
    files.failures.clear()
    assert flushed(store) == wanted
    assert flushed(store) == ["checkpoint"]
    assert store.flush.begin() is None, "and all that was in the job is durable"


def test_closing_says_that_it_could_not_sync(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    files.failures["/store/commitlog/"] = errno.EMFILE
    with pytest.raises(StoreError, match="could not be closed in order: .*Too many open files"):
        store.stop(NOW_MS)
    assert store.flush.error is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_without_room_a_message_is_refused_and_the_next_one_is_taken_when_there_is_some(
    open_store: OpenStore, files: Any, message: Build, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    store = open_store()
    with monkeypatch.context() as patched:
        patched.setattr(files, "allocate", full)
        assert store.put([message()], NOW_MS)[0].status is PutStatus.SERVICE_NOT_AVAILABLE
        assert os.strerror(number) in store.why_not_writeable()
        assert not [path for path in files.maps if "/commitlog/" in path], "nothing is left behind"
        assert files.open == set()
    assert store.put([message()], NOW_MS)[0].queue_offset == 0
    assert store.why_not_writeable() == ""


def test_a_clock_that_is_set_back_takes_the_checkpoint_back(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    store.flush.flush_all()
    store.put([message(body=bytes(5000))] * 8, NOW_MS - HOUR_MS)  # a log file each
    disk = files.after_kill()
    killed = open_store(disk)
    assert killed.flush.flushed_offset == 0, "all that may not be durable is synced again"
    flushed(killed)
    assert killed.flush.flushed_offset == killed.max_physical_offset
    after = open_store(disk.after_power_loss())
    assert after.max_offset("Topic", 0) == 9
    assert after.get("Topic", 0, 1, 1, 9000).count == 1


def test_a_job_that_is_under_way_does_not_bring_it_forward_again(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    job = store.flush.begin()
    assert job is not None
    job.run()
    store.put([message()], NOW_MS - HOUR_MS)
    store.flush.finish(job)
    assert checkpoint_of(files).physic_msg_timestamp == NOW_MS - HOUR_MS


def test_a_clock_that_is_set_back_by_a_moment_costs_nothing(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    flushed(store)
    files.synced.clear()
    store.put([message()], NOW_MS - 2_000)
    assert files.synced == []
    store.put([message()], NOW_MS - 3_001)
    assert files.synced == ["/store/checkpoint"]
    assert checkpoint_of(files).physic_msg_timestamp == NOW_MS - 3_001


def test_messages_wait_for_a_checkpoint_that_cannot_be_taken_back(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    flushed(store)
    files.broken.add("/store/checkpoint")
    refused = store.put([message()], NOW_MS - HOUR_MS)
    assert refused[0].status is PutStatus.SERVICE_NOT_AVAILABLE
    files.broken.clear()
    assert store.put([message()], NOW_MS - HOUR_MS)[0].status is PutStatus.PUT_OK


def checkpoint_of(files: Any) -> Any:
    return formats.CHECKPOINT.parse(files.read("/store/checkpoint"))
