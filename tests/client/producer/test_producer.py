# SPDX-License-Identifier: Apache-2.0
"""Sending: what leaves, which broker is tried next, what is refused before anybody is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from tests.client.fakes import BROKER_A, BROKER_B, Scene, a_route, refusal, result_of, started
from tests.counted import lines_of
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import (
    ClientClosed,
    MessageIllegal,
    MQBrokerError,
    NoRoute,
    SendFailed,
    TooMuchOnTheWay,
)
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send.backpressure import FIRST_COUNT
from txrocketmq.client.producer.send_result import SendStatus
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.errors import ConnectError, RequestTimeout
from txrocketmq.remoting.message.compression import CompressionType, decompress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, MessageQueue, decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

STORED = Reply(SendMessageResponseHeader(msg_id="OFFSETID", queue_id=0, queue_offset=7))
MOST_LINES_OF_A_SEND = 190
"""How many lines of Python a send of the usual kind runs here, without codecs and connections."""


@pytest.fixture
def two(scene: Scene) -> Scene:
    """A topic with two queues at each of two brokers, both of which store."""
    scene.routes["T"] = a_route({"broker-a": 2, "broker-b": 2})
    for address in (BROKER_A, BROKER_B):
        scene.connections.on(address, send.SEND_MESSAGE_V2, STORED)
        scene.connections.on(address, send.SEND_BATCH_MESSAGE, STORED)
    return scene


def sent(scene: Scene) -> list[tuple[str, Any, bytes]]:
    calls = (send.SEND_MESSAGE_V2, send.SEND_BATCH_MESSAGE)
    return [
        (a, header, body) for a, call, header, body, _ in scene.connections.asked if call in calls
    ]


def _by_number(queues: Sequence[MessageQueue], _: Message, key: int) -> MessageQueue:
    return queues[key]


def test_what_leaves(two: Scene) -> None:
    two.time.advance(5)
    message = Message("T", b"body", 3, {"TAGS": "A", "own": "1"})
    result = result_of(Producer(two.client, "g").send(message))
    ((_, header, body),) = sent(two)
    assert body == b"body"
    assert (header.producer_group, header.topic, header.flag) == ("g", "T", 3)
    assert (header.default_topic, header.default_topic_queue_nums) == ("TBW102", 4)
    assert (header.born_timestamp, header.sys_flag, header.reconsume_times) == (5_000, 0, 0)
    assert header.batch is False
    key = message.unique_key
    assert decode_properties(header.properties) == {
        "TAGS": "A",
        "own": "1",
        "WAIT": "true",
        "UNIQ_KEY": key,
    }
    assert (result.msg_id, result.offset_msg_id, result.queue_offset) == (key, "OFFSETID", 7)


def test_a_key_that_is_there_stays(two: Scene) -> None:
    message = Message("T", b"x", properties={"UNIQ_KEY": "MINE", "WAIT": "false"})
    assert result_of(Producer(two.client, "g").send(message)).msg_id == "MINE"
    assert decode_properties(sent(two)[0][1].properties)["WAIT"] == "false"


def test_messages_go_round_the_queues(two: Scene) -> None:
    producer = Producer(two.client, "g")
    for _ in range(4):
        result_of(producer.send(Message("T", b"x")))
    assert sorted((a, header.queue_id) for a, header, _ in sent(two)) == [
        (BROKER_A, 0),
        (BROKER_A, 1),
        (BROKER_B, 0),
        (BROKER_B, 1),
    ]


@pytest.mark.parametrize("kind", list(CompressionType))
def test_bodies_of_four_kilobytes_are_compressed(two: Scene, kind: CompressionType) -> None:
    producer = Producer(two.client, "g", ProducerConfig(compression=kind))
    result_of(producer.send(Message("T", b"a" * 4095)))
    result_of(producer.send(Message("T", b"a" * 4096)))
    (_, plain, _), (_, header, body) = sent(two)
    assert plain.sys_flag == 0
    assert header.sys_flag == MessageSysFlag.COMPRESSED | kind.flag
    assert decompress(body, header.sys_flag) == b"a" * 4096
    assert len(body) < 200


@pytest.mark.parametrize("error", [ConnectError("refused"), RequestTimeout("late"), refusal(14)])
def test_another_broker_is_tried(two: Scene, error: Any) -> None:
    two.connections.on(BROKER_A, send.SEND_MESSAGE_V2, error)
    producer = Producer(two.client, "g")
    for _ in range(4):
        assert result_of(producer.send(Message("T", b"x"))).queue.broker_name == "broker-b"
    keys: dict[str, set[str]] = {}
    for address, header, _ in sent(two):
        keys.setdefault(decode_properties(header.properties)["UNIQ_KEY"], set()).add(address)
    assert {BROKER_A, BROKER_B} in keys.values()  # one message, one key, two brokers


def test_when_all_fail_each_attempt_is_told(two: Scene) -> None:
    two.connections.on(BROKER_A, send.SEND_MESSAGE_V2, ConnectError("refused"))
    two.connections.on(BROKER_B, send.SEND_MESSAGE_V2, refusal(2, "busy"))
    with pytest.raises(SendFailed) as error:
        result_of(Producer(two.client, "g").send(Message("T", b"x")))
    assert len(error.value.attempts) == 3
    assert len(sent(two)) == 3
    assert re.search(r"broker-a( \(2 times\))?: refused", str(error.value))
    assert "SYSTEM_BUSY (2): busy" in str(error.value)
    assert error.value.code in (10001, 2)


def test_retries_are_a_setting(two: Scene) -> None:
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, RequestTimeout("late"))
    with pytest.raises(SendFailed, match="after 1 attempt:") as error:
        result_of(Producer(two.client, "g", ProducerConfig(retry_times=0)).send(Message("T", b"x")))
    assert error.value.code == 10002


def test_a_refusal_that_all_would_give_is_final(two: Scene) -> None:
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, refusal(13, "too long"))
    with pytest.raises(MQBrokerError, match="MESSAGE_ILLEGAL"):
        result_of(Producer(two.client, "g").send(Message("T", b"x")))
    assert len(sent(two)) == 1


def test_attempts_share_one_time_limit(two: Scene) -> None:
    def slow(address: str, header: Any, body: bytes) -> Reply[Any]:
        two.time.advance(2)
        return refusal(2)

    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, slow)
    with pytest.raises(SendFailed, match="after 2 attempts"):
        result_of(Producer(two.client, "g").send(Message("T", b"x"), timeout_ms=3_500))
    limits = [ms for _, call, _, _, ms in two.connections.asked if call is send.SEND_MESSAGE_V2]
    assert limits == [3_500, 1_500]


def test_a_message_that_is_stored_but_not_safe_is_not_sent_again(two: Scene) -> None:
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, refusal(10))
    result = result_of(Producer(two.client, "g").send(Message("T", b"x")))
    assert result.status is SendStatus.FLUSH_DISK_TIMEOUT
    assert len(sent(two)) == 1


def test_unless_that_is_wanted(two: Scene) -> None:
    config = ProducerConfig(retry_another_broker_when_not_store_ok=True)
    two.connections.on(BROKER_A, send.SEND_MESSAGE_V2, refusal(10))
    two.connections.on(BROKER_B, send.SEND_MESSAGE_V2, refusal(13))
    producer = Producer(two.client, "g", config)
    outcomes: set[SendStatus | None] = set()
    for _ in range(4):
        try:
            outcomes.add(result_of(producer.send(Message("T", b"x"))).status)
        except MQBrokerError:
            outcomes.add(None)  # broker-b came first, and its answer is final
    assert outcomes == {SendStatus.FLUSH_DISK_TIMEOUT, None}


def test_a_queue_of_ones_own_choice_is_tried_once(two: Scene) -> None:
    queue = MessageQueue("T", "broker-b", 1)
    producer = Producer(two.client, "g")
    assert result_of(producer.send(Message("T", b"x"), queue=queue)).queue.broker_name == "broker-b"
    assert sent(two)[0][1].queue_id == 1
    two.connections.on(BROKER_B, send.SEND_MESSAGE_V2, ConnectError("refused"))
    with pytest.raises(ConnectError):
        result_of(producer.send(Message("T", b"x"), queue=queue))
    assert len(sent(two)) == 2


@pytest.mark.parametrize("queue", [None, MessageQueue("T", "broker-b", 1)])
def test_a_broker_that_is_left_alone_is_waited_for_at_last(
    two: Scene, queue: MessageQueue | None
) -> None:
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, ConnectError("just now", 1_000))
    sending = started(Producer(two.client, "g").send(Message("T", b"x"), queue=queue))
    asked = 1 if queue else 3
    assert len(sent(two)) == asked
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, STORED)
    two.time.advance(0.999)
    assert len(sent(two)) == asked
    two.time.advance(0.001)
    assert result_of(sending).status is SendStatus.SEND_OK
    assert two.connections.asked[-1][-1] == 2_000  # what is left of the time


def test_no_longer_than_there_is_time(two: Scene) -> None:
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, ConnectError("just now", 1_000))
    with pytest.raises(SendFailed, match="after 3 attempts"):
        result_of(Producer(two.client, "g").send(Message("T", b"x"), timeout_ms=1_000))
    assert len(sent(two)) == 3


def test_a_batch_is_one_request(two: Scene) -> None:
    messages = [Message("T", b"a" * 5000), Message("T", b"b", properties={"TAGS": "x"})]
    result = result_of(Producer(two.client, "g").send_batch(messages))
    ((_, header, body),) = sent(two)
    assert (header.batch, header.sys_flag) == (True, 0)
    inner = decode_batch(body, "T")
    assert [m.body for m in inner] == [b"a" * 5000, b"b"]
    assert [m.unique_key for m in inner] == [m.unique_key for m in messages]
    assert result.msg_id == ",".join(str(m.unique_key) for m in messages)
    own = decode_properties(header.properties)
    assert own["WAIT"] == "true"
    assert own["UNIQ_KEY"] not in result.msg_id


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "at least one"),
        ([Message("T", b"x"), Message("U", b"x")], "same topic"),
        ([Message("T", b"x", properties={"DELAY": "1"})], "cannot contain delayed"),
        ([Message("T", b"x"), Message("T", b"x", properties={"WAIT": "false"})], "wait"),
        ([Message("%RETRY%g", b"x")], "retry"),
        ([Message("T", b"x" * 3_000_000)] * 2, "batch of 6000128 bytes is larger"),
        ([Message("T", b"")], "empty"),
    ],
)
def test_what_is_no_batch(two: Scene, messages: list[Message], why: str) -> None:
    with pytest.raises(MessageIllegal, match=why):
        result_of(Producer(two.client, "g").send_batch(messages))
    assert two.connections.asked == []


def test_one_way_waits_for_nothing(two: Scene) -> None:
    result_of(Producer(two.client, "g").send_oneway(Message("T", b"x")))
    ((_, call, header, body),) = two.connections.told
    assert (call, header.topic, body) == (send.SEND_MESSAGE_V2, "T", b"x")
    assert sent(two) == []


def test_one_way_is_over_as_soon_as_it_has_begun_when_the_route_is_known(two: Scene) -> None:
    producer, settled = Producer(two.client, "g"), list[Any]()
    waiting = producer._begin_oneway(settled.append, Message("T", b"first"))
    assert waiting is not None, "the route was asked for"
    assert settled == [None]
    asked = len(two.connections.asked)
    assert producer._begin_oneway(settled.append, Message("T", b"second")) is None
    assert settled == [None, None]
    assert [body for *_, body in two.connections.told] == [b"first", b"second"]
    assert len(two.connections.asked) == asked


def test_one_way_waits_while_a_connection_takes_no_more(two: Scene) -> None:
    producer, settled = Producer(two.client, "g"), list[Any]()
    result_of(producer.send_oneway(Message("T", b"asks for the route")))
    two.connections.full |= {BROKER_A, BROKER_B}
    for number in range(3):
        producer._begin_oneway(settled.append, Message("T", b"%d" % number))
    assert [body for *_, body in two.connections.told][1:] == [b"0"]
    assert settled == [None]
    two.connections.full.clear()
    two.connections.waiting.pop()()
    assert [body for *_, body in two.connections.told][1:] == [b"0", b"1", b"2"]
    assert settled == [None] * 3


def test_the_shutdown_ends_one_way_sends_that_wait(two: Scene) -> None:
    producer, settled = Producer(two.client, "g"), list[Any]()
    result_of(producer.send_oneway(Message("T", b"asks for the route")))
    two.connections.full |= {BROKER_A, BROKER_B}
    for _ in range(2):
        producer._begin_oneway(settled.append, Message("T", b"x"))
    ended = started(producer.shutdown())
    two.time.pump([0.0] * 3)
    assert result_of(ended) is None
    assert isinstance(settled[1].value, ClientClosed)


def test_one_way_to_a_queue_and_by_a_selector(two: Scene) -> None:
    producer = Producer(two.client, "g")
    queue = MessageQueue("T", "broker-b", 1)
    for _ in range(2):  # the first time the route is asked for
        result_of(producer.send_oneway(Message("T", b"x"), queue=queue))
        result_of(producer.send_oneway(Message("T", b"x"), selector=_by_number, key=3))
    told = [(address, header.queue_id) for address, _, header, _ in two.connections.told]
    assert told == [(BROKER_B, 1)] * 4
    with pytest.raises(ValueError, match="not both"):
        result_of(producer.send_oneway(Message("T", b"x"), queue=queue, selector=_by_number, key=3))


@pytest.mark.parametrize("known", [False, True])
def test_what_cannot_be_sent_one_way(two: Scene, known: bool) -> None:
    producer = Producer(two.client, "g")
    if known:
        result_of(producer.send_oneway(Message("T", b"x")))
    with pytest.raises(MessageIllegal):
        result_of(producer.send_oneway(Message("T", b"")))
    with pytest.raises(NoRoute, match="topic U has no route"):
        result_of(producer.send_oneway(Message("U", b"x")))
    assert len(two.connections.told) == known


def test_what_is_too_large_to_be_compressed_at_once_leaves_one_way_too(two: Scene) -> None:
    producer = Producer(two.client, "g")
    result_of(producer.send_oneway(Message("T", b"x")))
    result_of(producer.send_oneway(Message("T", b"x" * 2_000_000)))
    (*_, body) = two.connections.told[-1]
    assert decompress(body, CompressionType.ZLIB.flag) == b"x" * 2_000_000


def test_a_batch_is_begun_without_a_coroutine(two: Scene) -> None:
    producer, settled = Producer(two.client, "g"), list[Any]()
    result_of(producer.send_batch([Message("T", b"x")]))
    answer = PendingReply()
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_BATCH_MESSAGE, answer)
    producer._begin_batch(settled.append, [Message("T", b"x")], timeout_ms=1_234)
    assert two.connections.asked[-1][-1] == 1_234
    assert settled == []
    answer.resolve(STORED)
    assert [each.status for each in settled] == [SendStatus.SEND_OK]
    with pytest.raises(MessageIllegal):
        producer._begin_batch(settled.append, [])
    assert len(settled) == 1


class Flood:
    """A producer whose brokers answer when the test says so."""

    def __init__(self, scene: Scene, **settings: Any) -> None:
        self.scene = scene
        self.pending: list[PendingReply] = []
        self.most = 0
        self.settled: list[Any] = []

        def ask(*_: Any) -> PendingReply:
            self.pending.append(PendingReply())
            self.most = max(self.most, len(self.pending))
            return self.pending[-1]

        for address in (BROKER_A, BROKER_B):
            scene.connections.on(address, send.SEND_MESSAGE_V2, ask)
            scene.connections.on(address, send.SEND_BATCH_MESSAGE, ask)
        self.producer = Producer(scene.client, "g", ProducerConfig(**settings))

    def answer(self) -> None:
        """Answers what is on its way."""
        pending, self.pending = self.pending, []
        for each in pending:
            each.resolve(STORED)


@pytest.mark.parametrize("is_known", [True, False])
def test_very_many_sends_at_once_have_each_their_time(two: Scene, is_known: bool) -> None:
    if is_known:
        result_of(two.client.refresh("T"))
    flood = Flood(two)
    for n in range(5_000):
        flood.producer._begin_send(flood.settled.append, Message("T", b"%d" % n))
    seconds = 0
    while flood.pending:
        seconds += 1
        two.time.advance(1)  # the brokers take far longer than 3 s for all of it
        flood.answer()
    assert seconds == 40
    assert [each.status for each in flood.settled] == [SendStatus.SEND_OK] * 5_000
    assert flood.most == FIRST_COUNT < ProducerConfig().max_in_flight
    asked = [each for each in two.connections.asked if each[1] is send.SEND_MESSAGE_V2]
    assert {timeout_ms for *_, timeout_ms in asked} == {3_000}
    assert [body for *_, body, _ in asked] == [b"%d" % n for n in range(5_000)], "in their order"


def test_batches_and_replies_wait_for_room_as_well(two: Scene) -> None:
    flood = Flood(two, max_in_flight=1)
    sending = started(flood.producer.send(Message("T", b"x")))
    batch = started(flood.producer.send_batch([Message("T", b"y")]))
    later = started(flood.producer.send_async(Message("T", b"z")))
    assert len(flood.pending) == 1
    for _ in range(3):
        flood.answer()
    assert [each.status for each in (result_of(sending), result_of(batch))] == [
        SendStatus.SEND_OK
    ] * 2
    assert result_of(result_of(later).result).status is SendStatus.SEND_OK


def test_a_send_that_fails_makes_room(two: Scene) -> None:
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, RequestTimeout("late"))
    producer = Producer(two.client, "g", ProducerConfig(max_in_flight=1))
    for _ in range(3):
        with pytest.raises(SendFailed):
            result_of(producer.send(Message("T", b"x")))
        with pytest.raises(MessageIllegal):
            result_of(producer.send(Message("T", b"")))
    room = producer._attempts.room
    assert (room.count, room.size_bytes, room.is_full) == (0, 0, False)


def test_a_send_that_is_cancelled_makes_room(two: Scene) -> None:
    flood = Flood(two, max_in_flight=1)
    first, second, third = (started(flood.producer.send(Message("T", b"x"))) for _ in range(3))
    for each in (second, first):
        each.addErrback(lambda failure: failure.trap(CancelledError))
        each.cancel()
    assert len(flood.pending) == 2
    flood.answer()
    assert result_of(third).status is SendStatus.SEND_OK


def test_a_shutdown_ends_the_sends_that_wait(two: Scene) -> None:
    flood = Flood(two, max_in_flight=1)
    first, second = (started(flood.producer.send(Message("T", b"x"))) for _ in range(2))
    stopping = started(flood.producer.shutdown())
    with pytest.raises(ClientClosed, match="shut down while it waited"):
        result_of(second)
    flood.answer()
    assert result_of(first).status is SendStatus.SEND_OK
    two.time.advance(0)
    result_of(stopping)


def test_with_the_backpressure_of_the_original_the_call_waits(two: Scene) -> None:
    flood = Flood(two, backpressure_enable=True, backpressure_send_num=10)
    for _ in range(10):
        result_of(flood.producer.send_async(Message("T", b"x")))
    waiting = started(flood.producer.send_async(Message("T", b"x")))
    late = started(flood.producer.send_async(Message("T", b"x"), timeout_ms=500))
    assert not waiting.called
    two.time.advance(0.5)
    with pytest.raises(TooMuchOnTheWay, match="waited for 500 ms while 10 messages of 10 bytes"):
        result_of(late)
    flood.answer()
    begun = result_of(waiting).result
    assert two.connections.asked[-1][-1] == 2_500, "of its own time it has waited for some"
    flood.answer()
    assert result_of(begun).status is SendStatus.SEND_OK
    given_up = started(flood.producer.send_async(Message("T", b"x")))
    flood.answer()
    result_of(given_up)


def test_what_no_broker_would_take_is_not_sent(two: Scene) -> None:
    producer = Producer(two.client, "g")
    with pytest.raises(MessageIllegal):
        result_of(producer.send(Message("T", b"")))
    with pytest.raises(MessageIllegal, match="group"):
        Producer(two.client, "no good")
    assert two.connections.asked == []


def test_a_topic_without_route_is_told(scene: Scene) -> None:
    with pytest.raises(NoRoute, match="topic T has no route"):
        result_of(Producer(scene.client, "g").send(Message("T", b"x")))


def test_heartbeats_will_tell_of_the_producer(scene: Scene) -> None:
    Producer(scene.client, "g")
    assert set(scene.client._producers) == {"g"}


def test_what_a_send_costs_is_counted(two: Scene) -> None:
    producer = Producer(two.client, "g")
    for _ in range(4):  # one for each queue, for which a header is prepared
        result_of(producer.send(Message("T", b"x")))
    outcomes: list[object] = []
    message = Message("T", b"x")
    lines = lines_of(lambda: producer._begin_send(outcomes.append, message))
    assert len(outcomes) == 1
    assert lines <= MOST_LINES_OF_A_SEND
