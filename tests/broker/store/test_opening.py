# SPDX-License-Identifier: Apache-2.0
"""Opening stores of which something is missing or damaged, all settings at their defaults.

What the log has is served again, whatever else is missing; what the log has lost is never passed
over in silence, and nothing is deleted or written over because something was not found.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.broker.store.filled import QUEUES, WORD, Build, Config, Filled
from tests.broker.store.opening.test_recover import LOG, Model, all_bodies, mixed, reopened
from txrocketmq.broker.store.formats.config import SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.formats.errors import FileSizeError, StoreError, StoreLoss
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.remoting.message.message import decode_messages

NOW_MS = 1_700_000_000_000


# --- entries that cannot be looked at ---


@pytest.fixture
def on_disk(tmp_path: Path, message: Build) -> Path:
    root = tmp_path / "store"
    store = MessageStore(disk_config(root))
    store.load(NOW_MS)
    store.put([message(body=bytes([each]), uniq_key="K" * 32) for each in range(50)], NOW_MS)
    store.stop(NOW_MS)
    return root


def disk_config(root: Path) -> StoreConfig:
    return StoreConfig(
        store_path_root_dir=str(root),
        mapped_file_size_commit_log=8192,
        mapped_file_size_consume_queue=2000,
        max_hash_slot_num=7,
        max_index_num=400,
    )


@pytest.mark.parametrize("place", ["commitlog", "consumequeue/Topic/0", "consumequeue", "index"])
def test_a_dangling_link_refuses_the_start_and_costs_nothing(on_disk: Path, place: str) -> None:
    link = on_disk / place / "00000000000000008192"
    link.symlink_to("/nowhere/at/all")
    before = {path: path.read_bytes() for path in on_disk.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match="it is a link to /nowhere/at/all, which does not exist"):
        MessageStore(disk_config(on_disk)).load(NOW_MS)
    assert {path: path.read_bytes() for path in on_disk.rglob("*") if path.is_file()} == before
    link.unlink()
    store = MessageStore(disk_config(on_disk))
    store.load(NOW_MS)
    assert all_bodies(store, "Topic", 0) == [bytes([each]) for each in range(50)]
    store.stop(NOW_MS)


@pytest.mark.parametrize("name", [".DS_Store", ".nfs000000000000002a00000001"])
def test_foreign_names_are_named_and_left_alone(on_disk: Path, name: str) -> None:
    places = ["commitlog", "consumequeue", "consumequeue/Topic", "consumequeue/Topic/0", "index"]
    for place in places:
        (on_disk / place / name).write_text("x")
    store = MessageStore(disk_config(on_disk))
    done = store.load(NOW_MS)
    assert len(done.warnings) == len(places)
    assert all(name in each and "is not changed" in each for each in done.warnings)
    assert len(all_bodies(store, "Topic", 0)) == 50
    store.stop(NOW_MS)
    assert all((on_disk / place / name).exists() for place in places)


def test_a_store_may_be_opened_on_a_real_disk_without_its_queues(on_disk: Path) -> None:
    for name in ("consumequeue", "index"):
        os.rename(on_disk / name, on_disk / ("old-" + name))
    store = MessageStore(disk_config(on_disk))
    store.load(NOW_MS)
    assert all_bodies(store, "Topic", 0) == [bytes([each]) for each in range(50)]
    store.stop(NOW_MS)
    os.rename(on_disk / "commitlog", on_disk / "elsewhere")
    with pytest.raises(StoreLoss, match="50 messages"):
        MessageStore(disk_config(on_disk)).load(NOW_MS)
    (on_disk / "accept_loss").touch()
    store = MessageStore(disk_config(on_disk))
    store.load(NOW_MS)
    assert store.max_offset("Topic", 0) == 0
    store.stop(NOW_MS)
    (moved,) = (on_disk / "lost").iterdir()
    assert (moved / "consumequeue" / "Topic" / "0" / ("0" * 20)).stat().st_size == 2000


# --- power cuts and many log files ---


def test_after_a_power_cut_all_files_of_the_log_are_looked_at(
    files: Any, config: Config, message: Build
) -> None:
    sizes = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_consume_queue": 6_000_000}
    store, _ = reopened(files, config, flush_disk_type=SYNC_FLUSH, **sizes)
    chance, model = random.Random(1), Model()
    for start in range(0, 800, 20):
        bodies = [chance.randbytes(8) * chance.randrange(2560, 3840) for _ in range(20)]
        model.put(
            store, [message("T", n % 4, body) for n, body in enumerate(bodies)], NOW_MS + start
        )
        job = store.flush.begin()
        assert job is not None
        job.run()
        store.flush.finish(job)
    assert len([path for path in files.maps if path.startswith(LOG)]) > 15
    again, _ = reopened(files.after_power_loss(), config, **sizes)
    model.check(again)


@pytest.mark.parametrize("keeps_queues", [True, False])
@pytest.mark.parametrize("keeps_next", [True, False])
def test_after_a_power_cut_a_file_without_its_size_held_nothing_that_was_durable(
    files: Any, config: Config, message: Build, keeps_next: bool, keeps_queues: bool
) -> None:
    store, _ = reopened(files, config)
    durable = [b"%d" % n * 200 for n in range(8)]
    store.put([message("T", 0, body) for body in durable], NOW_MS)
    job = store.flush.begin()
    assert job is not None
    job.run()
    store.flush.finish(job)
    end = store.max_physical_offset
    store.put([message("T", 0, bytes(1_000)) for _ in range(24)], NOW_MS)
    first, after = (LOG + f"{number * 8192:020d}" for number in (1, 2))
    assert end < 8192
    assert after in files.maps
    disk = files.after_power_loss()
    disk.maps.pop(first, None)
    disk.small[first] = b""
    if keeps_next:
        disk.map(after, 8192)[:] = files.maps[after]
    else:
        disk.small[after] = b""
    for path in disk.maps if keeps_queues else ():
        if path.startswith("/store/consumequeue/"):
            disk.maps[path][:] = files.maps[path]
    again, done = reopened(disk, config)
    assert keeps_next or bool(done.lost_messages) == keeps_queues
    for offset, body in enumerate(durable):
        got = again.get("T", 0, offset, 1, 1 << 20)
        assert [each.body for each in decode_messages(b"".join(got.buffers))] == [body]
    assert keeps_next or again.max_physical_offset == end


# --- the log ---


def test_without_its_log_a_store_is_not_opened(filled: Filled) -> None:
    filled.remove("/store/commitlog")
    text = filled.refused()
    assert "/store/consumequeue knows of 100 messages" in text
    assert "Nothing has been changed" in text
    store, done = filled.accepted()
    assert any("100 messages" in each for each in done.warnings)
    assert store.topics() == []
    assert len([path for path in filled.disk.maps if path.startswith("/store/lost/")]) > 20
    store.stop(NOW_MS)
    _, done = reopened(filled.disk, filled.config)
    assert done.warnings == []


@pytest.mark.parametrize("left", ["checkpoint", "index", "consumequeue"])
def test_each_trace_of_messages_refuses_a_start_without_log(closed: Filled, left: str) -> None:
    closed.remove("/store/commitlog")
    for name in {"checkpoint", "index", "consumequeue"} - {left}:
        closed.remove("/store/" + name)
    closed.disk.remove("/store/inventory")
    closed.refused()


@pytest.mark.parametrize("number", [1, 2, -2])
def test_a_file_missing_in_the_log_is_not_gone_on_without(filled: Filled, number: int) -> None:
    path = filled.logs()[number]
    first = int(path[len(LOG) :])
    lost = sum(first < end <= first + 8192 for end in filled.model.ends)
    filled.disk.remove(path)
    assert f"queues refer to {lost} messages there" in filled.refused()
    store, done = filled.accepted()
    assert any(f"{lost} messages" in each for each in done.warnings)
    check_all_but(filled, store, first, first + 8192)


def check_all_but(filled: Filled, store: MessageStore, first: int, after: int) -> None:
    """All messages of the model are got one by one, but for those in a part of the log."""
    served = 0
    for (topic, queue_id), bodies in filled.model.bodies.items():
        for offset in range(len(bodies)):
            unit = next(store.queue_units(topic, queue_id, offset, 1), None)
            if unit is None or first <= unit.physical_offset < after:
                continue
            got = store.get(topic, queue_id, offset, 1, 1 << 20)
            assert got.count == 1
            assert bytes(bodies[offset]) in bytes(got.buffers[0])
            served += 1
    assert served == sum(not first < end <= after for end in filled.model.ends)


@pytest.mark.parametrize("how", ["gone", "empty", "zeroed", "cut"])
def test_the_last_file_of_the_log_is_not_gone_on_without(filled: Filled, how: str) -> None:
    path = filled.logs()[-1]
    first = int(path[len(LOG) :])
    mapped = filled.disk.maps[path]
    if how == "zeroed":
        mapped[:] = bytes(8192)
    else:
        del filled.disk.maps[path]
        if how != "gone":
            filled.disk.small[path] = mapped[: 900 if how == "cut" else 0]
    text = filled.refused()
    left = max(end for end in filled.model.ends if end <= first + 900 * (how == "cut"))
    left = max(left, first)
    lost = sum(end > left for end in filled.model.ends)
    if how == "cut":
        assert "was cut: it has 900 of 8192 bytes" in text
        assert left > first
    else:
        assert f"{lost} messages" in text
    store, done = filled.accepted()
    assert done.max_offset == left
    assert any(f"{lost} messages" in each for each in done.warnings)
    check_all_but(filled, store, left, 1 << 60)
    store.stop(NOW_MS)
    _, done = reopened(filled.disk, filled.config)
    assert done.warnings == [], "the loss is told once"


def test_one_cut_file_alone_may_be_a_matter_of_configuration(
    files: Any, config: Config, message: Build
) -> None:
    store, _ = reopened(files, config)
    store.put([message()] * 3, NOW_MS)
    store.stop(NOW_MS)
    path = LOG + "0" * 20
    files.small[path] = files.maps.pop(path)[:4096]
    with pytest.raises(FileSizeError, match=r"mappedFileSizeCommitLog.*accept_loss"):
        reopened(files, config)


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_bit_costs_one_message(filled: Filled, seed: int) -> None:
    chance = random.Random(seed)
    files = filled.disk.after_kill()
    starts = [0, *filled.model.ends[:-1]]
    number = chance.randrange(len(starts) - 1)
    start, end = filled.model.ends[number] - 90, filled.model.ends[number]
    path = LOG + f"{start - start % 8192:020}"
    files.maps[path][chance.randrange(start, end) % 8192] ^= 1 << chance.randrange(8)
    # The checkpoint is lost too, so that after a crash the whole log is checked.
    files.maps["/store/checkpoint"][:] = bytes(4096)
    store, done = reopened(files, filled.config)
    assert done.max_offset == filled.model.ends[-1]
    assert done.damaged_messages <= 1
    if done.damaged_messages:
        assert any("1 message that queues refer to there" in each for each in done.warnings)
    kept = {
        (line.physical_offset, line.size_bytes)
        for key in filled.model.bodies
        for line in store.queue_units(*key, 0, 100)
    }
    assert len(kept) == 100


def test_data_behind_a_damage_that_nothing_proves_is_not_given_up(closed: Filled) -> None:
    closed.remove("/store/consumequeue")
    path = closed.logs()[-1]
    first = int(path[len(LOG) :])
    closed.disk.maps[path][100] ^= 1
    lost = sum(end > first for end in closed.model.ends)
    assert "nothing that can be read" in closed.refused()
    store, done = closed.accepted()
    assert done.max_offset == first
    assert any(each.startswith("/store/lost/") for each in closed.disk.small)
    assert sum(store.max_offset(*key) for key in closed.model.bodies) == 100 - lost


def test_old_records_behind_a_cut_never_come_back(
    files: Any, config: Config, message: Build
) -> None:
    """As an original broker leaves them, which does not clear what it cuts off."""
    store, _ = reopened(files, config)
    same = [message("A", 0, bytes([each]) * 50) for each in range(6)]
    size = store.put(same, NOW_MS)[0].size
    mapped = files.maps[LOG + "0" * 20]
    stale = mapped[2 * size :]
    disk = files.after_kill()
    for path in [path for path in disk.maps if path.startswith(QUEUES)]:
        disk.remove(path)
    disk.maps[LOG + "0" * 20][size + 100] ^= 1  # the body of the second
    again, done = reopened(disk, config)
    assert (done.max_offset, done.was_cut) == (size, True)
    assert f"damaged from {size} on" in str(done)
    again.put([message("A", 0, b"n" * 50)], NOW_MS)
    disk.maps[LOG + "0" * 20][2 * size :] = stale
    disk.maps[LOG + "0" * 20][size + 100] ^= 1
    once_more, _ = reopened(disk.after_kill(), config)
    assert all_bodies(once_more, "A", 0) == [same[0].body]


def test_a_torn_tail_after_a_crash_is_cut_off_with_a_warning(
    files: Any, config: Config, message: Build
) -> None:
    store, _ = reopened(files, config)
    model = Model()
    model.put(store, mixed(message, 12), NOW_MS)
    end = model.ends[-1]
    store.flush.flush_all()
    store.put(mixed(message, 3, 12), NOW_MS + 1)
    disk = files.after_kill()
    disk.maps[LOG + "0" * 20][end + 2 :] = bytes(8192 - end - 2)
    again, done = reopened(disk, config)
    assert done.max_offset == end
    assert done.lost_messages == 3
    assert any("queues refer to 3 messages there" in each for each in done.warnings)
    model.check(again)


def test_a_clock_that_was_set_back_loses_nothing(
    files: Any, config: Config, message: Build
) -> None:
    store, model = reopened(files, config)[0], Model()
    model.put(store, mixed(message, 30), NOW_MS + 3_600_000)
    store.flush.flush_all()
    model.put(store, mixed(message, 30, 30), NOW_MS)
    again, done = reopened(files.after_kill(), config)
    assert done.warnings == []
    model.check(again)


def test_refused_messages_leave_no_trace_in_the_checkpoint(
    files: Any, config: Config, message: Build
) -> None:
    store, model = reopened(files, config)[0], Model()
    model.put(store, mixed(message, 3), NOW_MS)
    store.put([message("bad/name")], NOW_MS + 5000)
    store.put([message("A", -1)], NOW_MS + 6000)
    store.flush.flush_all()
    model.check(reopened(files.after_kill(), config)[0])


def test_the_word_is_removed_when_nothing_was_missing(closed: Filled) -> None:
    closed.disk.write(WORD, b"")
    _, done = reopened(closed.disk, closed.config)
    assert not closed.disk.exists(WORD)
    assert any("was not needed" in each for each in done.warnings)
