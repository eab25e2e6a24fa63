# SPDX-License-Identifier: Apache-2.0
"""Brokers that go on with the timers of others: stopped in order, killed, and with broken files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker.timer.scene import SECOND_MS, Scene
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.timers.timer_check import TimerProgress
from txrocketmq.broker.store.timers.timer_log import TimerLog

COUNT = 200


@pytest.fixture
def pending(tmp_path: Path) -> Scene:
    """Some messages were delivered, others wait; the broker is not stopped yet."""
    scene = Scene(tmp_path)
    for n in range(COUNT):
        scene.later(1 + n % 40, b"%d" % n)
    scene.tick()
    for _ in range(10):
        scene.tick(SECOND_MS)
    scene.keep()
    return scene


def all_delivered(scene: Scene, *, once: bool) -> None:
    """Time goes by, and all is there."""
    for _ in range(60):
        scene.tick(SECOND_MS)
    seen = scene.seen()
    assert set(seen) == {b"%d" % n for n in range(COUNT)}
    if once:
        assert len(seen) == COUNT
    assert not scene.unread
    assert not scene.failures
    assert scene.timers.wheelwork.waiting == 0
    scene.close()


def test_a_broker_that_was_stopped_goes_on(pending: Scene) -> None:
    pending.close()
    scene = pending.again(3 * SECOND_MS)
    assert scene.said == []
    assert scene.timers.wheelwork.waiting > 0
    all_delivered(scene, once=True)


def test_a_broker_that_was_killed_goes_on(pending: Scene) -> None:
    """What came after the progress was kept is in the log, and is not read from the queue again."""
    for n in range(3):
        pending.later(20, b"%d" % n)
    pending.tick()
    pending.kill()
    scene = pending.again()
    assert scene.said == []
    assert len(scene.timers.wheelwork.known) == 3
    for _ in range(60):
        scene.tick(SECOND_MS)
    assert len(scene.seen()) == COUNT + 3
    assert not scene.timers.wheelwork.known
    scene.close()


def test_what_was_delivered_since_comes_twice_and_nothing_is_lost(pending: Scene) -> None:
    pending.tick(5 * SECOND_MS)
    assert len(set(pending.seen())) == len(pending.seen())
    pending.kill()
    all_delivered(pending.again(), once=False)


def test_opened_many_times(pending: Scene) -> None:
    scene, order = pending, random.Random(3)
    for _ in range(8):
        if order.random() < 0.5:
            scene.close()
        else:
            scene.kill()
        scene = scene.again(order.randrange(3) * SECOND_MS)
        scene.tick(SECOND_MS)
        if order.random() < 0.5:
            scene.keep()
    all_delivered(scene, once=False)


def test_two_weeks_without_a_broker(pending: Scene) -> None:
    """The slots are used again then; what waited comes late."""
    pending.close()
    all_delivered(pending.again(16 * 24 * 3600 * SECOND_MS), once=True)


def _wheel(store: Path) -> Path:
    return store / "timerwheel"


def _log(store: Path) -> Path:
    return store / "timerlog" / f"{0:020d}"


def _check(store: Path) -> Path:
    return store / "config" / "timercheck"


FOREIGN = random.Random(7).randbytes


@pytest.mark.parametrize("file_of", [_wheel, _log, _check])
@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: FOREIGN(len(data)),
        lambda data: bytes(len(data)),
        lambda data: data[: len(data) // 2],
        lambda data: data[:30] + FOREIGN(500) + data[530:],
        lambda data: data + b"x",
        lambda data: b"\xff" * len(data),
        lambda data: None,
    ],
    ids="empty foreign zeros half some longer ones gone".split(),
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_foreign_bytes(
    pending: Scene,
    file_of: Callable[[Path], Path],
    change: Callable[[bytes], bytes | None],
    *,
    is_closed: bool,
) -> None:
    """The wheel is made of the log, the log of the queue; and all is delivered."""
    if is_closed:
        pending.close()
    else:
        pending.kill()
    path = file_of(pending.folder / "store")
    before = path.read_bytes()
    data = change(before)
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    scene = pending.again()
    says_nothing_wrong = data is not None and data[:24] == before[:24]
    if path.name == "timercheck" and not says_nothing_wrong:
        assert scene.said
    if path.parent.name == "timerlog":
        assert scene.said
    all_delivered(scene, once=False)


def test_a_chain_that_leads_astray(pending: Scene) -> None:
    """The wheel is made anew while the broker runs."""
    wheel = pending.timers.wheelwork.wheel
    wheel.add(pending.timers.wheelwork.read_ms + 3 * SECOND_MS, 0, 1)
    all_delivered(pending, once=False)
    assert any("built again" in each for each in pending.said)


@pytest.mark.parametrize(
    "prev_pos", [lambda at: at, lambda at: at + 52, lambda at: 3, lambda _: -7]
)
def test_a_unit_that_leads_astray(pending: Scene, prev_pos: Callable[[int], int]) -> None:
    """Neither is it followed for ever, nor is anything lost."""
    wheelwork = pending.timers.wheelwork
    slot = wheelwork.wheel.slot(wheelwork.read_ms + 3 * SECOND_MS)
    assert slot is not None
    file = wheelwork.log.files.find(slot.last_pos)
    assert file is not None
    at = slot.last_pos - file.from_offset
    file.map()[at + 4 : at + 12] = prev_pos(slot.last_pos).to_bytes(8, "big", signed=True)
    all_delivered(pending, once=False)
    assert any("timerlog" in each for each in pending.said)
    assert list((pending.folder / "store" / "lost").glob("*/timerlog"))


def test_a_unit_of_another_record(pending: Scene) -> None:
    """It is not delivered in its place."""
    wheelwork = pending.timers.wheelwork
    slot = wheelwork.wheel.slot(wheelwork.read_ms + 3 * SECOND_MS)
    assert slot is not None
    file = wheelwork.log.files.find(slot.last_pos)
    assert file is not None
    at = slot.last_pos - file.from_offset
    file.map()[at + 28 : at + 36] = (1).to_bytes(8, "big")
    for _ in range(60):
        pending.tick(SECOND_MS)
    assert len(pending.seen()) == COUNT - 1
    assert [count for count, _ in pending.unread] == [1]
    pending.close()


def test_a_commit_log_that_has_lost_its_end(pending: Scene) -> None:
    """Units of what it has lost are no more."""
    wheelwork = pending.timers.wheelwork
    end = wheelwork.log.end
    place = pending.parts.store.max_physical_offset, 100, 1
    wheelwork.put(wheelwork.write_ms + 20 * SECOND_MS, place, takes_back=False)
    pending.kill()
    scene = pending.again()
    assert scene.timers.wheelwork.log.end == end
    assert scene.said == []
    all_delivered(scene, once=True)


def test_chains_of_the_original_that_lost_their_beginning(pending: Scene) -> None:
    """Its wheel may lack a slot after a crash; then a chain begins in the middle."""
    wheelwork = pending.timers.wheelwork
    due_ms = wheelwork.read_ms + 3 * SECOND_MS
    slot = wheelwork.wheel.slot(due_ms)
    assert slot is not None
    wheelwork.wheel.clear(due_ms)
    for seconds in (2, 3, 4):
        pending.later(seconds, b"0")
    pending.tick()
    pending.keep()
    pending.close()
    scene = pending.again()
    end = scene.timers.wheelwork.log.end
    scene.close()
    scene = scene.again()
    assert scene.timers.wheelwork.log.end == end
    all_delivered(scene, once=False)


def test_progress_beyond_the_clock(pending: Scene) -> None:
    """A clock that was set back a little, and what no clock can have said."""
    pending.close()
    path = _check(pending.folder / "store")
    found = formats.TIMER_CHECK.parse(path.read_bytes())
    now_ms = pending.parts.now_ms
    for read_ms, is_told in ((now_ms + 3600 * SECOND_MS, False), (1 << 60, True)):
        progress = TimerProgress(read_ms, found.last_timer_log_flush_pos, COUNT)
        path.write_bytes(progress.encode() + bytes(4040))
        scene = pending.again()
        assert bool(scene.said) is is_told
        assert scene.timers.wheelwork.read_ms <= now_ms
        if is_told:
            all_delivered(scene, once=False)
        else:
            scene.kill()


def test_a_log_of_another_file_size_is_made_anew(pending: Scene) -> None:
    pending.close()
    scene = pending.again(mapped_file_size_timer_log=8192)
    assert len(scene.said) == 1
    all_delivered(scene, once=True)


def test_another_precision(pending: Scene) -> None:
    pending.close()
    all_delivered(pending.again(timer_precision_ms=100), once=True)


def read_files(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where the files of the timer log begin that the next one to open the store goes through."""
    found: list[int] = []
    walk = TimerLog.walk

    def counted(log: TimerLog, file: MappedFile, least_ms: int) -> Any:
        found.append(file.from_offset)
        return walk(log, file, least_ms)

    monkeypatch.setattr(TimerLog, "walk", counted)
    return found


