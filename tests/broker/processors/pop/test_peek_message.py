# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from tests.fakes import outcome_of, reply_of, request
from txrocketmq.broker.processors.pop.peek_message import PeekMessageProcessor
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.protocol.pop import PeekMessageRequestHeader


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def peek(scene: Scene, **wanted: Any) -> PendingReply:
    processor = scene.processors[PeekMessageProcessor]
    assert isinstance(processor, PeekMessageProcessor)
    header = PeekMessageRequestHeader(
        **{"topic": "T", "queue_id": -1, "max_msg_nums": 2, "consumer_group": GROUP, **wanted}
    )
    return processor.peek(request(header))


def bodies(scene: Scene, **wanted: Any) -> list[str]:
    reply = reply_of(peek(scene, **wanted))
    return [each.body.decode() for each in decode_messages(reply.body_bytes)]


def test_nothing_is_taken(scene: Scene) -> None:
    reply = reply_of(peek(scene))
    assert (reply.code, reply.remark) == (ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE")
    for number in range(3):
        scene.parts.put("T", body=b"%d" % number)
    for _ in range(20):
        assert bodies(scene) == ["0", "1"]
    reply = reply_of(peek(scene))
    assert (reply.code, reply.remark) == (ResponseCode.SUCCESS, "FOUND")
    assert reply.header is not None
    assert reply.header.rest_num == 3
    assert scene.offset() == -1
    scene.pop(max_msg_nums=1)
    assert bodies(scene) == ["1", "2"]


def test_what_came_back(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    for _ in range(20):
        assert bodies(scene) == ["a"]
    assert bodies(scene, queue_id=0, max_msg_nums=0) == []


def test_an_offset_that_the_queue_has_not(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    scene.parts.offsets.commit(GROUP, "T", 0, 1_000)
    assert bodies(scene) == []


def test_refusals(scene: Scene) -> None:
    error = outcome_of(peek(scene, topic="U"))
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.TOPIC_NOT_EXIST
