# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.pop.scene import GROUP, Scene
from tests.fakes import refused
from txrocketmq.broker.pop.records import MergeKey
from txrocketmq.broker.pop.replaced_check_points import Replaced
from txrocketmq.remoting.codes import ResponseCode

KEY = MergeKey("T", GROUP, 0, 10, 1_000, "b")
INVISIBLE_MS = 10_000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Check points are written at once."""
    return Scene(tmp_path, enable_pop_buffer_merge=False)


def test_a_message_is_gone_until_its_ack_is_written(scene: Scene) -> None:
    parts = scene.parts
    replaced = Replaced(parts.after_durable, parts.pop.metrics)
    assert list(replaced.left(KEY, (0, 1, 2))) == [0, 1, 2]
    parts.put("T")
    for offset in (11, 12):
        ack = parts.pop.revive_topic.ack(KEY, offset, 5_000, 0, parts.now_ms)
        replaced.add(KEY, offset, ack)
    assert list(replaced.left(KEY, (0, 1, 2))) == [0]
    assert list(replaced.left(KEY._replace(pop_time=2_000), (1, 2))) == [1, 2]
    assert (len(replaced), scene.tags()) == (1, [])
    parts.store.flush.flush_all()
    assert (len(replaced), scene.tags()) == (0, ["ack", "ack"])
    assert list(replaced.left(KEY, (0, 1, 2))) == [0, 1, 2]


def test_the_old_check_point_is_acknowledged_when_the_new_one_is_durable(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    (message,) = scene.pop(invisible_time=INVISIBLE_MS)
    scene.hide(message, 10 * INVISIBLE_MS)
    assert scene.tags() == ["ck", "ck"]
    scene.parts.store.flush.flush_all()
    assert scene.tags() == ["ck", "ck", "ack"]


def test_the_old_check_point_brings_nothing_back_meanwhile(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    scene.parts.put("T", body=b"b")
    message, _ = scene.pop(invisible_time=INVISIBLE_MS)
    scene.hide(message, 10 * INVISIBLE_MS)
    now_ms = scene.parts.now_ms + 2 * INVISIBLE_MS
    scene.parts.pop.revive.tick(now_ms, now_ms)
    retry = f"%RETRY%{GROUP}_T"
    assert scene.parts.store.max_offset(retry, 0) == 1  # the other one
    assert len(scene.parts.pop.replaced) == 1


def test_a_time_is_not_changed_while_too_many_wait_for_the_disk(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.broker.intake.after_durable.MAX_WAITING", 1)
    scene.parts.put("T", body=b"a")
    scene.parts.put("T", body=b"b")
    first, second = scene.pop()
    scene.hide(first, INVISIBLE_MS)
    with refused(ResponseCode.SYSTEM_ERROR, "the disk does not keep up"):
        scene.hide(second, INVISIBLE_MS)
    assert scene.tags() == ["ck", "ck"]
    scene.parts.store.flush.flush_all()
    scene.hide(second, INVISIBLE_MS)
