# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.timer.scene import SECOND_MS, Scene
from txrocketmq.broker.intake.new_queues import ENOUGH
from txrocketmq.broker.timer.delivery import MAX_BATCH


def test_a_slot_is_delivered_in_slices(scene: Scene) -> None:
    count = 3 * MAX_BATCH + 5
    for n in range(count):
        scene.later(5, b"%d" % n)
    scene.tick()
    scene.parts.now_ms += 7 * SECOND_MS
    slices = 0
    while True:
        scene.timers.tick(scene.parts.now_ms, scene.steady_ms, lambda: True)
        slices += 1
        if not scene.timers.is_behind:
            break
        assert slices < 100
    assert slices >= 4
    assert scene.seen() == [b"%d" % n for n in range(count)]


def test_a_slot_of_large_messages(scene: Scene) -> None:
    scene.parts.set(max_message_size=1 << 20)
    for n in range(20):
        scene.later(5, b"%d" % n + b"x" * 60_000)
    scene.tick(7 * SECOND_MS)
    assert [body.rstrip(b"x") for body in scene.seen()] == [b"%d" % n for n in range(20)]


def test_what_the_timer_log_has_lost_is_told(scene: Scene) -> None:
    """A chain may end before its first unit, where the original has removed files."""
    count = 200
    for n in range(count):
        scene.later(30, b"%d" % n)
    scene.tick()
    least = scene.waiting()[count - 20].commit_log_offset
    late_ms = scene.parts.now_ms + 60 * SECOND_MS
    expired = scene.timers.wheelwork.log.take_expired(least, late_ms)
    assert expired
    scene.parts.store.removals.add(expired)
    scene.tick(31 * SECOND_MS)
    left = len(scene.seen())
    assert 20 <= left < count
    assert sum(number for number, _ in scene.unread) == count - left
    scene.unread.clear()
    scene.tick(SECOND_MS)
    assert scene.unread == []


@pytest.mark.parametrize("seconds", [5, 0.2])
def test_a_slice_makes_few_queues(scene: Scene, seconds: float) -> None:
    """Whether the messages wait in the wheel, or are due by the time they would enter it."""
    count, topics = 2 * ENOUGH + 1, scene.parts.store.topics
    for number in range(count):
        scene.parts.topic(f"T{number}", 4)
        scene.later(seconds, b"x", topic=f"T{number}")
    if seconds > 1:
        scene.tick()
    before = set(topics())
    scene.parts.now_ms += 7 * SECOND_MS
    made: list[int] = []
    while sum(made) < count:
        seen = len(topics())
        scene.timers.tick(scene.parts.now_ms, scene.steady_ms, lambda: True)
        made.append(len(topics()) - seen)
        assert len(made) < 100
    assert max(made) == ENOUGH
    assert set(topics()) - before == {f"T{number}" for number in range(count)}
    assert all(len(scene.queue(f"T{number}")) == 1 for number in range(count))
