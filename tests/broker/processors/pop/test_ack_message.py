# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Message, Scene, ack_of
from tests.fakes import refused, reply_of, request
from txrocketmq.broker.store.message_store import PutMessage, QueueBatch
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError, ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    encode_bit_set,
)

RETRY = f"%RETRY%{GROUP}_T"


@pytest.fixture(params=[False, True], ids=["written", "merged"], name="scene")
def scene_(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, enable_pop_buffer_merge=request.param)
    for number in range(6):
        made.parts.put("T", body=b"%d" % number)
    yield made
    made.close()


def come_back(scene: Scene) -> list[str]:
    scene.advance(INVISIBLE_MS + 5_000)
    return scene.bodies()


@pytest.mark.parametrize(
    ("other", "code", "remark"),
    [
        ({"topic": "U"}, ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"),
        ({"queue_id": 1}, ResponseCode.MESSAGE_ILLEGAL, "queueId[1] is illegal"),
        ({"queue_id": -1}, ResponseCode.MESSAGE_ILLEGAL, "queueId[-1] is illegal"),
        ({"offset": 7}, ResponseCode.NO_MESSAGE, "offset is illegal, key:T@0"),
        ({"offset": -1}, ResponseCode.NO_MESSAGE, "store:0~6"),
        ({"extra_info": ""}, ResponseCode.SYSTEM_ERROR, "extraInfoStrs length 1"),
        ({"extra_info": "1 2 3 4 5"}, ResponseCode.SYSTEM_ERROR, "length 5"),
        ({"extra_info": "x 2 3 4 0 b"}, ResponseCode.SYSTEM_ERROR, 'For input string: "x"'),
        ({"extra_info": "1 2 3 8 0 b"}, ResponseCode.MESSAGE_ILLEGAL, "the revive queue 8"),
        ({"lite_topic": "l"}, ResponseCode.INVALID_PARAMETER, "about the lite topic l"),
        ({"extra_info": "1 2 3 -1 0 b"}, ResponseCode.MESSAGE_ILLEGAL, "the revive queue -1"),
    ],
)
def test_refusals(scene: Scene, other: dict[str, Any], code: ResponseCode, remark: str) -> None:
    message = scene.pop()[0]
    with refused(code, remark):
        scene.ack(message, **other)
    assert come_back(scene) == ["0", "1", "2", "3", "4", "5"]


def test_acks_of_one_read_are_one_write(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    popped = scene.pop()
    store = scene.parts.store
    append, writes = store.append, []

    def counted(messages: Sequence[PutMessage], now_ms: int) -> QueueBatch:
        writes.append(len(messages))
        return append(messages, now_ms)

    monkeypatch.setattr(store, "append", counted)
    headers = [ack_of(each) for each in popped[:4]]
    headers.insert(2, ack_of(popped[4], offset=7))
    headers.insert(1, ack_of(popped[4], extra_info="1 2 3 8 0 b"))
    outcomes = scene.serve_acks(headers)
    codes = [each.code if isinstance(each, (Reply, ResponseError)) else each for each in outcomes]
    illegal, none = ResponseCode.MESSAGE_ILLEGAL, ResponseCode.NO_MESSAGE
    assert codes == [0, illegal, 0, none, 0, 0]
    assert writes == ([] if scene.parts.config.enable_pop_buffer_merge else [4])
    assert scene.parts.pop.in_flight.get("T", GROUP, 0) == 2
    assert come_back(scene) == ["4", "5"]


def test_acks_that_the_store_does_not_take(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for number in range(3):
        scene.parts.put("T", body=b"%d" % number)
    popped = scene.pop()
    scene.parts.store.flush.error = OSError("broken")
    outcomes = scene.serve_acks([ack_of(each) for each in popped])
    scene.parts.store.flush.error = None
    assert [str(each) for each in outcomes] == [
        str(ResponseError(1, "it cannot be written now: SERVICE_NOT_AVAILABLE"))
    ] * 3
    assert scene.parts.pop.in_flight.get("T", GROUP, 0) == 3
    assert come_back(scene) == ["0", "1", "2"]
    scene.close()


def test_acks_of_what_was_never_popped(scene: Scene) -> None:
    message = scene.pop()[0]
    most = 2**63 - 1
    for handle in (
        f"77 {message.handle.pop_time} 1000 0 0 b",
        f"0 {message.handle.pop_time} 1000 0 0 another-broker",
        f"{most} {most} {most} 0 0 b",
        f"-{most} -{most} -{most} 7 0 b",
    ):
        scene.ack(message, extra_info=handle)
    assert come_back(scene) == ["0", "1", "2", "3", "4", "5"]


def batch(scene: Scene, message: Message, *distances: int, **other: Any) -> int:
    """The code of the answer to a batch of one."""
    handle = message.handle
    ack = BatchAck(
        **{
            "consumer_group": GROUP,
            "topic": "T",
            "retry": handle.retry,
            "start_offset": handle.start_offset,
            "queue_id": 0,
            "revive_queue_id": handle.revive_queue_id,
            "pop_time": handle.pop_time,
            "invisible_time": handle.invisible_time,
            "bit_set": encode_bit_set(distances),
            **other,
        }
    )
    body = BatchAckMessageRequestBody(broker_name="DEFAULT_BROKER", acks=[ack]).encode()
    return reply_of(scene.acks().batch_ack(request(NoHeader(), body))).code


def test_a_batch(scene: Scene) -> None:
    message = scene.pop()[0]
    assert batch(scene, message, 0, 3, 5, 9) == ResponseCode.SUCCESS
    assert come_back(scene) == ["1", "2", "4"]
    again = scene.parts.pop.queues
    assert again.offset(RETRY, GROUP, 0) == 3


def test_a_batch_of_what_came_back(scene: Scene) -> None:
    scene.pop()
    scene.advance(INVISIBLE_MS + 5_000)
    again = scene.pop()
    assert batch(scene, again[0], 0, 1, 2, 3) == ResponseCode.SUCCESS
    assert come_back(scene) == ["4", "5"]


def test_a_batch_in_order(scene: Scene) -> None:
    message = scene.pop(order=True)[0]
    assert batch(scene, message, 0, 1) == ResponseCode.SUCCESS
    assert scene.offset() == 2


def test_batches_that_cannot_be(scene: Scene) -> None:
    ask = scene.acks().batch_ack
    for body in (b"", b"{}", b'{"acks":[]}'):
        with refused(ResponseCode.NO_MESSAGE):
            ask(request(NoHeader(), body))
    for body in (b"x", b'{"acks":7}', b"[" * 100_000):
        with pytest.raises(HeaderError):
            ask(request(NoHeader(), body))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"retry": "7"}, "it is 0, 1 or 2"),
        ({"topic": "U"}, "not exist"),
        ({"queue_id": 9}, "queueId[9]"),
        ({"bit_set": "!"}, "is not base64"),
        ({"bit_set": base64.b64encode(bytes(5_000)).decode()}, "are more than"),
        ({"revive_queue_id": 8}, "the revive queue 8"),
    ],
)
def test_a_batch_with_one_that_is_none(scene: Scene, other: dict[str, Any], text: str) -> None:
    message = scene.pop()[0]
    scene.advance(15_000)  # until it is in memory no more
    with pytest.raises((ResponseError, HeaderError)) as error:
        batch(scene, message, 0, **other)
    assert text in f"{error.value} {getattr(error.value, 'remark', '')}"
    assert come_back(scene) == ["0", "1", "2", "3", "4", "5"]


