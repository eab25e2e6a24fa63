# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLoss
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus, Recovered
from txrocketmq.remoting.message.message import decode_messages

NOW_MS = 1_700_000_000_000
FAR_MS = 1 << 50
LOG = "/store/commitlog/"
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


class Model:
    """What was put, as lists: bodies and keys by queue, and the records' offsets in order."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, int], list[bytes]] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.ends: list[int] = []

    def put(self, store: MessageStore, messages: list[PutMessage], now_ms: int) -> None:
        for message, result in zip(messages, store.put(messages, now_ms), strict=True):
            assert result.status is PutStatus.PUT_OK
            bodies = self.bodies.setdefault((message.topic, message.queue_id), [])
            assert result.queue_offset == len(bodies)
            bodies.append(message.body)
            if message.uniq_key:
                self.keys[message.topic, message.uniq_key] = result.physical_offset
            self.ends.append(result.physical_offset + result.size)

    def check(self, store: MessageStore, *, indexed: bool = True) -> None:
        for (topic, queue_id), bodies in self.bodies.items():
            assert all_bodies(store, topic, queue_id) == bodies
        for (topic, key), offset in self.keys.items() if indexed else ():
            found = finished(store.query(topic, key, 64, 0, FAR_MS)).buffers
            offsets = [decode_messages(each)[0].commit_log_offset for each in found]
            assert offset in offsets, (topic, key)


def all_bodies(store: MessageStore, topic: str, queue_id: int) -> list[bytes]:
    bodies: list[bytes] = []
    offset = store.min_offset(topic, queue_id)
    while True:
        result = store.get(topic, queue_id, offset, 32, 1 << 22)
        if not result.count:
            assert result.next_begin_offset == store.max_offset(topic, queue_id)
            return bodies
        found = decode_messages(b"".join(result.buffers))
        assert [each.queue_offset for each in found] == list(
            range(offset, result.next_begin_offset)
        )
        bodies += [each.body for each in found]
        offset = result.next_begin_offset


def reopened(
    files: Any, config: Callable[..., StoreConfig], **settings: Any
) -> tuple[MessageStore, Recovered]:
    store = MessageStore(config(**settings), files=files)
    return store, store.load(NOW_MS)


def mixed(build: Build, count: int, start: int = 0) -> list[PutMessage]:
    """Messages of several topics, queues and sizes."""
    return [
        build(
            "AB"[each % 2],
            each % 3,
            bytes([each % 256]) * (each * 97 % 700),
            uniq_key=f"7F0000010000{each:04X}",
            tags="x" if each % 5 else None,
        )
        for each in range(start, start + count)
    ]


def test_a_store_begins_empty(files: Any, config: Callable[..., StoreConfig]) -> None:
    store, done = reopened(files, config)
    assert done == Recovered(was_closed=True)
    assert str(done) == "The store is new, or empty."
    assert files.exists("/store/abort")
    store.stop(NOW_MS)
    assert not files.exists("/store/abort")


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("count", [1, 7, 60, 200])
def test_what_was_put_is_there_again_and_goes_on(
    open_store: OpenStore,
    files: Any,
    config: Callable[..., StoreConfig],
    message: Build,
    closed: bool,
    count: int,
) -> None:
    store, model = open_store(), Model()
    for start in range(0, count, 16):
        model.put(store, mixed(message, min(16, count - start), start), NOW_MS)
    if closed:
        store.stop(NOW_MS)
    again, done = reopened(files.after_kill(), config)
    assert done.was_closed is closed
    assert not done.was_cut
    assert done.max_offset == model.ends[-1]
    assert done.last_store_timestamp_ms == NOW_MS
    assert done.dispatched_messages == 0
    model.check(again)
    model.put(again, mixed(message, 40, count), NOW_MS)
    model.check(again)


def test_after_an_orderly_stop_only_the_last_files_are_checked(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 200), NOW_MS)
    store.stop(NOW_MS)
    _, done = reopened(files, config)
    assert 0 < done.checked_messages < 40


def test_after_a_crash_it_starts_before_the_checkpoint(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    store.tick(NOW_MS)
    for second in range(100):
        model.put(store, mixed(message, 2, 2 * second), NOW_MS + 1000 * second)
        store.tick(NOW_MS + 1000 * second)
        if job := store.flush.begin():
            job.run()
            store.flush.finish(job)
    _, done = reopened(files.after_kill(), config)
    assert done.checked_messages < 120, "the queues were flushed after a minute"
    files.maps["/store/checkpoint"][:] = bytes(4096)
    _, done = reopened(files.after_kill(), config)
    assert done.checked_messages == 200


@pytest.mark.parametrize("lost", ["consumequeue", "index"])
def test_queues_and_index_are_built_again(
    open_store: OpenStore,
    files: Any,
    config: Callable[..., StoreConfig],
    message: Build,
    lost: str,
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 100), NOW_MS)
    for path in [path for path in files.maps if lost in path]:
        files.remove(path)
    again, done = reopened(files.after_kill(), config)
    assert done.dispatched_messages == (100 if lost == "consumequeue" else 0)
    model.check(again)


def test_a_queue_that_fell_behind_is_brought_up(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 30), NOW_MS)
    for path in sorted(path for path in files.maps if "consumequeue/A/0" in path):
        files.maps[path][20:] = bytes(80)
    again, done = reopened(files.after_kill(), config)
    assert done.dispatched_messages == 4
    assert "4 messages were put into their queues again." in str(done)
    model.check(again)


def test_a_tail_cut_anywhere_in_the_last_record_costs_that_record(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 5), NOW_MS)
    start = model.ends[-1]
    store.put([message("A", 0, b"z" * 40)], NOW_MS)
    body_end = store.max_physical_offset - len("\x01A") - 2
    for cut in range(start, body_end):
        disk = files.after_kill()
        disk.maps[LOG + "0" * 20][cut:] = bytes(8192 - cut)
        again, done = reopened(disk, config)
        assert done.max_offset == start
        assert done.was_cut is (cut >= start + 4), "sizes begin with zeros"
        model.check(again)
        assert disk.maps[LOG + "0" * 20][start:] == bytes(8192 - start)


def test_crc_is_checked_unless_told_otherwise(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store = open_store()
    store.put([message(body=b"x" * 50)] * 3, NOW_MS)
    files.maps[LOG + "0" * 20][100] ^= 1
    _, done = reopened(files.after_kill(), config, check_crc_on_recover=False)
    assert done.checked_messages == 3
    _, done = reopened(files.after_kill(), config)
    assert done.checked_messages == 2
    assert done.damaged_messages == 1


def test_a_prepared_file_that_was_not_needed_is_no_harm(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 10), NOW_MS)
    disk = files.after_kill()
    disk.map(LOG + f"{8192:020}", 8192)
    again, done = reopened(disk, config)
    assert done.max_offset == model.ends[-1]
    model.check(again)
    model.put(again, mixed(message, 60, 10), NOW_MS)
    model.check(again)


def test_a_log_that_lost_its_first_files_moves_the_queues_minimum(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 100), NOW_MS)
    store.stop(NOW_MS)
    files.remove(LOG + "0" * 20)
    again, done = reopened(files, config)
    assert done.min_offset == 8192
    assert len(done.warnings) == 1
    assert "all before 8192 has been removed: 8,192 bytes" in done.warnings[0]
    for (topic, queue_id), bodies in model.bodies.items():
        first = again.min_offset(topic, queue_id)
        assert first > 0
        assert all_bodies(again, topic, queue_id) == bodies[first:]


def test_a_log_that_lost_its_first_files_after_a_kill_is_told_of(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 100), NOW_MS)
    disk = files.after_kill()
    disk.remove(LOG + "0" * 20)
    _, done = reopened(disk, config)
    assert done.min_offset == 8192
    assert "all before 8192 has been removed: 8,192 bytes" in "".join(done.warnings)


def test_a_log_of_which_files_expired_before_a_kill_is_as_it_should_be(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(file_reserved_time=0), Model()
    model.put(store, mixed(message, 100), NOW_MS)
    store.flush.flush_all()
    store.delete_expired(NOW_MS + 1)
    job = store.removals.begin()
    assert job is not None
    job.run()
    _, done = reopened(files.after_kill(), config)
    assert done.min_offset == 8192
    assert not [each for each in done.warnings if "removed" in each]


def test_a_queue_whose_directory_is_empty_is_built_though_the_log_has_a_gap(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 100), NOW_MS)
    disk = files.after_kill()
    disk.directories |= {"/store/consumequeue/New", "/store/consumequeue/New/0"}
    disk.remove(LOG + f"{8192:020}")
    with pytest.raises(StoreLoss, match="lacks 1 file of the log"):
        reopened(disk, config)


def test_an_index_ahead_of_the_log_is_dropped(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(max_index_num=1000), Model()
    model.put(store, mixed(message, 10), NOW_MS)
    store.tick(NOW_MS)
    mapped = files.maps[LOG + "0" * 20]
    mapped[model.ends[4] :] = bytes(8192 - model.ends[4])
    disk = files.after_kill()
    again, _ = reopened(disk, config, max_index_num=1000)
    assert finished(again.query("A", "7F00000100000008", 9, 0, FAR_MS)).buffers == []
    result = again.put([message("A", 0, uniq_key="7F00000100000008")], NOW_MS)
    found = finished(again.query("A", "7F00000100000008", 9, 0, FAR_MS)).buffers
    assert [decode_messages(each)[0].commit_log_offset for each in found] == [
        result[0].physical_offset
    ]


def test_what_was_durable_survives_a_loss_of_power(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 50), NOW_MS)
    job = store.flush.begin()
    assert job is not None
    job.run()
    store.flush.finish(job)
    store.put(mixed(message, 50, 50), NOW_MS)
    store.tick(NOW_MS)
    again, done = reopened(files.after_power_loss(), config)
    assert done.max_offset >= model.ends[-1]
    for key, bodies in model.bodies.items():
        assert all_bodies(again, *key)[: len(bodies)] == bodies


def test_what_a_killed_process_wrote_is_made_durable_before_it_is_said_to_be(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    """Its bytes are in the system's memory only, also of files that nothing more is written to."""
    store, model = open_store(), Model()
    model.put(store, mixed(message, 50), NOW_MS)
    disk = files.after_kill()
    store, _ = reopened(disk, config)
    model.put(store, [message("C", body=bytes(7000))], NOW_MS)
    store.flush.flush_all()
    again, _ = reopened(disk.after_power_loss(), config)
    model.check(again)


