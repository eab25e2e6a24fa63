# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.timer.scene import SECOND_MS, Scene


def test_progress_waits_for_the_commit_log(scene: Scene) -> None:
    scene.later(5)
    scene.tick()
    for _ in range(3):
        scene.tick(SECOND_MS)
    keeper, check = scene.timers.keeper, scene.timers.wheelwork.check
    assert check.read() is None
    scene.parts.store.flush.flush_all()
    scene.tick()
    assert check.read() == keeper.kept
    assert keeper.kept.queue_offset == 1
    counter = keeper.kept.counter
    for _ in range(5):
        scene.tick(SECOND_MS)
        scene.parts.store.flush.flush_all()
    assert scene.seen() == [b"body"]
    assert keeper.kept.counter > counter
    counter = keeper.kept.counter
    for _ in range(5):
        scene.tick(SECOND_MS)
    assert keeper.kept.counter == counter  # nothing has changed


def test_what_cannot_be_synced_is_tried_again(scene: Scene) -> None:
    heard: list[Exception | None] = []
    keeper = scene.timers.keeper
    keeper.on_sync.append(heard.append)
    files = keeper._files
    keeper._files = _Failing()  # type: ignore[assignment]
    scene.later(5)
    scene.tick()
    scene.parts.store.flush.flush_all()
    for _ in range(3):
        scene.tick(SECOND_MS)
    assert any(heard)
    assert scene.timers.wheelwork.check.read() is None
    keeper._files = files
    scene.keep()
    assert scene.timers.wheelwork.check.read() is not None
    assert heard[-1] is None


class _Failing:
    def exists(self, path: str) -> bool:
        return True

    def sync(self, path: str) -> None:
        raise OSError(5, "broken")