def test_more_than_a_pop_has(scene: Scene) -> None:
    for number in range(100):
        scene.parts.put("T", body=b"%d" % number)
    with refused(ResponseCode.MESSAGE_ILLEGAL, "50 messages of one pop"):
        batch(scene, scene.pop()[0], *range(50))


def test_another_invisible_time(scene: Scene) -> None:
    first, second = scene.pop(max_msg_nums=2)
    scene.advance(2_000)
    answer = scene.hide(first, 120_000)
    assert (answer.pop_time, answer.invisible_time) == (scene.parts.now_ms, 120_000)
    assert answer.revive_qid == first.handle.revive_queue_id
    scene.hide(second, 10_000)
    scene.advance(15_000)
    assert scene.bodies(max_msg_nums=1, queue_id=0) == ["2"]
    scene.advance(INVISIBLE_MS)
    found = scene.pop(exp="none") or []
    assert found == []
    assert scene.parts.store.max_offset(RETRY, 0) >= 1
    scene.ack(first)  # with the new handle
    scene.advance(200_000)
    bodies = [each.body for each in scene.pop()]
    assert "0" not in bodies


def test_its_new_handle_is_good(scene: Scene) -> None:
    messages = scene.pop()
    for each in messages:
        scene.hide(each, 30_000)
    for each in messages[1:]:
        scene.ack(each)
    scene.advance(40_000)
    assert scene.bodies() == ["0"]


@pytest.mark.parametrize("offset", [-1, 6, 2**62])
def test_another_time_for_what_is_not_there(scene: Scene, offset: int) -> None:
    message = scene.pop()[0]
    message.stored.queue_offset = offset
    with refused(ResponseCode.NO_MESSAGE):
        scene.hide(message, 1_000)


def test_another_time_that_is_none(scene: Scene) -> None:
    message = scene.pop()[0]
    with refused(ResponseCode.INVALID_PARAMETER, "invisibleTime is at most"):
        scene.hide(message, 2**62)


def test_in_order(scene: Scene) -> None:
    first, second = scene.pop(order=True, max_msg_nums=2, invisible_time=5_000)
    answer = scene.hide(first, 20_000)
    assert answer.revive_qid == 999
    assert answer.pop_time == first.handle.pop_time
    assert answer.invisible_time == 20_000
    scene.advance(10_000)
    assert scene.pop(order=True) == []
    scene.ack(second)
    scene.ack(first)
    assert scene.offset() == 2
    assert scene.hide(first, 20_000).pop_time == 0  # done with already
    scene.ack(first)
    assert scene.offset() == 2


def test_in_order_what_was_not_popped(scene: Scene) -> None:
    (first,) = scene.pop(order=True, max_msg_nums=1)
    with refused(ResponseCode.MESSAGE_ILLEGAL, "offset is illegal, key:T@g@0, old:0, commit:3"):
        scene.ack(first, offset=3)
    other = first.handle._replace(pop_time=first.handle.pop_time - 1)
    scene.ack(first, extra_info=str(other))  # of an earlier pop: it counts for nothing
    assert scene.offset() == 0


def test_an_ack_opens_the_queue_for_who_waits(scene: Scene) -> None:
    (first,) = scene.pop(order=True, max_msg_nums=1)
    waiting = scene.ask(order=True, poll_time=20_000)
    scene.ack(first)
    scene.turn()
    assert waiting.done


def test_what_cannot_be_written_down_is_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    message = scene.pop()[0]
    scene.advance(15_000)  # until it is in memory no more
    monkeypatch.setattr(type(scene.parts.store), "writeable", False)
    with refused(ResponseCode.SYSTEM_ERROR, "SERVICE_NOT_AVAILABLE"):
        scene.ack(message)
    with refused(ResponseCode.SYSTEM_ERROR, "SERVICE_NOT_AVAILABLE"):
        scene.hide(message, 1_000)