@pytest.mark.parametrize("is_closed", [True, False])
def test_files_of_what_was_delivered_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_closed: bool
) -> None:
    scene = Scene(tmp_path)
    files, of_each = 5, 78
    for number in range(files):
        for _ in range(of_each):
            scene.later(30 if number == 1 else 3, b"%d" % number)
        scene.tick()
    scene.later(30, b"last")
    scene.tick(10 * SECOND_MS)
    assert len(scene.seen()) == (files - 1) * of_each
    scene.keep()
    if is_closed:
        scene.close()
    else:
        scene.kill()
    read = read_files(scene, monkeypatch)
    scene = scene.again()
    assert read == [4096, files * 4096]
    assert scene.timers.wheelwork.waiting == of_each + 1
    (scene.folder / "store" / "timerlog.dues").unlink()
    scene.close()
    read.clear()
    scene = scene.again()
    assert read == [number * 4096 for number in range(files + 1)], "it is only a note"
    for _ in range(30):
        scene.tick(SECOND_MS)
    assert scene.seen() == [b"0"] * of_each + [b"2"] * of_each + [b"3"] * of_each + [
        b"4"
    ] * of_each + [b"1"] * of_each + [b"last"]
    scene.close()


def test_a_clock_that_was_set_back_reads_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was delivered may come twice then."""
    scene = Scene(tmp_path)
    for _ in range(80):
        scene.later(20, b"a")
    scene.tick()
    scene.tick(30 * SECOND_MS)
    scene.keep()
    scene.close()
    read = read_files(scene, monkeypatch)
    scene.again().kill()
    assert read == [4096]
    scene.parts.now_ms -= 25 * SECOND_MS
    read.clear()
    scene.again().kill()
    assert read == [0, 4096]


def test_without_room_the_wheel_is_made_later(
    pending: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full while a broken one is made anew."""
    wheel = pending.timers.wheelwork.wheel
    wheel.add(pending.timers.wheelwork.read_ms + 3 * SECOND_MS, 0, 1)
    make, fails = wheel.make, iter([False] * 10 + [True] * 3)

    def full() -> None:
        if pending.timers._repair is not None and next(fails, False):
            raise OSError(28, "No space left on device")
        make()

    monkeypatch.setattr(wheel, "make", full)
    all_delivered(pending, once=False)
    assert any("are on hold" in each for each in pending.said)


