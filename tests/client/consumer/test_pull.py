# SPDX-License-Identifier: Apache-2.0
"""The pull loop: where it begins, how it goes on, what reaches the listener, how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.fakes import (
    BROKER_A,
    BROKER_B,
    Scene,
    a_route,
    refusal,
    result_of,
    started,
)
from txrocketmq.client.base.errors import MessageIllegal, MQBrokerError, NoRoute
from txrocketmq.client.consumer.pull import FLOW_CONTROL_MS, RETRY_MS, PullLoop
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.compression import CompressionType, compress
from txrocketmq.remoting.message.flags import MessageSysFlag, PullSysFlag
from txrocketmq.remoting.message.message import (
    Message,
    MessageExt,
    MessageQueue,
    encode_batch,
    encode_message,
)
from txrocketmq.remoting.message.tags import SubscriptionError
from txrocketmq.remoting.protocol import offset, pull
from txrocketmq.remoting.protocol.offset import (
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

COMPRESSED = MessageSysFlag.COMPRESSED | CompressionType.ZLIB.flag


def record(body: bytes, tags: str | None = None, sys_flag: int = 0) -> bytes:
    properties = {"TAGS": tags} if tags else {}
    return encode_message(MessageExt("T", body, properties=properties, sys_flag=sys_flag))


def pulled(code: int, next_offset: int, body: bytes = b"", suggested: int = 0) -> Reply[Any]:
    header = PullMessageResponseHeader(
        suggest_which_broker_id=suggested,
        next_begin_offset=next_offset,
        min_offset=0,
        max_offset=100,
    )
    return Reply(header, body, code)


class Broker:
    """Answers pulls one by one, as told; offsets of a queue are 10 to 90."""

    def __init__(self, scene: Scene, address: str = BROKER_A) -> None:
        self.scene = scene
        self.address = address
        self.answers: list[Any] = []
        self.earliest_ms = 0
        self.open: list[PendingReply] = []
        on = scene.connections.on
        on(address, pull.PULL_MESSAGE, self._pull)
        on(address, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=10)))
        on(
            address,
            offset.GET_EARLIEST_MSG_STORETIME,
            lambda *_: Reply(GetEarliestMsgStoretimeResponseHeader(timestamp=self.earliest_ms)),
        )
        on(address, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=90)))
        on(
            address,
            offset.SEARCH_OFFSET_BY_TIMESTAMP,
            lambda _, header, __: Reply(SearchOffsetResponseHeader(offset=header.timestamp)),
        )

    def _pull(self, address: str, header: Any, body: bytes) -> Any:
        if self.answers:
            return self.answers.pop(0)
        self.open.append(PendingReply())
        return self.open[-1]

    def pulls(self) -> list[Any]:
        """Headers of the pulls that came here."""
        asked = self.scene.connections.questions(pull.PULL_MESSAGE)
        return [header for address, header in asked if address == self.address]

    def offsets(self) -> list[int]:
        """Where they wanted to read."""
        return [header.queue_offset for header in self.pulls()]


class Listener:
    """Remembers what it got; `answers` are given back in turn, to be awaited."""

    def __init__(self) -> None:
        self.got: list[tuple[MessageQueue, list[bytes]]] = []
        self.messages: list[MessageExt] = []
        self.answers: list[Any] = []

    def __call__(self, queue: MessageQueue, messages: Sequence[MessageExt]) -> Any:
        self.got.append((queue, [message.body for message in messages]))
        self.messages += messages
        return self.answers.pop(0) if self.answers else None

    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]


QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def broker(scene: Scene) -> Broker:
    """One broker with one queue of T."""
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.client.start()
    return Broker(scene)


@pytest.fixture
def listener() -> Listener:
    return Listener()


def run(scene: Scene, listener: Any, **options: Any) -> PullLoop:
    loop = PullLoop(scene.client, "T", listener, **options)
    result_of(loop.start())
    return loop


@pytest.mark.parametrize(("start", "begin"), [("first", 10), ("last", 90), (1_234, 1_234)])
def test_where_it_begins(
    scene: Scene, broker: Broker, listener: Listener, start: Any, begin: int
) -> None:
    loop = run(scene, listener, start=start)
    assert broker.offsets() == [begin]
    assert loop.queues == [QUEUE]


def test_what_a_pull_asks_for(scene: Scene, broker: Broker, listener: Listener) -> None:
    run(scene, listener, expression="A||B", group="g")
    (header,) = broker.pulls()
    assert (header.consumer_group, header.topic, header.queue_id) == ("g", "T", 0)
    assert header.sys_flag == PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION
    assert (header.subscription, header.expression_type) == ("A||B", "TAG")
    assert (header.max_msg_nums, header.suspend_timeout_millis) == (32, 15_000)
    assert scene.connections.asked[-1][4] == 30_000


def test_messages_reach_the_listener_and_the_next_pull_goes_on(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    broker.answers.append(pulled(0, 92, record(b"one") + record(b"two")))
    run(scene, listener)
    assert listener.got == [(QUEUE, [b"one", b"two"])]
    assert listener.messages[0].broker_name == "broker-a"
    assert broker.offsets() == [90, 92]
    broker.open[0].resolve(pulled(0, 93, record(b"three")))
    assert listener.bodies() == [b"one", b"two", b"three"]
    assert broker.offsets() == [90, 92, 93]


def test_each_queue_has_a_pull_of_its_own(scene: Scene, listener: Listener) -> None:
    scene.routes["T"] = a_route({"broker-a": 2, "broker-b": 1})
    a, b = Broker(scene), Broker(scene, BROKER_B)
    loop = run(scene, listener)
    assert sorted(header.queue_id for header in a.pulls()) == [0, 1]
    assert len(b.pulls()) == 1
    assert len(loop.queues) == 3


def test_a_pull_waits_for_the_listener(scene: Scene, broker: Broker, listener: Listener) -> None:
    busy: Deferred[None] = Deferred()
    listener.answers.append(busy)
    broker.answers.append(pulled(0, 91, record(b"one")))
    run(scene, listener)
    assert broker.offsets() == [90]
    busy.callback(None)
    assert broker.offsets() == [90, 91]


def test_tags_are_compared_not_their_hashes(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    batch = record(b"a", "A") + record(b"b", "B") + record(b"none") + record(b"c", "C")
    broker.answers += [pulled(0, 94, batch), pulled(0, 95, record(b"b", "B"))]
    run(scene, listener, expression="A || C")
    assert listener.got == [(QUEUE, [b"a", b"c"])]
    assert broker.offsets() == [90, 94, 95]


def test_bodies_are_decompressed(scene: Scene, broker: Broker, listener: Listener) -> None:
    body = compress(b"x" * 9_000, CompressionType.ZLIB)
    broker.answers.append(pulled(0, 91, record(body, sys_flag=COMPRESSED)))
    run(scene, listener)
    assert listener.bodies() == [b"x" * 9_000]


def test_a_body_that_is_damaged_is_passed_on_as_it_is(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    batch = record(b"no zlib", sys_flag=COMPRESSED) + record(b"good")
    broker.answers.append(pulled(0, 92, batch))
    run(scene, listener)
    assert listener.bodies() == [b"no zlib", b"good"]
    assert listener.messages[0].sys_flag & MessageSysFlag.COMPRESSED


def test_inner_batches_are_unwrapped(scene: Scene, broker: Broker, listener: Listener) -> None:
    inner = encode_batch([Message("T", b"1"), Message("T", b"2")])
    flags = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
    broker.answers.append(pulled(0, 92, record(inner, sys_flag=flags)))
    run(scene, listener)
    assert listener.bodies() == [b"1", b"2"]


def test_what_is_no_message_ends_the_loop(scene: Scene, broker: Broker, listener: Listener) -> None:
    broker.answers.append(pulled(0, 91, b"\0" * 100))
    loop = run(scene, listener)
    with pytest.raises(ValueError, match="no message at offset 0"):
        result_of(loop.done)


@pytest.mark.parametrize("code", [20, 21])
def test_corrections_are_followed_at_once(
    scene: Scene, broker: Broker, listener: Listener, code: int
) -> None:
    broker.answers.append(pulled(code, 50))
    run(scene, listener)
    assert broker.offsets() == [90, 50]
    assert listener.got == []


def test_a_broker_that_does_not_wait_is_not_asked_without_end(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    broker.answers += [pulled(19, 90), pulled(19, 90)]
    run(scene, listener)
    assert len(broker.pulls()) == 1
    scene.time.advance(FLOW_CONTROL_MS / 1000)
    assert len(broker.pulls()) == 2


def test_the_suggested_broker_is_asked_next(scene: Scene, listener: Listener) -> None:
    addresses = {"broker-a": {0: BROKER_A, 1: BROKER_B}}
    scene.routes["T"] = a_route({"broker-a": 1}, addresses=addresses)
    master, slave = Broker(scene), Broker(scene, BROKER_B)
    master.answers.append(pulled(0, 91, record(b"one"), suggested=1))
    run(scene, listener)
    assert (master.offsets(), slave.offsets()) == ([90], [91])


@pytest.mark.parametrize(
    ("trouble", "pause_ms"),
    [
        (ConnectError("refused"), RETRY_MS),
        (refusal(ResponseCode.SYSTEM_BUSY), RETRY_MS),
        (refusal(ResponseCode.FLOW_CONTROL), FLOW_CONTROL_MS),
    ],
)
def test_trouble_that_passes_is_waited_for(
    scene: Scene, broker: Broker, listener: Listener, trouble: Any, pause_ms: int
) -> None:
    broker.answers.append(trouble)
    run(scene, listener)
    scene.time.advance((pause_ms - 1) / 1000)
    assert broker.offsets() == [90]
    scene.time.advance(0.001)
    assert broker.offsets() == [90, 90]


def test_a_queue_that_moved_is_found_again(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    broker.answers.append(ConnectError("gone"))
    run(scene, listener)
    moved = Broker(scene, BROKER_B)
    scene.routes["T"] = a_route({"broker-a": 1}, addresses={"broker-a": {0: BROKER_B}})
    scene.time.advance(RETRY_MS / 1000)
    assert moved.offsets() == [90]


@pytest.mark.parametrize("code", [16, 23, 26, 3])
def test_a_refusal_that_stays_ends_the_loop(
    scene: Scene, broker: Broker, listener: Listener, code: int
) -> None:
    broker.answers.append(refusal(code))
    loop = run(scene, listener)
    with pytest.raises(MQBrokerError) as error:
        result_of(loop.done)
    assert error.value.code == code
    assert loop.queues == []


def test_an_answer_that_does_not_say_where_to_go_on_ends_the_loop(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    broker.answers.append(refusal(ResponseCode.PULL_NOT_FOUND))
    with pytest.raises(MQBrokerError, match="at which offset to continue"):
        result_of(run(scene, listener).done)


def test_the_listeners_failure_ends_the_loop(scene: Scene, broker: Broker) -> None:
    def fails(queue: MessageQueue, messages: list[MessageExt]) -> None:
        raise BrokenPipeError("nobody reads")

    broker.answers.append(pulled(0, 91, record(b"one")))
    loop = run(scene, fails)
    with pytest.raises(BrokenPipeError):
        result_of(loop.done)


def test_the_listener_may_stop_the_loop(scene: Scene, broker: Broker) -> None:
    loop: PullLoop

    def enough(queue: MessageQueue, messages: list[MessageExt]) -> None:
        loop.stop()

    loop = PullLoop(scene.client, "T", enough)
    result_of(loop.start())
    broker.open[0].resolve(pulled(0, 91, record(b"one")))
    assert result_of(loop.done) is None
    assert broker.offsets() == [90]


def test_a_topic_that_was_missing_is_read_from_its_first_message(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    broker.answers.append(refusal(ResponseCode.TOPIC_NOT_EXIST))
    run(scene, listener)
    scene.time.advance(RETRY_MS / 1000)
    assert broker.offsets() == [90, 10]


def test_a_topic_that_is_made_anew_is_read_from_its_first_message(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    run(scene, listener)
    old = encode_message(MessageExt("T", b"old", queue_offset=90))
    broker.open[0].resolve(pulled(0, 91, old))
    broker.earliest_ms = 2**50
    broker.answers = [pulled(ResponseCode.PULL_OFFSET_MOVED, 0), pulled(0, 11, record(b"new"))]
    broker.open[1].resolve(refusal(ResponseCode.TOPIC_NOT_EXIST))
    scene.time.advance(RETRY_MS / 1000)
    assert listener.bodies() == [b"old", b"new"]
    assert broker.offsets()[-2:] == [10, 11]


def test_after_the_stop_nothing_is_asked_and_nothing_told(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    loop = run(scene, listener)
    loop.stop()
    assert result_of(loop.done) is None
    broker.open[0].resolve(pulled(0, 91, record(b"late")))
    scene.routes["T"] = a_route({"broker-a": 2})
    scene.time.advance(60)
    assert (listener.got, broker.offsets()) == ([], [90])
    loop.stop()


def test_queues_come_and_go_with_the_route(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    other = Broker(scene, BROKER_B)
    loop = run(scene, listener)
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    scene.time.advance(30)
    assert other.offsets() == [0]  # a new queue is read from its start, wherever that is
    other.open[0].resolve(pulled(0, 5, record(b"new")))
    assert other.offsets() == [0, 5]
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.time.advance(30)
    assert loop.queues == [QUEUE]
    other.open[1].resolve(pulled(0, 6, record(b"lost")))
    assert listener.bodies() == [b"new"]
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    scene.time.advance(30)
    assert other.offsets() == [0, 5, 5]


def test_a_topic_that_nobody_has_is_told_and_may_be_tried_again(
    scene: Scene, listener: Listener
) -> None:
    loop = PullLoop(scene.client, "T", listener)
    with pytest.raises(NoRoute):
        result_of(loop.start())
    scene.routes["T"] = a_route({"broker-a": 1})
    broker = Broker(scene)
    loop.start_from = "first"
    result_of(loop.start())
    assert broker.offsets() == [10]


def test_a_queue_whose_offset_is_not_told_fails_the_start(
    scene: Scene, broker: Broker, listener: Listener
) -> None:
    scene.connections.on(BROKER_A, offset.GET_MAX_OFFSET, refusal(16, "no reading"))
    with pytest.raises(MQBrokerError, match="NO_PERMISSION"):
        result_of(PullLoop(scene.client, "T", listener).start())
    assert broker.pulls() == []


def test_a_stop_while_it_starts_is_a_stop(scene: Scene, broker: Broker, listener: Listener) -> None:
    answer = PendingReply()
    scene.connections.on(BROKER_A, offset.GET_MAX_OFFSET, answer)
    loop = PullLoop(scene.client, "T", listener)
    starting = started(loop.start())
    loop.stop()
    answer.resolve(Reply(GetMaxOffsetResponseHeader(offset=1)))
    result_of(starting)
    assert broker.pulls() == []


def test_names_and_expressions_are_checked_first(scene: Scene, listener: Listener) -> None:
    with pytest.raises(MessageIllegal):
        PullLoop(scene.client, "no good", listener)
    with pytest.raises(MessageIllegal):
        PullLoop(scene.client, "T", listener, group="no good")
    with pytest.raises(SubscriptionError):
        PullLoop(scene.client, "T", listener, expression="||")