def test_queues_that_a_killed_process_wrote_are_durable_before_the_checkpoint_says_so(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 200), NOW_MS)
    disk = files.after_kill()
    store, _ = reopened(disk, config)
    for minute in range(1, 5):
        now_ms = NOW_MS + 70_000 * minute
        model.put(store, [message("C", body=bytes(7000))], now_ms)
        store.tick(now_ms)
        store.flush.flush_all()
    again, done = reopened(disk.after_power_loss(), config)
    assert done.checked_messages < 200
    model.check(again, indexed=False)


class Killed(BaseException):
    """The process is gone."""


class MortalMap(mmap.mmap):
    """Memory whose writer is killed at a write, before or after it."""

    left = 1 << 30
    after = False

    def __setitem__(self, key: Any, value: Any) -> None:
        cls = MortalMap
        cls.left -= 1
        if cls.left == 0 and not cls.after:
            raise Killed
        super().__setitem__(key, value)
        if cls.left == 0:
            raise Killed


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_it_keeps_what_was_acknowledged(
    files: Any, config: Callable[..., StoreConfig], message: Build, after: bool
) -> None:
    kill_at, acknowledged = 0, 0
    while acknowledged < 60:
        kill_at += 1
        disk, model = type(files)(), Model()
        disk.map = lambda path, size, on=disk: on.maps.setdefault(path, MortalMap(-1, size))
        MortalMap.left = 1 << 30
        store, _ = reopened(disk, config)
        MortalMap.left, MortalMap.after = kill_at, after
        acknowledged = 0
        try:
            for start in range(0, 60, 12):
                model.put(store, mixed(message, 12, start), NOW_MS)
                acknowledged += 12
                store.tick(NOW_MS)
        except Killed:
            pass
        disk.modified = dict.fromkeys([*disk.maps, *disk.small], NOW_MS)
        again, done = reopened(disk.after_kill(), config)
        assert not done.warnings
        expected = Model()
        for each in mixed(message, 60):
            expected.bodies.setdefault((each.topic, each.queue_id), []).append(each.body)
        for key, bodies in model.bodies.items():
            found = all_bodies(again, *key)
            assert found == expected.bodies[key][: len(found)]
            assert len(found) >= len(bodies)
        model.bodies.clear()
        model.check(again)
    assert kill_at > 20


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_recovery_equals_the_model_whatever_happens(
    files: Any, config: Callable[..., StoreConfig], message: Build, data: st.DataObject
) -> None:
    """Puts, ticks, flushes, stops and crashes in any order: what was acknowledged is there."""
    disk, model, number, indexed = type(files)(), Model(), 0, True
    store, _ = reopened(disk, config)
    now_ms = NOW_MS
    steps = st.sampled_from(["put", "put", "put", "tick", "flush", "stop", "kill", "power"])
    for step in data.draw(st.lists(steps, min_size=3, max_size=25)):
        now_ms += data.draw(st.sampled_from([0, 1, 1000, 70_000]))
        if step == "put":
            count = data.draw(st.integers(1, 40))
            model.put(store, mixed(message, count, number), now_ms)
            number += count
        elif step == "tick":
            store.tick(now_ms)
        elif step == "flush":
            store.flush.flush_all()
        else:
            if step == "stop":
                store.stop(now_ms)
            if step == "power":
                store.flush.flush_all()
                indexed = False  # without messageIndexSafe only what recovery comes by
            disk = disk.after_power_loss() if step == "power" else disk.after_kill()
            store, done = reopened(disk, config)
            assert not done.was_cut
            assert not done.warnings
    store.stop(now_ms)
    store, _ = reopened(disk.after_kill(), config)
    model.check(store, indexed=indexed)


