# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

from tests.broker.timer.scene import Scene
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.work.json_file import JsonFile


def test_the_originals_file(tmp_path: Path) -> None:
    path = tmp_path / "timermetrics"
    metrics = TimerMetrics(JsonFile(path), lambda: 5)
    metrics.load()
    metrics.add("T", 2)
    metrics.add("T", -1)
    metrics.add("gone", 1)
    metrics.add("", 1)
    metrics.forget("gone")
    metrics.forget("never")
    metrics.saving.write_now()
    content = json.loads(path.read_text("utf-8"))
    assert content["timingCount"] == {"T": {"count": 1, "timeStamp": 5}}
    assert content["dataVersion"]["counter"] == 1
    assert b" " not in path.read_bytes()
    again = TimerMetrics(JsonFile(path), lambda: 6)
    again.load()
    assert (again.count("T"), again.count("other"), again.counts()) == (1, 0, {"T": 1})
    assert json.loads(again.encode()) == content


def test_what_comes_and_goes_is_counted(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.send(body=b"a", TIMER_DELAY_SEC="90")
    scene.tick(5_000)
    (flow,) = scene.timers.metrics.flows.values()
    assert (flow.entered, flow.left, flow.delays_s.counts[1]) == (1, 0, 1)
    assert flow.delays_s.total in (89, 90)
    for _ in range(10):
        scene.tick(10_000)
    assert (flow.entered, flow.left) == (1, 1)
    scene.timers.metrics.forget("T")
    assert scene.timers.metrics.flows == {}
    scene.close()
