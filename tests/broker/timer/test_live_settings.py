# SPDX-License-Identifier: Apache-2.0
"""What UPDATE_BROKER_CONFIG takes of timers and recall counts at once.

See tests/broker/test_live_settings.py, which finds the settings that have no check.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.timer.scene import SECOND_MS, Scene
from tests.live import Checks

check = Checks()


def update(scene: Scene, **settings: object) -> None:
    """Changes settings while the broker runs, under the original's names."""
    scene.parts.configuration.update({name: str(value) for name, value in settings.items()})


@check
def timer_wheel_enable(scene: Scene) -> None:
    for text, code in (("false", 1), ("true", 0)):
        update(scene, timerWheelEnable=text)
        assert scene.answer(TIMER_DELAY_SEC="5").code == code


@check
def timer_max_delay_sec(scene: Scene) -> None:
    for most, code in ((4, 13), (5, 0)):
        update(scene, timerMaxDelaySec=most)
        assert scene.answer(TIMER_DELAY_SEC="5").code == code


@check
def timer_stop_enqueue(scene: Scene) -> None:
    scene.later(5)
    for text, waiting in (("true", 0), ("false", 1)):
        update(scene, timerStopEnqueue=text)
        scene.tick()
        assert scene.timers.wheelwork.waiting == waiting


@check
def timer_stop_dequeue(scene: Scene) -> None:
    scene.later(1)
    scene.tick()
    for text, count in (("true", 0), ("false", 1)):
        update(scene, timerStopDequeue=text)
        scene.tick(3 * SECOND_MS)
        assert len(scene.seen()) == count


@check
def timer_congest_num_each_slot(scene: Scene) -> None:
    for _ in range(4):
        scene.later(10)
    scene.tick()
    for most, code in ((2, 1), (4, 0)):
        update(scene, timerCongestNumEachSlot=most)
        assert scene.answer(TIMER_DELAY_MS="10000").code == code


@check
def timer_flush_interval_ms(scene: Scene) -> None:
    update(scene, timerFlushIntervalMs=60_000)
    scene.tick()
    scene.keep()
    update(scene, timerFlushIntervalMs=1_000)
    scene.later(100)
    scene.tick(60 * SECOND_MS)
    counter = scene.timers.keeper.kept.counter
    for _ in range(3):
        scene.later(100)
        scene.parts.store.flush.flush_all()
        scene.tick(SECOND_MS)
        scene.tick(SECOND_MS)
    assert scene.timers.keeper.kept.counter > counter


@check
def append_topic_for_timer_delete_key(scene: Scene) -> None:
    handle = scene.later(10)
    for text in ("true", "false"):
        update(scene, appendTopicForTimerDeleteKey=text)
        scene.recall(handle)
    keys = [each.properties.get("TIMER_DEL_UNIQKEY") for each in scene.waiting()]
    assert keys == [None, "T+U1", "U1"]


@check
def recall_message_enable(scene: Scene) -> None:
    handle = scene.later(10)
    for text, code in (("false", 16), ("true", 0)):
        update(scene, recallMessageEnable=text)
        assert scene.recall(handle)[0] == code


@check
def allow_recall_when_broker_not_writeable(scene: Scene) -> None:
    handle = scene.later(10)
    update(scene, brokerPermission=4)
    for text, code in (("false", 14), ("true", 0)):
        update(scene, allowRecallWhenBrokerNotWriteable=text)
        assert scene.recall(handle)[0] == code


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(tmp_path: Path, name: str) -> None:
    scene = Scene(tmp_path)
    check[name](scene)
    scene.close()
