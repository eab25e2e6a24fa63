# SPDX-License-Identifier: Apache-2.0
"""Timer messages from the producer to the consumer; the time is advanced."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.timer.scene import SECOND_MS, Scene
from tests.fakes import NOW_MS
from txrocketmq.broker.store.disk import files as files_module
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.log.commit_log import QueueBatch
from txrocketmq.broker.work.patience import RETRY_MS
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.topics import TIMER_TOPIC

DAY_S = 24 * 3600


def test_a_message_waits_for_its_time(scene: Scene) -> None:
    scene.later(10.5, b"later", KEYS="k", TAGS="a", own="x")
    assert scene.seen() == []
    (waiting,) = scene.waiting()
    due_ms = (NOW_MS + 10_500) // 1000 * 1000
    assert waiting.properties["TIMER_OUT_MS"] == str(due_ms)
    assert (waiting.properties["REAL_TOPIC"], waiting.properties["REAL_QID"]) == ("T", "2")
    scene.tick()
    assert scene.timers.wheelwork.waiting == 1
    assert scene.timers.metrics.count("T") == 1
    while scene.parts.now_ms < due_ms + SECOND_MS:
        assert scene.seen() == []
        scene.tick(100)
    (message,) = scene.queue()
    assert (message.body, message.flag, message.queue_id) == (b"later", 5, 2)
    assert message.born_timestamp == NOW_MS
    assert message.properties["own"] == "x"
    assert (message.properties["KEYS"], message.properties["TAGS"]) == ("k", "a")
    assert message.properties["TIMER_DELAY_MS"] == "10500"
    assert int(message.properties["TIMER_DEQUEUE_MS"]) == scene.parts.now_ms
    assert int(message.properties["TIMER_ENQUEUE_MS"]) == NOW_MS // 1000 * 1000
    assert scene.timers.wheelwork.waiting == 0
    assert scene.timers.metrics.count("T") == 0


def test_messages_of_one_time_come_in_their_order(scene: Scene) -> None:
    for n in range(300):
        scene.later(5, b"%d" % n)
    scene.tick(7 * SECOND_MS)
    assert scene.seen() == [b"%d" % n for n in range(300)]


def test_messages_come_in_the_order_of_their_times(scene: Scene) -> None:
    order = random.Random(1).sample(range(1, 61), 60)
    for seconds in order:
        scene.later(seconds, b"%d" % seconds)
    scene.tick()
    for _ in range(62):
        scene.tick(SECOND_MS)
    assert scene.seen() == [b"%d" % seconds for seconds in sorted(order)]


def test_what_comes_too_late_for_the_wheel_comes_at_once(scene: Scene) -> None:
    scene.later(1, b"soon")
    scene.parts.set(timer_stop_enqueue=True)
    scene.tick(3 * SECOND_MS)
    scene.parts.set(timer_stop_enqueue=False)
    scene.tick()
    (message,) = scene.queue()
    assert message.properties["TIMER_ENQUEUE_MS"] == str(2**63 - 1)
    assert scene.timers.metrics.count("T") == 0
    assert scene.timers.wheelwork.log.end == 0


def test_nothing_is_made_before_the_first_message(scene: Scene) -> None:
    scene.send()
    scene.tick(SECOND_MS)
    names = {path.name for path in (scene.folder / "store").iterdir()}
    assert not names & {"timerwheel", "timerlog"}


@pytest.mark.parametrize("roll_slots", [10, 2, 1, 604_741])
def test_what_is_far_away_is_rolled(tmp_path: Path, roll_slots: int) -> None:
    scene = Scene(tmp_path, timer_roll_window_slot=roll_slots)
    scene.later(35, b"far")
    scene.tick()
    times = []
    for _ in range(40):
        scene.tick(SECOND_MS)
        times.append(len(scene.seen()))
    assert times.index(1) == 34
    assert times[-1] == 1
    (message,) = scene.queue()
    rolls = {10: 3, 2: 11}.get(roll_slots, 0)  # a slot has its turn one second later
    assert int(message.properties.get("TIMER_ROLL_TIMES", "0")) == rolls
    assert scene.timers.metrics.count("T") == 0
    assert scene.timers.wheelwork.waiting == 0
    assert len(scene.queue(TIMER_TOPIC, 0)) == rolls + 1
    scene.close()


def test_a_message_is_taken_back(scene: Scene) -> None:
    handle = scene.later(10, b"unwanted")
    scene.later(10, b"wanted")
    scene.tick(SECOND_MS)
    assert scene.recall(handle) == (0, None)
    scene.tick()
    assert scene.timers.metrics.count("T") == 1
    scene.tick(12 * SECOND_MS)
    assert scene.seen() == [b"wanted"]
    assert scene.timers.metrics.count("T") == 0
    assert scene.timers.wheelwork.waiting == 0


def test_nothing_there_to_be_taken_back(scene: Scene) -> None:
    handle = scene.later(10)
    scene.tick(SECOND_MS)
    scene.recall(handle)
    scene.recall(handle)
    scene.tick(12 * SECOND_MS)
    assert scene.seen() == []
    scene.later(5, b"next")
    scene.tick(7 * SECOND_MS)
    assert scene.seen() == [b"next"]


def test_a_message_is_taken_back_by_topic_and_key(tmp_path: Path) -> None:
    scene = Scene(tmp_path, append_topic_for_timer_delete_key=True)
    handle = scene.later(10, b"unwanted")
    scene.tick()
    scene.recall(handle)
    (*_, waiting) = scene.waiting()
    assert waiting.properties["TIMER_DEL_UNIQKEY"] == "T+U1"
    scene.tick(12 * SECOND_MS)
    assert scene.seen() == []
    scene.close()


def test_a_message_far_away_is_taken_back(tmp_path: Path) -> None:
    """What takes it back is rolled too, and comes to the same slot."""
    scene = Scene(tmp_path, timer_roll_window_slot=10)
    handle = scene.later(35, b"unwanted")
    scene.tick(3 * SECOND_MS)
    assert scene.recall(handle)[0] == 0
    for _ in range(45):
        scene.tick(SECOND_MS)
    assert scene.seen() == []
    assert scene.timers.wheelwork.waiting == 0
    scene.close()


def test_switches_stop_what_they_name(scene: Scene) -> None:
    scene.parts.set(timer_stop_enqueue=True)
    scene.later(2)
    scene.tick(SECOND_MS)
    assert (scene.timers.wheelwork.waiting, scene.timers.enqueue.behind) == (0, 1)
    scene.parts.set(timer_stop_enqueue=False, timer_stop_dequeue=True)
    scene.tick()
    assert (scene.timers.wheelwork.waiting, scene.timers.enqueue.behind) == (1, 0)
    scene.tick(10 * SECOND_MS)
    assert scene.seen() == []
    assert scene.timers.runtime_info(scene.parts.now_ms)["timerReadBehind"] == "10"
    scene.parts.set(timer_stop_dequeue=False)
    scene.tick()
    assert scene.seen() == [b"body"]


def test_the_wheel_may_be_turned_off_and_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, timer_wheel_enable=False)
    refused = scene.answer(TIMER_DELAY_SEC="1")
    assert (refused.code, refused.remark) == (
        1, "accurate timer message is not enabled, timerWheelEnable is false",
    )  # fmt: skip
    scene.tick(SECOND_MS)
    assert not scene.timers.is_open
    scene.parts.set(timer_wheel_enable=True)
    scene.later(3, b"a")
    scene.tick(SECOND_MS)
    scene.tick(10 * SECOND_MS)
    scene.later(3, b"b")
    scene.tick()
    scene.parts.set(timer_wheel_enable=False)
    assert scene.answer(TIMER_DELAY_SEC="1").code == 1
    scene.tick(10 * SECOND_MS)
    assert scene.seen() == [b"a", b"b"]
    scene.close()


def test_a_clock_that_is_set_back_repeats_nothing(scene: Scene) -> None:
    scene.later(5, b"first")
    scene.later(3600 + 60, b"last")
    scene.tick(60 * SECOND_MS)
    assert scene.seen() == [b"first"]
    scene.tick()
    scene.parts.now_ms -= 3600 * SECOND_MS
    scene.tick()
    scene.later(10, b"second")
    scene.tick(5 * SECOND_MS)
    assert scene.seen() == [b"first"]
    scene.tick(7 * SECOND_MS)
    assert scene.seen() == [b"first", b"second"]
    scene.tick(2 * 3600 * SECOND_MS)
    assert scene.seen() == [b"first", b"second", b"last"]


def test_what_no_topic_takes_is_a_dead_letter(scene: Scene) -> None:
    scene.parts.put(TIMER_TOPIC, 0, body=b"by hand")
    scene.parts.put(TIMER_TOPIC, 0, body=b"to nowhere", REAL_TOPIC="T", TIMER_OUT_MS="0")
    scene.parts.put(
        TIMER_TOPIC, 0, body=b"long", REAL_TOPIC="T" * 128, REAL_QID="0", TIMER_OUT_MS="x"
    )
    scene.parts.put(TIMER_TOPIC, 0, body=b"good", REAL_TOPIC="T", REAL_QID="2", TIMER_OUT_MS="-1")
    scene.tick(SECOND_MS)
    dead = scene.queue("%DLQ%rmq_sys_wheel_timer", 0)
    assert [each.body for each in dead] == [b"by hand", b"to nowhere", b"long"]
    assert scene.parts.topics.get("%DLQ%rmq_sys_wheel_timer") is not None
    assert scene.seen() == [b"good"]


def test_what_the_store_does_not_take_waits(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.later(2, b"a")
    scene.tick(SECOND_MS)
    scene.later(0.5, b"b")
    scene.parts.now_ms += 5 * SECOND_MS
    put = scene.parts.intake.put
    status = PutStatus.SERVICE_NOT_AVAILABLE
    monkeypatch.setattr(
        scene.parts.intake,
        "put",
        lambda messages, now_ms: QueueBatch.refusing(len(messages), status, now_ms),
    )
    scene.tick()
    assert scene.seen() == []
    monkeypatch.setattr(scene.parts.intake, "put", put)
    scene.tick(SECOND_MS)
    assert scene.seen() == []
    scene.tick(9 * SECOND_MS)
    assert sorted(scene.seen()) == [b"a", b"b"]


def test_too_many_at_one_time_are_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, timer_congest_num_each_slot=2)
    while scene.timers.wheelwork.waiting < 4:
        scene.answer(TIMER_DELAY_MS="10000")
        scene.tick()
    refused = scene.answer(TIMER_DELAY_MS="10000")
    assert (refused.code, refused.remark) == (
        1,
        (
            "timer message is under flow control, max num limit is 4 or the current value is"
            " greater than 2 and less than 4, trigger random flow control"
        ),
    )
    scene.later(20)
    scene.close()


def test_the_files_are_the_originals(scene: Scene) -> None:
    scene.later(3700, b"a")
    scene.later(3700, b"b")
    scene.tick()
    scene.keep()
    store = scene.folder / "store"
    wheel = (store / "timerwheel").read_bytes()
    assert len(wheel) == 38_707_200
    due_ms = (NOW_MS + 3_700_000 - 1) // 1000 * 1000
    slot = formats.TIMER_WHEEL_SLOT.parse(wheel[due_ms // 1000 % 1_209_600 * 32 :])
    assert (slot.time, slot.first_pos, slot.last_pos, slot.num) == (due_ms // 1000, 0, 52, 2)
    assert wheel.count(bytes(32)) >= 1_209_598
    log = (store / "timerlog" / f"{0:020d}").read_bytes()
    assert len(log) == 4096
    units = [formats.TIMER_LOG_UNIT.parse(log[at : at + 52]) for at in (0, 52)]
    waiting = scene.waiting()
    for unit, message, prev_pos in zip(units, waiting, (-1, 0), strict=True):
        assert (unit.size, unit.prev_pos, unit.magic, unit.reserved) == (52, prev_pos, 1, 0)
        assert unit.curr_write_time == NOW_MS // 1000 * 1000
        assert unit.curr_write_time + unit.delayed_time == due_ms
        assert unit.physical_offset == message.commit_log_offset
        assert unit.physical_size == message.store_size
        assert unit.real_topic_hash == ord("T")
    assert not any(log[104:])
    check = (store / "config" / "timercheck").read_bytes()
    assert len(check) == 4096
    found = formats.TIMER_CHECK.parse(check)
    assert found.last_timer_log_flush_pos == 104
    assert (found.last_timer_queue_offset, found.master_timer_queue_offset) == (2, 2)
    assert found.last_read_time_ms <= scene.parts.now_ms
    assert found.counter >= 1
    assert not any(check[56:])


def test_files_of_the_timer_log_go_with_the_messages(tmp_path: Path) -> None:
    scene = Scene(tmp_path, timer_roll_window_slot=100)
    for n in range(200):  # 78 units of the log fill a file
        scene.later(50, b"%d" % n)
    scene.tick(SECOND_MS)
    files = scene.timers.wheelwork.log.files
    assert [file.from_offset for file in files.mapped_files] == [0, 4096, 8192]
    scene.tick(60 * SECOND_MS)
    assert len(scene.seen()) == 200
    for _ in range(400):
        scene.send(b"x" * 1000)
    store = scene.parts.store
    store.flush.flush_all()
    for path in (tmp_path / "store" / "commitlog").iterdir():
        os.utime(path, (0, 0))
    store.delete_expired(scene.parts.now_ms)
    for _ in range(20):
        scene.steady_ms += 10 * SECOND_MS
        store.tick(scene.parts.now_ms, scene.steady_ms)
    assert store.min_physical_offset > 0
    scene.tick(30 * SECOND_MS)
    assert files.min_offset > 0
    scene.close()


def test_without_room_for_the_wheel_none_are_acknowledged(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log and its queue have room, but what is acknowledged must be kept."""
    told: list[str] = []
    scene.timers.enqueue.on_trouble.append(lambda error: told.append(str(error)))
    with monkeypatch.context() as context:
        context.setattr(files_module, "reserve", no_room_for(1 << 20))
        refused = scene.answer(TIMER_DELAY_MS="2000")
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert refused.remark == "create mapped file failed, server is busy or broken."
        path, why = scene.timers.wheelwork.wheel.path, "No space left on device"
        assert told == [f"[Errno 28] {why} for 38,707,200 more bytes: '{path}'"]
        assert not Path(path).exists()
        assert scene.parts.store.max_offset(TIMER_TOPIC, 0) == 0
        assert scene.answer(TIMER_DELAY_MS="2000").code == ResponseCode.SYSTEM_ERROR
        assert len(told) == 1, "it is not tried again at once"
    scene.tick(RETRY_MS + 1_000)
    scene.later(2)
    assert told[1] == "None"


def no_room_for(size_bytes: int) -> Callable[[int, int, int], None]:
    def reserve(_: int, __: int, length_bytes: int) -> None:
        if length_bytes >= size_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return reserve
