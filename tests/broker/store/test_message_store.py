# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stored import for_each_queue
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import FileSizeError, StoreError
from txrocketmq.broker.store.get import stored_messages
from txrocketmq.broker.store.index.index_file import index_file_name
from txrocketmq.broker.store.message_store import (
    GetMessageStatus,
    MessageStore,
    PutMessage,
    PutStatus,
)
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.settings.config_file import Configuration

NOW_MS = 1_700_000_000_000
FAR_MS = 1 << 50
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


def test_messages_go_in_and_come_out(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    results = store.put([message("A", 1, b"one"), message("B", 0, b"two"), message("A", 1)], NOW_MS)
    assert [(each.status, each.queue_offset) for each in results] == [
        (PutStatus.PUT_OK, 0),
        (PutStatus.PUT_OK, 0),
        (PutStatus.PUT_OK, 1),
    ]
    got = store.get("A", 1, 0, 32, 1 << 20)
    assert [each.body for each in decode_messages(b"".join(got.buffers))] == [b"one", b"body"]
    assert (store.min_offset("A", 1), store.max_offset("A", 1)) == (0, 2)
    assert store.topics() == ["A", "B"]
    assert store.queue_ids("A") == [1]
    assert store.queue_ids("never") == []
    assert store.earliest_message_ms() == NOW_MS


def test_nothing_is_put_when_there_is_nothing(open_store: OpenStore) -> None:
    store = open_store()
    assert store.put([], NOW_MS) == []
    assert store.max_physical_offset == 0
    assert store.earliest_message_ms() == -1


def test_arrivals_are_told_once_per_queue(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    told: list[tuple[str, int, int]] = []
    store.on_arrivals.append(for_each_queue(lambda *where: told.append(where)))
    store.put([message("A", 1), message("B", 0), message("A", 1), message("a/b")], NOW_MS)
    assert told == [("A", 1, 2), ("B", 0, 1)]


def test_a_listener_may_get_what_arrived(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    counts: list[int] = []

    def get(topic: str, queue_id: int, end: int) -> None:
        counts.append(store.get(topic, queue_id, end - 1, 1, 100).count)

    store.on_arrivals.append(for_each_queue(get))
    store.put([message("A"), message("B")], NOW_MS)
    assert counts == [1, 1]


def test_a_store_that_is_not_open_takes_and_gives_nothing(
    files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store = MessageStore(config(), files=files)
    assert store.put([message()] * 2, NOW_MS)[1].status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.why_not_writeable() == "the store is not open"
    store.stop(NOW_MS)
    store.tick(NOW_MS)
    store.load(NOW_MS)
    assert store.put([message()], NOW_MS)[0].status is PutStatus.PUT_OK
    store.stop(NOW_MS)
    store.stop(NOW_MS)
    assert store.put([message()], NOW_MS)[0].status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.get("Topic", 0, 0, 1, 100).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"mapped_file_size_commit_log": 16_384}, FileSizeError, "mappedFileSizeCommitLog"),
        ({"mapped_file_size_consume_queue": 200}, FileSizeError, "mappedFileSizeConsumeQueue"),
    ],
)
def test_other_sizes_are_refused_and_the_lock_is_given_back(
    open_store: OpenStore,
    files: Any,
    config: Callable[..., StoreConfig],
    message: Build,
    settings: dict[str, int],
    error: type[StoreError],
    text: str,
) -> None:
    store = open_store()
    store.put([message(keys="k")] * 30, NOW_MS)
    store.stop(NOW_MS)
    with pytest.raises(error, match=text):
        MessageStore(config(**settings), files=files).load(NOW_MS)
    assert not files.held
    MessageStore(config(), files=files).load(NOW_MS)


def test_a_directory_that_cannot_be_read_is_told(
    files: Any, config: Callable[..., StoreConfig]
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    files.make_directory = refuse
    with pytest.raises(StoreError, match=r"the store in /store cannot be opened.*denied"):
        MessageStore(config(), files=files).load(NOW_MS)


def test_a_second_store_on_a_directory_is_refused(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig]
) -> None:
    open_store()
    with pytest.raises(StoreError, match="another broker"):
        MessageStore(config(), files=files).load(NOW_MS)


def test_a_full_disk_is_a_status(open_store: OpenStore, files: Any, message: Build) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    files.room_bytes = 0
    results = store.put([message(body=bytes(3000))] * 4, NOW_MS)
    assert {each.status for each in results} == {PutStatus.SERVICE_NOT_AVAILABLE}
    assert store.max_offset("Topic", 0) == 1
    files.room_bytes = None
    results = store.put([message(body=bytes(3000))] * 4, NOW_MS)
    assert [each.queue_offset for each in results] == [1, 2, 3, 4]