def as_slave(pending: Scene, progress: TimerProgress, **store_settings: Any) -> Scene:
    """A slave that has the log of the broker, and nothing of its timers but this progress."""
    pending.parts.store.flush.flush_all()
    pending.kill()
    store = pending.folder / "store"
    for path in (_wheel(store), _check(store)):
        path.unlink()
    shutil.rmtree(store / "timerlog")
    slave = pending.again(broker_role="SLAVE", **store_settings)
    slave.timers.follow(progress)
    assert slave.timers.keeper.kept == slave.timers.progress()
    return slave


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_slave_that_becomes_a_master_goes_on_where_its_master_was(
    pending: Scene, *, is_closed: bool
) -> None:
    """What was delivered is not delivered again, and what waits is delivered in its time."""
    progress = pending.timers.progress()
    delivered = len(pending.seen())
    slave = as_slave(pending, progress)
    version = progress._replace(timestamp_ms=7, counter=8)
    slave.timers.follow(version)
    assert slave.timers.progress()[3:6] == (0, 7, 8)
    slave.tick(SECOND_MS)
    assert len(slave.seen()) == delivered, "a slave delivers nothing"
    if is_closed:
        slave.close()
    else:
        slave.kill()
    promoted = slave.again(SECOND_MS)
    assert promoted.said == []
    all_delivered(promoted, once=True)


def test_a_slave_that_becomes_a_master_and_is_killed_delivers_all_once_more_at_most(
    pending: Scene,
) -> None:
    slave = as_slave(pending, pending.timers.progress())
    slave.close()
    promoted = slave.again(timer_stop_enqueue=True)
    for _ in range(5):
        promoted.tick(SECOND_MS)
    promoted.keep()
    assert promoted.timers.progress().master_offset == 0, "the time has passed without the queue"
    promoted.kill()
    all_delivered(promoted.again(), once=False)


def test_what_left_the_queue_before_a_slave_became_a_master_is_not_told_as_lost(
    pending: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its master had come so far: it begins at the first message that there is."""
    slave = as_slave(pending, pending.timers.progress())
    slave.close()
    promoted = slave.again()
    promoted.timers.close(promoted.parts.now_ms)
    wheelwork = promoted.timers.wheelwork
    monkeypatch.setattr(wheelwork, "_queue_range", lambda: (50, COUNT))
    wheelwork.open(promoted.parts.now_ms)
    assert wheelwork.queue_offset == 50
    promoted.kill()
