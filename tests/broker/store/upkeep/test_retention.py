# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.remoting.settings.config_file import Configuration

OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]
HOUR_MS = 3_600_000
LOG = "/store/commitlog/"


def at_hour(hour: int) -> int:
    """A time at this hour of the day, local time."""
    return int(time.mktime((2023, 11, 14, hour, 30, 0, 0, 0, -1))) * 1000


NOON_MS = at_hour(12)
FOUR_MS = at_hour(4)
OLD_MS = FOUR_MS - 72 * HOUR_MS
YOUNG_MS = NOON_MS - HOUR_MS


@pytest.fixture
def filled(open_store: OpenStore, files: Any, message: Build) -> Callable[..., MessageStore]:
    """A store with ten log files, the first `old` of which are old at four o'clock."""

    def fill(old: int, **settings: Any) -> MessageStore:
        store = open_store(**settings)
        store.put([message(body=bytes(7000), keys="k") for _ in range(10)], FOUR_MS)
        store.flush.flush_all()
        store.tick(NOON_MS - 24 * HOUR_MS)
        for number, path in enumerate(logs(files)):
            files.modified[path] = OLD_MS if number < old else YOUNG_MS
        return store

    return fill


def logs(files: Any) -> list[str]:
    return sorted(path for path in files.maps if path.startswith(LOG))


def ticks(store: MessageStore, now_ms: int, count: int = 30) -> None:
    for second in range(count):
        tick(store, now_ms + second * 1000)
        unlink(store)


def tick(store: MessageStore, now_ms: int) -> None:
    """Passes a second."""
    store.tick(now_ms)
    steps = store.follow_log()
    if steps is not None:
        finished(steps)


def unlink(store: MessageStore) -> None:
    """What a thread does, now."""
    job = store.removals.begin()
    if job is not None:
        job.run()
        store.removals.finish(job)


