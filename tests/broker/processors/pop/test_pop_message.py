# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.pop.scene import Scene, messages_of
from tests.counted import lines_of
from tests.fakes import outcome_of, request
from txrocketmq.broker.processors.pop.pop_message import PopMessageProcessor
from txrocketmq.broker.store.disk import in_memory
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def test_an_answer(scene: Scene) -> None:
    for tag in "abb":
        scene.parts.put("T", body=tag.encode(), TAGS=tag)
    reply = scene.reply(exp="b || c", invisible_time=7_000)
    assert (reply.code, reply.remark) == (ResponseCode.SUCCESS, "FOUND")
    header = reply.header
    assert header is not None
    assert header.pop_time == scene.parts.now_ms
    assert (header.invisible_time, header.rest_num) == (7_000, 0)
    assert (header.start_offset_info, header.msg_offset_info) == ("0 0 0", "0 0 1,2")
    assert [each.body for each in messages_of(reply)] == ["b", "b"]


@pytest.mark.parametrize(
    ("wanted", "code", "remark"),
    [
        ({"max_msg_nums": 33}, ResponseCode.INVALID_PARAMETER, "greater than 32"),
        ({"topic": "U"}, ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"),
        ({"queue_id": 1}, ResponseCode.INVALID_PARAMETER, "queueId[1] is illegal"),
        ({"consumer_group": "a b"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "a b"),
        ({"exp": "||"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "subscription failed"),
        ({"exp": "a >", "exp_type": "SQL92"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "failed"),
        ({"exp": "a", "exp_type": "XPATH"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "failed"),
        ({"exp": "(" * 50_000, "exp_type": "SQL92"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED, ""),
        ({"born_time": 1}, ResponseCode.POLLING_TIMEOUT, "timeout too much"),
        ({"invisible_time": 2**62}, ResponseCode.INVALID_PARAMETER, "invisibleTime"),
    ],
)
def test_refusals(scene: Scene, wanted: dict[str, Any], code: ResponseCode, remark: str) -> None:
    error = outcome_of(scene.ask(**wanted))
    assert isinstance(error, ResponseError)
    assert error.code == code
    assert remark in (error.remark or "")


def test_a_pop_waits_for_a_message(scene: Scene) -> None:
    waiting = scene.ask(poll_time=20_000)
    assert not waiting.done
    scene.parts.put("T", body=b"a")
    assert not waiting.done  # who sent it is answered first
    scene.turn()
    assert [each.body for each in messages_of(outcome_of(waiting))] == ["a"]


def test_it_waits_on_when_the_message_is_not_for_it(scene: Scene) -> None:
    waiting = scene.ask(poll_time=20_000, exp="a")
    scene.parts.put("T", TAGS="b")
    scene.turn()
    assert not waiting.done
    scene.parts.put("T", body=b"this", TAGS="a")
    scene.turn()
    assert [each.body for each in messages_of(outcome_of(waiting))] == ["this"]


def test_it_waits_for_what_comes_back(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    scene.pop(invisible_time=5_000)
    waiting = scene.ask(poll_time=30_000)
    scene.advance(4_000)
    assert not waiting.done
    scene.advance(4_000)
    assert [each.body for each in messages_of(outcome_of(waiting))] == ["a"]


def test_it_waits_in_vain(scene: Scene) -> None:
    waiting = scene.ask(poll_time=5_000)
    scene.advance(6_000)
    reply = outcome_of(waiting)
    assert (reply.code, reply.remark) == (ResponseCode.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE")
    assert reply.header.start_offset_info == ""


def test_a_client_without_a_clock(scene: Scene) -> None:
    waiting = scene.ask(poll_time=5_000, born_time=0)
    assert not waiting.done
    scene.advance(6_000)
    assert outcome_of(waiting).code == ResponseCode.POLLING_TIMEOUT


def test_a_burst_wakes_as_many_as_it_feeds(scene: Scene) -> None:
    waiting = [scene.ask(poll_time=20_000, max_msg_nums=2) for _ in range(5)]
    for number in range(6):
        scene.parts.put("T", body=b"%d" % number)
    scene.turn()
    done = [messages_of(outcome_of(each)) for each in waiting if each.done]
    assert [[each.body for each in found] for found in done] == [["0", "1"], ["2", "3"], ["4", "5"]]


def test_a_message_costs_the_same_however_many_pops_wait(tmp_path: Path) -> None:
    few, many = (lines_for_a_message(tmp_path / f"{number}", number) for number in (10, 1_000))
    assert many <= few + 50


def lines_for_a_message(folder: Path, pops: int) -> int:
    """How much is done from a message's arrival until one of so many pops has it."""
    scene = Scene(folder)
    waiting = [scene.ask(poll_time=20_000) for _ in range(pops)]

    def arrives() -> None:
        scene.parts.put("T", body=b"a")
        scene.turn()

    for number in range(4):  # the first ones make the queue and the group
        arrives()
        assert [each.done for each in waiting].count(True) == number + 1
    lines = lines_of(arrives)
    assert [each.done for each in waiting].count(True) == 5
    scene.close()
    return lines


def test_a_topic_that_goes_meanwhile(scene: Scene) -> None:
    waiting = scene.ask(poll_time=5_000)
    scene.parts.topics.delete("T")
    scene.advance(6_000)
    error = outcome_of(waiting)
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.TOPIC_NOT_EXIST


def test_it_waits_for_the_disk(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.parts.put("T", body=b"a")
    later: list[Any] = []
    scene.parts.store._records.written_from = scene.parts.store.max_physical_offset
    cold = [in_memory.Chunk("x", 0, 1)]
    monkeypatch.setattr(in_memory.InMemory, "missing", lambda *_: tuple(cold))
    monkeypatch.setattr(in_memory.ColdRead, "run", lambda _: None)
    scene.parts.patience._in_thread = lambda work, done: later.append(done)
    waiting = scene.ask()
    assert not waiting.done
    cold.clear()
    later.pop()(None)
    assert [each.body for each in messages_of(outcome_of(waiting))] == ["a"]


def test_there_is_nothing_to_roll_back(scene: Scene) -> None:
    processor = scene.processors[PopMessageProcessor]
    assert isinstance(processor, PopMessageProcessor)
    assert processor.roll_back(request(NoHeader())).code == ResponseCode.SUCCESS
