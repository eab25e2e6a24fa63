# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.counted import lines_of
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import FileSizeError
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues, encode_topic
from txrocketmq.remoting.message.record import MAGIC_V1, MAGIC_V2


@pytest.fixture
def queues(files: Any, config: Callable[..., StoreConfig]) -> ConsumeQueues:
    return ConsumeQueues(files, config())


def unlink(queues: ConsumeQueues) -> None:
    """What a thread does, now."""
    job = queues.removals.begin()
    assert job is not None
    job.run()
    queues.removals.finish(job)


def fill(queues: ConsumeQueues, topic: str, queue_id: int, *offsets: int) -> None:
    for each, offset in enumerate(offsets):
        assert queues.open(topic, queue_id).dispatch(each, offset, 10, 0, 0)


def test_topics_are_encoded_as_records_end_with_them() -> None:
    assert encode_topic("T") == (MAGIC_V1, b"\1T")
    assert encode_topic("x" * 127) == (MAGIC_V1, b"\x7f" + b"x" * 127)
    assert encode_topic("x" * 128) == (MAGIC_V2, b"\0\x80" + b"x" * 128)


def test_queues_are_made_when_they_are_opened(queues: ConsumeQueues) -> None:
    assert queues.find("T", 1) is None
    queue = queues.open("T", 1)
    assert queues.find("T", 1) is queue
    assert queues.open("T", 1) is queue
    assert queues.find("T", 0) is None
    assert queues.max_physical_offset == -1