def test_old_files_are_deleted_at_their_hour(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(3)
    ticks(store, NOON_MS)
    assert len(logs(files)) == 10
    ticks(store, FOUR_MS + 24 * HOUR_MS)
    assert len(logs(files)) == 7
    assert store.min_physical_offset == 3 * 8192


def test_one_file_goes_at_a_time(filled: Callable[..., MessageStore], files: Any) -> None:
    store = filled(3)
    for left in (9, 8, 7, 7):
        ticks(store, FOUR_MS, 1)
        assert len(logs(files)) == left


def test_a_file_that_is_not_durable_stays(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    store = open_store(file_reserved_time=0)
    files.now_ms = OLD_MS
    store.put([message(body=bytes(7000)) for _ in range(3)], FOUR_MS)
    store.flush.flush_all()
    store.put([message(body=bytes(7000)) for _ in range(3)], FOUR_MS)
    ticks(store, FOUR_MS + 1)
    assert store.min_physical_offset == 2 * 8192, "the third was synced before it was full"
    disk = files.after_power_loss()
    assert open_store(disk).min_physical_offset == 2 * 8192
    store.flush.flush_all()
    ticks(store, FOUR_MS + 60_000)
    assert store.min_physical_offset == 5 * 8192


def test_what_a_slave_needs_stays_as_long_as_there_is_room(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(3)
    needed: list[int | None] = [2 * 8192 - 1]
    store.keep(lambda: needed[0])
    ticks(store, FOUR_MS)
    assert store.min_physical_offset == 8192
    files.ratio = 0.80
    ticks(store, FOUR_MS + 60_000)
    assert store.min_physical_offset == 3 * 8192


def test_none_is_skipped(filled: Callable[..., MessageStore], files: Any) -> None:
    store = filled(3)
    files.modified[logs(files)[1]] = YOUNG_MS
    ticks(store, FOUR_MS)
    assert len(logs(files)) == 9


def test_a_file_that_somebody_has_removed_is_passed_over(tmp_path: Path, message: Build) -> None:
    config = StoreConfig(
        store_path_root_dir=str(tmp_path),
        mapped_file_size_commit_log=8192,
        max_hash_slot_num=7,
        max_index_num=40,
        file_reserved_time=0,
    )
    store = MessageStore(config)
    store.load(FOUR_MS)
    store.put([message(body=bytes(7000)) for _ in range(4)], FOUR_MS)
    first, *_ = sorted((tmp_path / "commitlog").iterdir())
    first.unlink()
    store.flush.flush_all()
    far_ms = FOUR_MS * 2
    store.delete_expired(far_ms)
    ticks(store, far_ms)
    assert len(list((tmp_path / "commitlog").iterdir())) == 1
    store.stop(FOUR_MS)


def test_no_file_is_unlinked_where_the_store_lives(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(3, max_index_num=4)
    for second in range(9):
        tick(store, FOUR_MS + second * 1000)
    assert files.removed == []
    assert store.min_physical_offset == 3 * 8192, "though they have left the row"
    assert store.get("Topic", 0, 0, 1, 9000).next_begin_offset == 3
    job = store.removals.begin()
    assert job is not None
    assert store.removals.begin() is None, "one at a time"
    job.run()
    store.removals.finish(job)
    folders = [path.split("/")[2] for path in files.removed]
    assert folders == ["commitlog"] * 3 + ["index"]
    assert len(logs(files)) == 7
    assert store.removals.begin() is None


def test_no_young_file_goes_for_room_that_is_being_made(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(10, delete_file_batch_max=2)
    files.ratio = 0.86
    for second in range(25):
        tick(store, NOON_MS + second * 1000)
    assert store.min_physical_offset == 2 * 8192, "what the first two free does not show yet"
    unlink(store)
    files.ratio = 0.5
    tick(store, NOON_MS + 60_000)
    assert store.min_physical_offset == 2 * 8192


def test_what_left_its_row_and_is_still_there_is_harmless(
    filled: Callable[..., MessageStore], open_store: OpenStore, files: Any
) -> None:
    store = filled(3)
    for second in range(3):
        tick(store, FOUR_MS + second * 1000)
    again = files.after_kill()
    again.modified = dict(files.modified)
    after = open_store(again)
    assert after.min_physical_offset == 0, "as if they had never left"
    assert after.get("Topic", 0, 0, 1, 9000).count == 1
    assert after.get("Topic", 0, 9, 1, 9000).count == 1
    after.flush.flush_all()
    ticks(after, FOUR_MS)
    assert after.min_physical_offset == 3 * 8192
    assert len(logs(again)) == 7


def test_a_queue_made_anew_keeps_its_file_though_the_old_one_was_to_be_unlinked(
    filled: Callable[..., MessageStore], files: Any, message: Build
) -> None:
    store = filled(9)
    tick(store, FOUR_MS)
    for second in range(10):
        tick(store, FOUR_MS + second * 1000)
    first = "/store/consumequeue/Topic/0/" + "0" * 20
    assert first in files.maps, "expired, and still to be unlinked"
    job = store.removals.begin()
    assert job is not None
    store.delete_topic("Topic")
    store.put([message()], FOUR_MS)
    assert first in files.maps
    job.run()
    store.removals.finish(job)
    assert first in files.maps
    assert store.get("Topic", 0, 0, 1, 9000).count == 1


def test_what_may_not_be_removed_is_told_and_holds_up_what_is_behind_it(
    filled: Callable[..., MessageStore], files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = files.remove

    def refuse(path: str) -> None:
        if path == first:
            raise PermissionError("not yours")
        remove(path)

    store = filled(3)
    first, second, *_ = logs(files)
    monkeypatch.setattr(files, "remove", refuse)
    for _ in range(3):
        store.tick(FOUR_MS)
    job = store.removals.begin()
    assert job is not None
    job.run()
    store.removals.finish(job)
    assert str(store.removals.trouble) == "not yours"
    assert second in files.maps, "else the row would have a gap, as if a file were lost"
    assert store.removals.is_empty
    unlink(store)
    assert first in files.maps
    monkeypatch.setattr(files, "remove", remove)
    store.tick(FOUR_MS + 10_000)
    unlink(store)
    assert not {first, second} & files.maps.keys(), "the next round tries again"
    assert store.removals.trouble is None


def test_the_last_file_stays(
    filled: Callable[..., MessageStore], files: Any, message: Build
) -> None:
    store = filled(10)
    ticks(store, FOUR_MS)
    assert len(logs(files)) == 1
    assert store.put([message()], FOUR_MS)[0].queue_offset == 10


def test_a_round_deletes_so_many_and_no_more(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(8, delete_file_batch_max=2)
    ticks(store, FOUR_MS, 10)
    assert len(logs(files)) == 8
    ticks(store, FOUR_MS + 10_000, 10)
    assert len(logs(files)) == 6


def test_queues_and_index_follow(filled: Callable[..., MessageStore], files: Any) -> None:
    store = filled(7)
    ticks(store, FOUR_MS)
    assert store.min_offset("Topic", 0) == 7
    assert store.max_offset("Topic", 0) == 10
    assert len([path for path in files.maps if "consumequeue" in path]) == 1
    assert store.earliest_store_time("Topic", 0) == FOUR_MS
    found = finished(store.query("Topic", "k", 64, 0, FOUR_MS * 2))
    assert len(found.buffers) == 3


def test_what_refers_to_lost_messages_goes_a_queue_at_a_step(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    queues = 50
    store = open_store(file_reserved_time=0)
    for _ in range(8):
        store.put([message(f"T{each % 5}", each, bytes(400)) for each in range(queues)], FOUR_MS)
    store.flush.flush_all()
    files.modified = dict.fromkeys(files.modified, OLD_MS)
    for second in range(5):
        store.tick(FOUR_MS + second * 1000)
    steps = store.follow_log()
    assert steps is not None
    assert store.follow_log() is None, "it is under way"
    before = _first_offsets(store, queues)
    assert sum(before) == 0
    for taken, _ in enumerate(steps, 1):
        after = _first_offsets(store, queues)
        assert sum(a != b for a, b in zip(before, after, strict=True)) <= 1
        before = after
        if taken == queues // 2:
            store.delete_topic("T4")
            store.put([message("T4", 4)], FOUR_MS)
    assert taken > queues // 2
    assert all(first > 0 for number, first in enumerate(before) if number % 5 != 4)
    assert (store.min_offset("T4", 4), store.max_offset("T4", 4)) == (0, 1), "it was made anew"
    assert store.follow_log() is None, "all of it has followed"


def _first_offsets(store: MessageStore, queues: int) -> list[int]:
    return [store.min_offset(f"T{each % 5}", each) for each in range(queues)]


def test_what_was_given_up_half_way_is_done_again(filled: Callable[..., MessageStore]) -> None:
    store = filled(3)
    for second in range(5):
        store.tick(FOUR_MS + second * 1000)
    steps = store.follow_log()
    assert steps is not None
    next(steps)
    steps.close()
    again = store.follow_log()
    assert again is not None
    finished(again)
    assert store.min_offset("Topic", 0) == 3


def test_index_files_follow(filled: Callable[..., MessageStore], files: Any) -> None:
    store = filled(7, max_index_num=4)
    before = len([path for path in files.maps if "index" in path])
    ticks(store, FOUR_MS)
    assert before == 4
    assert len([path for path in files.maps if "index" in path]) == 2


def test_old_files_go_at_any_hour_when_the_disk_is_rather_full(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(3)
    files.ratio = 0.75
    ticks(store, NOON_MS)
    assert len(logs(files)) == 10
    files.ratio = 0.76
    ticks(store, NOON_MS + 60_000)
    assert len(logs(files)) == 7


@pytest.mark.parametrize(("enabled", "left"), [(True, 1), (False, 7)])
def test_young_files_go_when_the_disk_is_very_full(
    filled: Callable[..., MessageStore], files: Any, enabled: bool, left: int
) -> None:
    store = filled(3, clean_file_forcibly_enable=enabled)
    files.ratio = 0.86
    ticks(store, NOON_MS)
    assert len(logs(files)) == left
    assert store.writeable


def test_the_bounds_of_the_ratios_are_the_originals(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    store = filled(0, disk_space_warning_level_ratio=99, disk_space_clean_forcibly_ratio=99)
    files.ratio = 0.86
    ticks(store, NOON_MS, 1)
    assert store.writeable
    assert len(logs(files)) == 9
    files.ratio = 0.91
    ticks(store, NOON_MS + 20_000, 1)
    assert not store.writeable


def test_a_full_disk_ends_the_taking_of_messages_until_there_is_room(
    filled: Callable[..., MessageStore], files: Any, message: Build
) -> None:
    store = filled(0)
    files.ratio = 0.91
    ticks(store, NOON_MS, 1)
    assert not store.writeable
    assert store.why_not_writeable() == (
        "the disk of /store is 91% full: no messages are stored above 90%"
        " (diskSpaceWarningLevelRatio)"
    )
    assert store.put([message()], NOON_MS)[0].status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.get("Topic", 0, 8, 1, 100).count == 1, "reading goes on"
    files.ratio = 0.5
    ticks(store, NOON_MS + 20_000, 1)
    assert store.put([message()], NOON_MS)[0].status is PutStatus.PUT_OK
    assert store.why_not_writeable() == ""


def test_a_disk_that_is_full_at_the_start_is_told(open_store: OpenStore, files: Any) -> None:
    files.ratio = 0.95
    assert "95% full" in open_store().why_not_writeable()


def test_files_may_be_deleted_on_demand(filled: Callable[..., MessageStore], files: Any) -> None:
    store = filled(3)
    store.delete_expired(NOON_MS)
    unlink(store)
    assert len(logs(files)) == 9
    ticks(store, NOON_MS)
    assert len(logs(files)) == 7
    for path in logs(files):
        files.modified[path] = OLD_MS
    ticks(store, NOON_MS + 60_000, 10)
    assert len(logs(files)) == 1, "for some rounds"


def test_hours_may_change_while_running(filled: Callable[..., MessageStore], files: Any) -> None:
    store = filled(3)
    Configuration([store.config], {}).update({"deleteWhen": "12"})
    ticks(store, NOON_MS)
    assert len(logs(files)) == 7


def test_room_that_is_left_decides_instead_of_ratios_where_it_is_set(
    filled: Callable[..., MessageStore], files: Any
) -> None:
    files.ratio, files.free = 0.99, 40_000
    store = filled(3, disk_space_min_free_bytes=10_000)
    ticks(store, NOON_MS)
    assert len(logs(files)) == 10, "40,000 are four times the floor"
    files.free = 39_999
    ticks(store, NOON_MS + 60_000)
    assert len(logs(files)) == 7, "old ones go at any hour"
    files.free = 19_999
    ticks(store, NOON_MS + 120_000)
    assert len(logs(files)) == 1, "young ones go"
    assert store.writeable
    files.free = 9_999
    ticks(store, NOON_MS + 180_000)
    assert not store.writeable
    files.free = -1
    ticks(store, NOON_MS + 240_000)
    assert store.writeable, "what is not known refuses nothing"
