# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from tests.broker.jumps import lost_before, told_jumps
from tests.broker.timer.scene import SECOND_MS, Scene
from txrocketmq.broker.store.get.jumps import TIMERS, Jump
from txrocketmq.remoting.message.topics import TIMER_TOPIC


def test_without_room_messages_stay_in_the_queue(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []
    scene.timers.enqueue.on_trouble.append(heard.append)
    log = scene.timers.wheelwork.log
    append = log.append

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "append", full)
    scene.later(30, b"a")
    scene.later(30, b"b")
    scene.tick()
    assert (scene.timers.enqueue.behind, len(heard)) == (2, 1)
    monkeypatch.setattr(log, "append", append)
    scene.tick(SECOND_MS)
    assert scene.timers.enqueue.behind == 2
    scene.tick(10 * SECOND_MS)
    assert (scene.timers.enqueue.behind, heard[-1]) == (0, None)
    scene.tick(30 * SECOND_MS)
    assert scene.seen() == [b"a", b"b"]


def test_what_the_log_has_lost_is_told(tmp_path: Path) -> None:
    """Messages that were not put into the wheel before their files expired."""
    scene = Scene(tmp_path)
    scene.later(30, b"waits")
    scene.tick()
    scene.keep()
    for body in (b"a", b"b", b"c"):
        scene.later(30, body)
    scene.kill()
    scene = scene.again()
    lost_before(scene.parts, TIMER_TOPIC, 0, 3)
    for _ in range(3):
        scene.tick(SECOND_MS)
    assert told_jumps(scene.parts) == [(Jump(TIMERS, TIMER_TOPIC, 0, 1, 3, 2), 0)]
    assert scene.timers.enqueue.behind == 0
    scene.tick(30 * SECOND_MS)
    assert scene.seen() == [b"waits", b"c"]
    scene.close()


def test_without_progress_it_begins_at_the_first_message(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for body in (b"a", b"b"):
        scene.later(30, body)
    scene.kill()
    scene = scene.again()
    lost_before(scene.parts, TIMER_TOPIC, 0, 2)
    for _ in range(3):
        scene.tick(SECOND_MS)
    assert told_jumps(scene.parts) == [(Jump(TIMERS, TIMER_TOPIC, 0, 0, 2, 2, is_known=False), 0)]
    scene.close()


def test_many_wait_without_memory_of_each(tmp_path: Path) -> None:
    """Of all that is allocated while they are put into the wheel, next to nothing is kept."""
    scene = Scene(tmp_path, mapped_file_size_timer_log=1 << 20)
    for _ in range(2):
        for n in range(2_000):
            scene.later(60 + n % 100, b"x")
        tracemalloc.start()
        try:
            scene.tick()
            gc.collect()
            kept_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    wheelwork = scene.timers.wheelwork
    assert (wheelwork.waiting, scene.timers.enqueue.count) == (4_000, 4_000)
    assert not wheelwork.known
    assert not scene.timers.enqueue._done
    assert 0 < kept_bytes < 2_000 * 8, "less than a number for each that waits"
    scene.close()
