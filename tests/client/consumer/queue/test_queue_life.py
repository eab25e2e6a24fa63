# SPDX-License-Identifier: Apache-2.0
"""Queues that are made anew, and queues that only look like it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.consumer.fake_broker import QUEUE
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.consumer.queue.queue_life import LOOK_MS, Marks, QueueLife, Seen
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, encode_message
from txrocketmq.remoting.protocol import offset, pull
from txrocketmq.remoting.protocol.offset import (
    GetEarliestMsgStoretimeResponseHeader,
    GetMinOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP, PullMessageResponseHeader

MISSING = MQBrokerError(ResponseCode.TOPIC_NOT_EXIST, "no such topic", BROKER_A)
BUSY = MQBrokerError(ResponseCode.FLOW_CONTROL, "too much to do", BROKER_A)


def message(at: int, physical_offset: int, stored_ms: int) -> MessageExt:
    return MessageExt(
        "T",
        b"body",
        queue_offset=at,
        commit_log_offset=physical_offset,
        store_timestamp=stored_ms,
    )


class Queue:
    """A queue of a broker, and the life that a reader believes it to have."""

    def __init__(self, scene: Scene, queue: MessageQueue = QUEUE) -> None:
        self.scene = scene
        self.messages: list[MessageExt] = []
        self.marks: Marks = {}
        scene.routes[queue.topic] = a_route({"broker-a": 1})
        self.life = QueueLife(scene.client, queue, self.marks)
        on = scene.connections.on
        on(BROKER_A, offset.GET_EARLIEST_MSG_STORETIME, self._earliest)
        on(BROKER_A, offset.GET_MIN_OFFSET, self._min_offset)
        on(BROKER_A, pull.PULL_MESSAGE, self._pull)

    def fill(self, count: int, *, first: int = 0, physical_offset: int = 0, at_ms: int = 0) -> None:
        """Replaces the messages."""
        self.messages = [
            message(first + n, physical_offset + 100 * n, at_ms + n) for n in range(count)
        ]

    def asked(self) -> int:
        return len(self.scene.connections.asked)

    def anew(self, at: int = 10) -> int | None:
        found: int | None = result_of(self.life.begins_anew(at))
        return found

    def _earliest(self, *_: Any) -> Reply[Any]:
        stored_ms = self.messages[0].store_timestamp if self.messages else -1
        return Reply(GetEarliestMsgStoretimeResponseHeader(timestamp=stored_ms))

    def _min_offset(self, *_: Any) -> Reply[Any]:
        first = self.messages[0].queue_offset if self.messages else 0
        return Reply(GetMinOffsetResponseHeader(offset=first))

    def _pull(self, _: Any, header: Any, __: Any) -> Reply[Any]:
        assert header.consumer_group == TOOLS_GROUP, "the group's own progress must not change"
        found = [each for each in self.messages if each.queue_offset == header.queue_offset]
        answer = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=0, min_offset=0, max_offset=0
        )
        code = ResponseCode.SUCCESS if found else ResponseCode.PULL_OFFSET_MOVED
        return Reply(answer, b"".join(map(encode_message, found)), code)


@pytest.fixture
def queue(scene: Scene) -> Queue:
    """A queue with ten messages, which were all seen."""
    made = Queue(scene)
    made.fill(10)
    made.life.saw(made.messages)
    return made


@pytest.mark.parametrize("count", [1, 4, 10, 25])
@pytest.mark.parametrize("physical_offset", [0, 5_000])
def test_a_queue_that_is_made_anew_begins_anew(
    queue: Queue, count: int, physical_offset: int
) -> None:
    """As a topic in the same log, or in a new log because the whole store is a new one."""
    queue.life.doubt(MISSING)
    queue.fill(count, physical_offset=physical_offset, at_ms=1_000)
    assert queue.anew() == 0
    assert queue.marks == {}
    assert queue.anew() is None


def test_a_log_that_was_cut_is_no_new_queue(queue: Queue) -> None:
    del queue.messages[4:]
    queue.life.doubt()
    assert queue.anew() is None
    queue.messages += [message(at, 100 * at, 1_000 + at) for at in range(4, 20)]
    queue.life.doubt()
    assert queue.anew() is None


def test_a_clock_that_was_set_back_makes_no_new_queue(scene: Scene) -> None:
    queue = Queue(scene)
    queue.messages = [message(0, 0, 5_000), message(1, 100, 20)]
    queue.life.saw(queue.messages)
    queue.life.doubt()
    assert queue.anew(2) is None
    assert len(scene.connections.questions(pull.PULL_MESSAGE)) == 1


def test_messages_that_were_deleted_when_they_were_old_make_no_new_queue(queue: Queue) -> None:
    queue.fill(20, first=50, physical_offset=9_000, at_ms=1_000)
    queue.life.doubt()
    assert queue.anew() is None


def test_an_empty_queue_tells_nothing_yet(queue: Queue) -> None:
    queue.life.doubt(MISSING)
    queue.messages = []
    assert queue.anew() is None
    queue.fill(12, physical_offset=5_000, at_ms=1_000)
    assert queue.anew() == 0


def test_who_begins_at_0_doubts_nothing(queue: Queue) -> None:
    queue.life.doubt(MISSING)
    queue.messages = []
    assert queue.anew(0) is None
    queue.fill(3, physical_offset=5_000, at_ms=1_000)
    queue.life.saw(queue.messages)
    queue.life.doubt()
    assert queue.anew(3) is None, "these were read from the first on"


def test_of_a_topic_that_was_missing_everything_is_new(scene: Scene) -> None:
    queue = Queue(scene)
    queue.life.doubt(ConnectError("gone"))
    assert queue.anew() is None
    assert queue.asked() == 0, "nothing was seen by which it could be known"
    queue.fill(3, first=2)
    queue.life.doubt(MISSING)
    assert queue.anew() == 2


@pytest.mark.parametrize(("error", "first"), [(MISSING, 0), (ConnectError("gone"), None)])
def test_who_may_not_ask_goes_by_the_errors(
    queue: Queue, scene: Scene, error: Exception, first: int | None
) -> None:
    no = refusal(ResponseCode.NO_PERMISSION, "not for you")
    scene.connections.on(BROKER_A, offset.GET_EARLIEST_MSG_STORETIME, no)
    queue.life.doubt(error)
    assert queue.anew() == first
    asked = queue.asked()
    assert queue.anew() is None
    assert queue.asked() == asked


def test_a_broker_that_cannot_be_asked_is_asked_again(queue: Queue, scene: Scene) -> None:
    scene.connections.on(BROKER_A, offset.GET_EARLIEST_MSG_STORETIME, ConnectError("gone"))
    queue.life.doubt(MISSING)
    with pytest.raises(ConnectError):
        queue.anew()
    queue = replace_answers(queue)
    queue.fill(10, physical_offset=5_000, at_ms=1_000)
    assert queue.anew() == 0


def replace_answers(queue: Queue) -> Queue:
    """Has the broker answer again."""
    again = Queue(queue.scene)
    again.life, again.marks = queue.life, queue.marks
    return again


def test_a_broker_that_has_much_to_do_is_no_reason(queue: Queue) -> None:
    queue.life.doubt(BUSY)
    assert queue.anew() is None
    assert queue.asked() == 0


def test_it_is_looked_at_now_and_then_while_messages_arrive(queue: Queue, scene: Scene) -> None:
    scene.time.advance(LOOK_MS * 10 / 1_000)
    assert queue.anew() is None
    assert queue.asked() == 0, "nothing has arrived"
    queue.fill(12, physical_offset=5_000, at_ms=1_000)
    queue.life.saw(queue.messages[10:])  # what came to a pull that the broker had kept
    assert queue.anew(12) == 0
    queue.life.saw(queue.messages)
    scene.time.advance((LOOK_MS - 1) / 1_000)
    queue.life.saw([replace(queue.messages[-1], queue_offset=12)])
    asked = queue.asked()
    assert queue.anew(13) is None
    assert queue.asked() == asked
    scene.time.advance(0.001)
    assert queue.anew(13) is None
    assert queue.asked() == asked + 1, "one small request tells it"


def test_what_was_kept_is_looked_at_first(queue: Queue, scene: Scene) -> None:
    queue.fill(20, physical_offset=5_000, at_ms=1_000)
    later = QueueLife(scene.client, QUEUE, queue.marks)
    assert result_of(later.begins_anew(10)) == 0


def test_light_queues_are_known_by_their_offsets(scene: Scene) -> None:
    """They are those in the light queue, which pulled.py gives to the messages."""
    queue = Queue(scene, MessageQueue("%LMQ%a", "broker-a", 0))
    queue.fill(10)
    queue.life.saw(queue.messages)
    queue.life.doubt()
    assert queue.anew() is None
    queue.fill(25, physical_offset=5_000, at_ms=1_000)
    queue.life.doubt()
    assert queue.anew() == 0


@given(st.builds(Seen, *[st.integers(0, 2**63 - 1)] * 3))
def test_a_mark_is_read_as_it_was_written(seen: Seen) -> None:
    assert Seen.parse(str(seen)) == seen


@pytest.mark.parametrize("text", ["", "1", "1 2", "1 2 x", "1 2 -3", "1 2 3 4", "1  2", "1 2 ²"])
def test_other_texts_are_no_marks(text: str) -> None:
    assert Seen.parse(text) is None
