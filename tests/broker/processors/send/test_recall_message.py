# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.timer.scene import SECOND_MS, Scene
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.recall_handle import RecallHandle

NOT_NOW = "recall failed, broker service not available"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()
    assert not made.failures


def test_what_is_stored(scene: Scene) -> None:
    handle = scene.later(10)
    scene.tick(SECOND_MS)
    assert scene.recall(handle) == (ResponseCode.SUCCESS, None)
    sent, taking_back = scene.waiting()
    assert taking_back.body == b"0"
    properties = taking_back.properties
    assert properties["TIMER_OUT_MS"] == sent.properties["TIMER_OUT_MS"]
    assert properties["TIMER_DEL_UNIQKEY"] == properties["UNIQ_KEY"] == "U1"
    assert (properties["TAGS"], properties["PGROUP"]) == ("_RECALL_TAG_", "p")
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("T", "0")


def test_it_is_off_by_default(scene: Scene) -> None:
    handle = scene.later(10)
    scene.parts.set(recall_message_enable=False)
    assert scene.recall(handle) == (
        ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden",
    )  # fmt: skip


def test_when_nothing_is_taken_back(scene: Scene) -> None:
    handle = scene.later(10)
    scene.parts.set(broker_permission=4)
    assert scene.recall(handle)[0] == ResponseCode.SUCCESS
    scene.parts.set(allow_recall_when_broker_not_writeable=False)
    assert scene.recall(handle) == (ResponseCode.SERVICE_NOT_AVAILABLE, NOT_NOW)
    scene.parts.set(broker_permission=6)
    scene.parts.set(start_accept_send_request_time_stamp=scene.parts.now_ms + 1)
    assert scene.recall(handle) == (ResponseCode.SERVICE_NOT_AVAILABLE, NOT_NOW)
    scene.parts.set(start_accept_send_request_time_stamp=0, timer_wheel_enable=False)
    assert scene.recall(handle) == (ResponseCode.SYSTEM_ERROR, "recall failed, execute error")


def test_a_topic_that_is_not_there(scene: Scene) -> None:
    assert scene.recall(scene.later(10), "None") == (
        ResponseCode.TOPIC_NOT_EXIST, "recall failed, the topic[None] not exist",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        ({"topic": "Other"}, "recall failed, topic not match"),
        ({"broker_name": "other"}, NOT_NOW),
        ({"time": "x"}, "recall failed, timestamp invalid"),
        ({"time": "1"}, "recall failed, timestamp invalid"),
        ({"time": "9999999999999"}, "recall failed, timestamp invalid"),
        ({}, "recall handle is invalid"),
    ],
)
def test_handles_of_something_else(scene: Scene, change: dict[str, str], remark: str) -> None:
    handle = RecallHandle.decode(scene.later(10))._replace(**change).encode()
    told = scene.recall(handle if change else "x" + handle)
    assert told == (ResponseCode.ILLEGAL_OPERATION, remark)
    assert len(scene.waiting()) == 1