def test_without_room_for_the_index_messages_wait_in_it(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(mapped_file_size_commit_log=1 << 20)
    store.put([message(keys="first")], NOW_MS)
    allocate = files.allocate

    def no_index(path: str, offset: int, length: int) -> None:
        if "index" in path:
            raise OSError(errno.ENOSPC, "No space", path)
        allocate(path, offset, length)

    files.allocate = no_index
    store.put([message(keys="k")] * 300, NOW_MS)
    store.tick(NOW_MS)
    assert finished(store.query("Topic", "k", 9, 0, FAR_MS)).buffers == []
    assert store.writeable
    files.allocate = allocate
    store.tick(NOW_MS)
    assert len(finished(store.query("Topic", "k", 9, 0, FAR_MS)).buffers) == 9
    assert len(finished(store.query("Topic", "first", 9, 0, FAR_MS)).buffers) == 1


def test_too_much_that_waits_for_the_index_ends_the_taking(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(mapped_file_size_commit_log=1 << 26)
    store.put([message(body=b"", keys="k")] * 255, NOW_MS)

    def no_index(path: str, offset: int, length: int) -> None:
        if "index" in path:
            raise OSError(errno.ENOSPC, "No space", path)

    files.allocate = no_index
    for _ in range(257):
        store.put([message(body=b"", keys="k")] * 255, NOW_MS)
    assert not store.writeable
    assert store.why_not_writeable() == "the disk has no room for the index"


def test_messages_are_found_by_key_oldest_first(open_store: OpenStore, message: Build) -> None:
    store = open_store(max_msgs_num_batch=5)
    for each in range(8):
        store.put([message(keys="k", tags="t", body=bytes([each]))], NOW_MS + each)
    found = finished(store.query("Topic", "k", 3, 0, FAR_MS))
    assert [bytes(each)[88:89] for each in found.buffers] == [b"\5", b"\6", b"\7"]
    assert found.last_update_timestamp_ms == NOW_MS + 7
    assert found.last_update_offset > 0
    assert len(finished(store.query("Topic", "k", 99, 0, FAR_MS)).buffers) == 5
    assert len(finished(store.query("Topic", "t", 99, 0, FAR_MS, "T")).buffers) == 5
    assert finished(store.query("Topic", "t", 99, 0, FAR_MS)).buffers == []
    assert finished(store.query("Other", "k", 99, 0, FAR_MS)).buffers == []


def test_no_more_is_found_by_key_than_fits_in_a_frame(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    for each in range(5):
        store.put([message(keys="k", body=bytes([each]) * 500)], NOW_MS + each)
    monkeypatch.setattr(stored_messages, "MAX_BODY_BYTES", 1_500)
    found = finished(store.query("Topic", "k", 9, 0, FAR_MS)).buffers
    assert [bytes(each)[88:89] for each in found] == [b"\3", b"\4"], "the newest"
    monkeypatch.setattr(stored_messages, "MAX_BODY_BYTES", 10)
    assert len(finished(store.query("Topic", "k", 9, 0, FAR_MS)).buffers) == 1


def test_what_is_found_and_gone_is_left_out(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(keys="k", body=bytes(7000))] * 3, NOW_MS)
    files.modified = dict.fromkeys(files.modified, 0)
    store.flush.flush_all()
    store.delete_expired(NOW_MS)
    assert len(finished(store.query("Topic", "k", 9, 0, FAR_MS)).buffers) == 2


def test_messages_are_found_by_place(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    _, second = store.put([message(body=b"one"), message(body=b"two")], NOW_MS)
    record = store.message_at(second.physical_offset)
    assert record is not None
    assert decode_messages(record)[0].body == b"two"
    assert store.message_at(second.physical_offset, second.size) == record
    assert store.message_at(second.physical_offset + 1) is None
    assert store.message_at(1 << 40) is None
    assert store.message_at(second.physical_offset, second.size + 1) is None


def test_offsets_and_times(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    for each in range(6):
        store.put([message()], NOW_MS + 10 * each)
    assert store.offset_by_time("Topic", 0, NOW_MS + 15) == 2
    assert store.offset_by_time("Topic", 0, NOW_MS + 15, upper=True) == 1
    assert store.offset_by_time("Topic", 0, 0) == 0
    assert store.offset_by_time("Topic", 0, FAR_MS) == 6
    assert store.store_time_at("Topic", 0, 3) == NOW_MS + 30
    assert store.store_time_at("Topic", 0, 6) == -1
    assert store.earliest_store_time("Topic", 0) == NOW_MS
    sizes = [unit.size_bytes for unit in store.queue_units("Topic", 0, 4, 9)]
    assert sizes == [store.max_physical_offset // 6] * 2
    assert store.is_recent("Topic", 0, 0)
    assert not store.is_recent("Topic", 0, 6)


def test_of_a_queue_that_never_was_all_is_nothing(open_store: OpenStore) -> None:
    store = open_store()
    where = "never", 0
    assert (store.min_offset(*where), store.max_offset(*where)) == (0, 0)
    assert store.offset_by_time(*where, NOW_MS) == 0
    assert store.earliest_store_time(*where) == -1
    assert store.store_time_at(*where, 0) == -1
    assert not store.is_recent(*where, 0)
    assert list(store.queue_units(*where, 0, 9)) == []
    assert store.topics() == []


def test_a_deleted_topic_begins_at_0_again(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message("A"), message("B")] * 9, NOW_MS)
    assert store.delete_topic("A")
    assert not store.delete_topic("A")
    assert store.max_offset("A", 0) == 0
    assert store.put([message("A")], NOW_MS)[0].queue_offset == 0
    assert store.max_offset("B", 0) == 9
    disk = files.after_kill()
    again = open_store(disk)
    assert again.max_offset("A", 0) == 1


def test_queues_without_messages_are_cleaned(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message("A"), message("KEEP")], NOW_MS)
    store.put([message("B", 0, bytes(7000))] * 3, NOW_MS)
    files.modified = dict.fromkeys(files.modified, 0)
    store.flush.flush_all()
    store.delete_expired(NOW_MS)
    assert [store.clean_expired_queues(topic) for topic in ("A", "B", "none")] == [1, 0, 0]
    assert store.topics() == ["KEEP", "B"]


def test_the_runtime_is_told_in_the_originals_words(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    store.put([message(), message("a/b")], NOW_MS)
    store.get("Topic", 0, 0, 1, 100)
    store.get("Topic", 0, 1, 1, 100)
    info = store.runtime_info(NOW_MS + 1000)
    assert info["commitLogDiskRatio"] == info["commitLogDiskRatio_/store/commitlog"] == "0.1"
    assert info["commitLogMaxOffset"] == str(store.max_physical_offset)
    assert info["commitLogMinOffset"] == "0"
    assert info["putMessageTimesTotal"] == "1"
    assert info["putMessageFailedTimes"] == "1"
    assert info["putMessageSizeTotal"] == str(store.max_physical_offset)
    assert (store.stats.got_found, store.stats.got_missed) == (1, 1)
    assert all(isinstance(value, str) for value in info.values())


def test_settings_may_change_while_running(open_store: OpenStore, message: Build) -> None:
    store = open_store()
    Configuration([store.config], {}).update({"maxMessageSize": "3"})
    assert store.put([message(body=b"1234")], NOW_MS)[0].status is PutStatus.MESSAGE_ILLEGAL
    assert store.config.max_message_size == 3


def test_on_a_real_disk(tmp_path: Path, message: Build) -> None:
    config = StoreConfig(store_path_root_dir=str(tmp_path / "store"))
    store = MessageStore(config)
    store.load(NOW_MS)
    results = store.put([message(uniq_key="U" * 32, body=bytes(1000))] * 100, NOW_MS)
    assert {each.status for each in results} == {PutStatus.PUT_OK}
    got = store.get("Topic", 0, 0, 32, 1 << 20)
    assert got.count == 32
    held = got.buffers[0]
    store.stop(NOW_MS)
    assert decode_messages(held)[0].body == bytes(1000), "what is being sent stays readable"
    root = tmp_path / "store"
    sizes = {path.name: path.stat().st_size for path in root.rglob("*") if path.is_file()}
    index_name = next(name for name in sizes if len(name) == 17)
    assert sizes == {
        "lock": 4,
        "checkpoint": 4096,
        "inventory": sizes["inventory"],
        "0" * 20: sizes["0" * 20],
        index_name: 420_000_040,
    }
    assert (root / "commitlog" / ("0" * 20)).stat().st_size == 1 << 30
    assert (root / "consumequeue" / "Topic" / "0" / ("0" * 20)).stat().st_size == 6_000_000
    used = sum(path.stat().st_blocks * 512 for path in root.rglob("*"))
    assert used < 64 << 20, "files are sparse"
    again = MessageStore(config)
    done = again.load(NOW_MS)
    assert (done.was_closed, done.checked_messages) == (True, 100)
    assert len(finished(again.query("Topic", "U" * 32, 32, 0, FAR_MS)).buffers) == 32
    again.stop(NOW_MS)


def test_a_queue_for_each_message_keeps_few_descriptors(tmp_path: Path, message: Build) -> None:
    small = StoreConfig(
        store_path_root_dir=str(tmp_path),
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20_000,
    )
    store = MessageStore(small)
    store.load(NOW_MS)
    before = len(os.listdir("/proc/self/fd"))
    store.put([message(queue_id=each) for each in range(100)], NOW_MS)
    assert len(os.listdir("/proc/self/fd")) - before <= 102
    store.stop(NOW_MS)


def test_a_query_names_no_file_by_the_time_that_it_asks_for(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store()
    store.put([message(keys="k")], NOW_MS)
    assert len(finished(store.query("Topic", "k", 32, 0, 2**63 - 1)).buffers) == 1
    (path,) = [each for each in files.maps if each.startswith("/store/index/")]
    assert path == "/store/index/" + index_file_name(NOW_MS)
