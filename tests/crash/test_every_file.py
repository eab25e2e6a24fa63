# SPDX-License-Identifier: Apache-2.0
"""That no kind of file is left out: what a broker leaves behind is what the matrices damage.

A new kind of file fails this test until somebody has said what is to become of a store in which it
is gone, cut or foreign: in `test_damage.py`, `test_config_damage.py` or `test_deleted_damage.py`;
those of timers are damaged in tests/broker/timer/test_timer_store.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from tests.crash import test_config_damage, test_damage
from txrocketmq.broker.store.queues.deleted_topics import FOLDER

OF_THE_STORE = {place.partition("/")[0] for place, _ in test_damage.FILES.values()}
OF_TIMERS = {"timerwheel", "timerlog", "timerlog.dues"}
OF_CONFIG = {"timercheck"} | {
    f"{name}{end}" for name in test_config_damage.FILES for end in ("", ".bak")
}


@pytest.mark.parametrize("state", test_config_damage.STATES)
def test_what_a_broker_leaves_behind_is_damaged_somewhere(tmp_path: Path, state: str) -> None:
    test_config_damage.fill(tmp_path, "killed")
    scene = Scene(tmp_path, {"enable_consume_queue_ext": True}).start()
    assert Client(scene).send(TAGS="a").code == 0
    assert scene.broker.parts.store.delete_topic("T")
    scene.pass_ms(15_000, 100)
    if state == "stopped":
        test_config_damage.stop(scene)
    else:
        scene.broker.parts.store._marks.unlock()
    found = {each.relative_to(tmp_path).parts for each in tmp_path.rglob("*") if each.is_file()}
    covered = OF_THE_STORE | OF_TIMERS | {"config", FOLDER}
    assert {parts[0] for parts in found} <= covered
    assert {parts[1] for parts in found if parts[0] == "config"} <= OF_CONFIG
    never_there = {"inventory"} if state == "killed" else {"abort"}
    assert {parts[0] for parts in found} >= covered - never_there - OF_TIMERS - {"consumequeue_ext"}