def test_a_shortage_of_others_costs_no_look_at_all_queues(
    queues: ConsumeQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When hardly any mapping is left to give up, few are looked at in one go, all in several."""
    for queue_id in range(1_000):
        queues.open("T", queue_id)
    fill(queues, "T", 999, 0)
    (file,) = queues.open("T", 999).files.mapped_files
    assert file._map is not None
    rounds = 0
    while file._map is not None:
        assert lines_of(queues.give_up_mappings) < 400
        rounds += 1
    assert 60 < rounds < 200


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../x", "a\0b", "x" * 256, "é" * 128])
def test_names_that_are_no_directories_are_refused(queues: ConsumeQueues, topic: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        queues.open(topic, 0)
    assert not queues.table


@pytest.mark.parametrize("queue_id", [-1, 1 << 31])
def test_ids_that_are_none_are_refused(queues: ConsumeQueues, queue_id: int) -> None:
    with pytest.raises(ValueError, match="no queue"):
        queues.open("T", queue_id)


def test_long_topics_may_be_switched_off(files: Any, config: Callable[..., StoreConfig]) -> None:
    queues = ConsumeQueues(files, config(auto_message_version_on_topic_len=False))
    queues.open("x" * 127, 0)
    with pytest.raises(ValueError, match="at most 127 bytes"):
        queues.open("x" * 128, 0)


def test_queues_are_found_again(
    files: Any, queues: ConsumeQueues, config: Callable[..., StoreConfig]
) -> None:
    fill(queues, "A", 0, 0, 10)
    fill(queues, "A", 3, 20)
    fill(queues, "B", 0, 30, 40, 50)
    files.small["/store/consumequeue/A/notes"] = b""
    files.make_directory("/store/consumequeue/A/old")
    again = ConsumeQueues(files, config())
    again.load()
    for queue in again:
        queue.recover()
    assert {(queue.topic, queue.queue_id): queue.max_offset for queue in again} == {
        ("A", 0): 2,
        ("A", 3): 1,
        ("B", 0): 3,
    }
    assert again.max_physical_offset == 60
    assert again.foreign == ["/store/consumequeue/A/notes", "/store/consumequeue/A/old"]
    for queue in again:
        queue.correct_min_offset(10)
    assert [queue.min_offset for queue in again] == [1, 0, 0]


def test_files_that_are_all_empty_say_nothing_of_their_size(
    files: Any, queues: ConsumeQueues, config: Callable[..., StoreConfig]
) -> None:
    """A power cut leaves the first files of a store so."""
    fill(queues, "A", 0, *range(0, 60, 10))
    for path in list(files.maps):
        if "/consumequeue/" in path:
            del files.maps[path]
            files.small[path] = b""
    again = ConsumeQueues(files, config())
    again.load()
    (queue,) = again
    assert [entry.size_bytes for entry in queue.files.misfits] == [0]


def test_a_file_of_another_size_is_told_with_its_key(
    files: Any, queues: ConsumeQueues, config: Callable[..., StoreConfig]
) -> None:
    fill(queues, "A", 0, 0)
    again = ConsumeQueues(files, config(mapped_file_size_consume_queue=200))
    with pytest.raises(FileSizeError, match="set mappedFileSizeConsumeQueue"):
        again.load()


def test_topics_are_deleted_with_their_files(files: Any, queues: ConsumeQueues) -> None:
    fill(queues, "A", 0, 0)
    fill(queues, "A", 1, 10)
    fill(queues, "B", 0, 20)
    assert queues.delete_topic("A")
    assert not queues.delete_topic("A")
    assert not queues.delete_topic("never")
    assert list(queues.table) == ["B"]
    assert files.removed == [], "that is left to a thread"
    unlink(queues)
    assert [path for path in files.maps if "/A/" in path] == []
    assert [path for path in files.directories if "/A" in path] == []
    assert queues.open("A", 0).next_offset == 0


@pytest.mark.parametrize("made", ["before the job", "before it runs", "after it ran"])
def test_a_topic_made_anew_keeps_its_new_files(
    files: Any, queues: ConsumeQueues, made: str
) -> None:
    for queue_id in range(3):
        fill(queues, "A", queue_id, 0, 10, 20)
    queues.delete_topic("A")
    if made == "before the job":
        fill(queues, "A", 1, 100)
    job = queues.removals.begin()
    assert job is not None
    if made == "before it runs":
        fill(queues, "A", 1, 100)
    job.run()
    if made == "after it ran":
        fill(queues, "A", 1, 100)
    queues.removals.finish(job)
    assert [path for path in files.maps if "/A/" in path] == ["/store/consumequeue/A/1/" + "0" * 20]
    assert "/store/consumequeue/A/1" in files.directories
    assert "/store/consumequeue/A/0" not in files.directories
    assert [unit.physical_offset for unit in queues.open("A", 1).units(0, 9)] == [100]


def test_a_queue_whose_old_files_cannot_be_unlinked_is_not_made_anew(
    files: Any, queues: ConsumeQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise PermissionError("not yours")

    fill(queues, "A", 0, 0, 10)
    queues.delete_topic("A")
    with monkeypatch.context() as patched:
        patched.setattr(files, "remove", refuse)
        for _ in range(2):
            with pytest.raises(PermissionError):
                queues.open("A", 0)
        unlink(queues)
        with pytest.raises(PermissionError):
            queues.open("A", 0)
    assert "A" not in queues.table
    assert queues.open("A", 0).max_offset == 0
    assert [path for path in files.maps if "/A/" in path] == []


def test_expired_queues_are_removed(files: Any, queues: ConsumeQueues) -> None:
    fill(queues, "A", 0, 0)
    fill(queues, "A", 1, 100)
    fill(queues, "B", 0, 0, 10)
    fill(queues, "SYS", 0, 0)
    queues.open("NEW", 0)
    assert [queues.remove_expired(topic, 50) for topic in ("A", "B", "NEW", "none")] == [1, 1, 0, 0]
    assert {(queue.topic, queue.queue_id) for queue in queues} == {("A", 1), ("SYS", 0), ("NEW", 0)}


def test_ext_rows_are_read_whatever_their_size(
    files: Any, config: Callable[..., StoreConfig]
) -> None:
    written = ConsumeQueues(files, config(enable_consume_queue_ext=True))
    written.open("A", 0).dispatch(0, 0, 10, 77, 5)
    plain = ConsumeQueues(files, config(mapped_file_size_consume_queue_ext=48 << 20))
    plain.load()
    queue = plain.open("A", 0)
    queue.recover()
    unit = queue.unit(0)
    assert unit is not None
    assert unit.tags_code == 77
    assert queue.dispatch(1, 10, 10, 78, 6)
    assert [each.tags_code for each in queue.units(0, 9)] == [77, 78]
    assert len([path for path in files.maps if "_ext" in path]) == 1
