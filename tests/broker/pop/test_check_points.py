# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.pop.scene import GROUP, Scene
from txrocketmq.broker.pop.check_points import Taken
from txrocketmq.broker.pop.records import MergeKey


@pytest.fixture(name="merging")
def merging_(tmp_path: Path) -> Scene:
    return Scene(tmp_path, enable_pop_buffer_merge=True)


def test_a_check_point_is_written_at_once(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    scene.parts.put("T", body=b"b")
    first, second = scene.pop()
    assert scene.tags() == ["ck"]
    assert scene.offset() == 0
    assert scene.parts.pop.check_points.latest_offset("T", GROUP, 0) == 2
    scene.ack(first)
    scene.ack(second)
    assert scene.tags() == ["ck", "ack", "ack"]
    scene.advance()
    assert scene.offset() == 2
    assert scene.parts.pop.check_points.latest_offset("T", GROUP, 0) == -1


def test_what_is_acknowledged_soon_is_never_written(merging: Scene) -> None:
    scene = merging
    for _ in range(3):
        scene.parts.put("T")
    popped = scene.pop()
    assert len(scene.parts.pop.check_points) == 1
    for each in popped:
        scene.ack(each)
    assert scene.offset() == 0  # the messages are not durable yet
    scene.parts.store.flush.flush_all()
    scene.parts.pop.settle()
    assert scene.offset() == 3
    assert len(scene.parts.pop.check_points) == 0
    scene.advance(100_000)
    assert scene.records() == []


def test_an_earlier_pop_holds_the_offset(merging: Scene) -> None:
    scene = merging
    for _ in range(3):
        scene.parts.put("T")
        scene.pop(invisible_time=1_000 if _ == 1 else 60_000)
    (first, second, third) = (scene.parts.pop.check_points, None, None)
    assert first.latest_offset("T", GROUP, 0) == 3
    assert (second, third) == (None, None)
    assert scene.tags() == ["ck"]  # of the second, whose time is too short to wait
    scene.advance()
    assert scene.offset() == 0


@pytest.mark.parametrize("batch", [False, True])
def test_what_is_not_is_written_in_time(merging: Scene, batch: bool) -> None:
    scene = merging
    scene.parts.set(enable_pop_batch_ack=batch)
    for _ in range(4):
        scene.parts.put("T")
    popped = scene.pop()
    scene.ack(popped[0])
    scene.ack(popped[2])
    scene.advance(9_000)
    assert scene.records() == []
    scene.advance(2_000)
    assert scene.tags() == (["ck", "bAck"] if batch else ["ck", "ack", "ack"])
    assert len(scene.parts.pop.check_points) == 0
    assert scene.offset() == 4
    scene.ack(popped[1])  # too late for the memory
    assert scene.tags()[-1] == "ack"
    scene.advance(70_000)
    assert [each.stored.queue_offset for each in scene.pop()] == [0]
    assert scene.parts.pop.queues.offset(f"%RETRY%{GROUP}_T", GROUP, 0) == 1


def test_a_short_time_ends_it_sooner(merging: Scene) -> None:
    scene = merging
    scene.parts.put("T")
    scene.pop(invisible_time=7_000)
    scene.advance(3_000)
    assert scene.records() == []
    scene.advance(1_500)
    assert scene.tags() == ["ck"]


def test_acks_are_not_taken_shortly_before_the_end(merging: Scene) -> None:
    scene = merging
    scene.parts.put("T")
    scene.parts.put("T")
    first, second = scene.pop()
    scene.parts.now_ms += 8_400
    scene.ack(first)
    assert scene.records() == []
    scene.parts.now_ms += 200
    scene.ack(second)
    assert scene.tags() == ["ack"]


def test_too_many_are_written_at_once(merging: Scene) -> None:
    scene = merging
    scene.parts.set(pop_ck_max_buffer_size=1)
    for _ in range(3):
        scene.parts.put("T")
        scene.pop()
        scene.parts.now_ms += 1
    assert scene.tags() == ["ck"]
    scene.parts.set(pop_ck_max_buffer_size=100, pop_ck_offset_max_queue_size=3)
    for _ in range(2):
        scene.parts.put("T")
        scene.pop()
        scene.parts.now_ms += 1
    assert scene.tags() == ["ck"] * 3


def test_nothing_is_handed_out_that_cannot_be_written_down(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.parts.put("T", body=b"a")
    with monkeypatch.context() as context:
        context.setattr(type(scene.parts.store), "writeable", False)
        assert scene.pop() == []
    assert scene.bodies() == ["a"]


def test_what_is_kept_waits_for_room(merging: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = merging
    scene.parts.put("T", body=b"a")
    scene.pop()
    with monkeypatch.context() as context:
        context.setattr(type(scene.parts.store), "writeable", False)
        scene.advance(30_000)
        assert len(scene.parts.pop.check_points) == 1
        assert scene.offset() == 0
    scene.advance(1_000)
    assert scene.tags() == ["ck"]
    assert scene.offset() == 1


def test_names_are_taken_once(scene: Scene) -> None:
    points = scene.parts.pop.check_points
    scene.parts.set(enable_pop_buffer_merge=True)
    key = MergeKey("T", GROUP, 0, 0, scene.parts.now_ms, "b")
    assert points.add([Taken(key, (0,), 1)], 60_000, 0, scene.parts.now_ms) == [True]
    assert points.add([Taken(key, (0,), 1)], 60_000, 0, scene.parts.now_ms) == [False]
    assert points.ack(key, [5, -1], scene.parts.now_ms)  # of none of its messages
    assert len(points) == 1


def test_offsets_of_what_is_gone_do_not_come_back(scene: Scene) -> None:
    scene.parts.put("T")
    scene.pop()
    scene.parts.topics.delete("T")
    scene.parts.offsets.remove(GROUP, "T")
    scene.advance(1_000)
    assert scene.offset() == -1


def test_many_are_written_in_batches(merging: Scene) -> None:
    scene = merging
    points, now_ms = scene.parts.pop.check_points, scene.parts.now_ms
    for number in range(700):
        key = MergeKey("T", GROUP, 0, number, now_ms, "b")
        assert points.add([Taken(key, (0,), number + 1)], 60_000, number % 8, now_ms) == [True]
    points.tick(now_ms + 20_000)
    assert len(points) == 700 - 8 * 64
    points.tick(now_ms + 20_000)
    assert len(points) == 0


def test_what_is_hidden_for_longer_moves_no_offset_before_that_is_durable(tmp_path: Path) -> None:
    """A check point in the log takes the place of the one in memory."""
    scene = Scene(tmp_path, enable_pop_buffer_merge=True)
    scene.parts.put("T", body=b"a")
    scene.parts.store.flush.flush_all()
    (message,) = scene.pop()
    assert scene.tags() == []
    scene.hide(message, 30_000)
    scene.parts.pop.settle()
    assert (scene.tags(), scene.offset()) == (["ck"], 0)
    scene.parts.store.flush.flush_all()
    scene.parts.pop.settle()
    assert scene.offset() == 1