def test_messages_of_a_deleted_topic_do_not_come_back_when_it_is_made_anew(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store = open_store()
    store.put([message("A", each % 2, b"old") for each in range(20)], NOW_MS)
    store.delete_topic("A")
    store.put([message("A", 0, b"new")] * 3, NOW_MS)
    again, _ = reopened(files.after_kill(), config)
    assert all_bodies(again, "A", 0) == [b"new"] * 3
    assert again.max_offset("A", 1) == 0


def test_files_of_a_former_life_that_are_back_after_a_power_cut_are_no_more_gone_on_with(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store = open_store()
    store.put([message("A", 0, b"old")] * 20, NOW_MS)
    kept = {path: files.maps[path][:] for path in files.maps if "/A/" in path}
    store.delete_topic("A")
    store.put([message("A", 0, b"new")] * 3, NOW_MS)
    job = store.flush.begin()
    assert job is not None
    assert job.paths[0] == "/store/deleted/A"
    disk = files.after_kill()
    for path, content in kept.items():
        disk.map(path, len(content))[:] = content
    again, _ = reopened(disk, config)
    assert all_bodies(again, "A", 0) == [b"new"] * 3


def test_what_was_found_damaged_stays_out_after_an_orderly_stop(
    open_store: OpenStore, files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    store = open_store()
    store.put([message(body=b"%d" % number * 50) for number in range(3)], NOW_MS)
    disk = files.after_kill()
    log = disk.maps[LOG + "0" * 20]
    log[log.find(b"1" * 50)] ^= 1
    again, done = reopened(disk, config)
    assert "damaged" in " ".join(done.warnings)
    assert served(again) == [b"0" * 50, b"2" * 50]
    again.stop(NOW_MS)
    once_more, _ = reopened(disk.after_kill(), config)
    assert served(once_more) == [b"0" * 50, b"2" * 50]


def served(store: MessageStore) -> list[bytes]:
    """The bodies of the first queue, in which units may be missing."""
    buffers: list[memoryview] = []
    offset = 0
    while offset < store.max_offset("Topic", 0):
        result = store.get("Topic", 0, offset, 32, 1 << 22)
        buffers += result.buffers
        offset = result.next_begin_offset
    return [each.body for each in decode_messages(b"".join(buffers))]
