# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from tests.fakes import outcome_of, refused, request
from txrocketmq.broker.processors.pop.pop_notification import PopNotificationProcessor
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.pop import NotificationRequestHeader, PollingInfoRequestHeader


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def processor_of(scene: Scene) -> PopNotificationProcessor:
    processor = scene.processors[PopNotificationProcessor]
    assert isinstance(processor, PopNotificationProcessor)
    return processor


def ask(scene: Scene, **wanted: Any) -> PendingReply:
    header = NotificationRequestHeader(
        **{
            "consumer_group": GROUP,
            "topic": "T",
            "queue_id": -1,
            "poll_time": 0,
            "born_time": scene.parts.now_ms,
            **wanted,
        }
    )
    return processor_of(scene).notification(
        request(header, peer=scene.peer, now_ms=scene.parts.now_ms)
    )


def has_message(scene: Scene, **wanted: Any) -> bool:
    return bool(outcome_of(ask(scene, **wanted)).header.has_msg)


def test_whether_there_is_something(scene: Scene) -> None:
    assert not has_message(scene)
    scene.parts.put("T")
    assert has_message(scene)
    assert has_message(scene, queue_id=0)
    scene.pop()
    assert not has_message(scene)
    assert not has_message(scene, queue_id=0)


@pytest.mark.parametrize("queue_id", [-1, 0])
def test_what_came_back(scene: Scene, queue_id: int) -> None:
    scene.parts.put("T")
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    assert has_message(scene, queue_id=queue_id)
    scene.parts.set(enable_retry_topic_v2=True)
    assert has_message(scene, queue_id=queue_id)
    scene.parts.set(retrieve_message_from_pop_retry_topic_v1=False)
    assert not has_message(scene, queue_id=queue_id)


def test_in_order(scene: Scene) -> None:
    for _ in range(2):
        scene.parts.put("T")
    scene.pop(order=True, max_msg_nums=1, attempt_id="one")
    assert not has_message(scene, order=True)
    assert has_message(scene, order=True, attempt_id="one")
    assert has_message(scene)


def test_it_waits(scene: Scene) -> None:
    waiting = ask(scene, poll_time=20_000, born_time=0)
    assert not waiting.done
    scene.parts.put("T")
    scene.turn()
    assert outcome_of(waiting).header.has_msg


def test_it_waits_in_vain(scene: Scene) -> None:
    waiting = ask(scene, poll_time=5_000)
    scene.advance(6_000)
    header = outcome_of(waiting).header
    assert (header.has_msg, header.polling_full) == (False, False)
    scene.parts.set(max_pop_polling_size=0)
    header = outcome_of(ask(scene, poll_time=5_000)).header
    assert (header.has_msg, header.polling_full) == (False, True)


def test_refusals(scene: Scene) -> None:
    error = outcome_of(ask(scene, topic="U"))
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.TOPIC_NOT_EXIST


def polling_num(scene: Scene, queue_id: int, topic: str = "T") -> int:
    header = PollingInfoRequestHeader(consumer_group=GROUP, topic=topic, queue_id=queue_id)
    reply = processor_of(scene).polling_info(request(header))
    assert reply.header is not None
    return reply.header.polling_num


def test_who_waits(scene: Scene) -> None:
    for _ in range(3):
        scene.ask(poll_time=20_000)
    scene.ask(poll_time=20_000, queue_id=0)
    assert (polling_num(scene, -1), polling_num(scene, 0)) == (3, 1)
    with refused(ResponseCode.INVALID_PARAMETER):
        polling_num(scene, 1)
    with refused(ResponseCode.TOPIC_NOT_EXIST):
        polling_num(scene, 0, "U")
