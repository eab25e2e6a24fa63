# SPDX-License-Identifier: Apache-2.0
"""What a broker has stored is never reported as failed when its answer came before the send ended.

The producer sends over real connections, whose other ends the test operates, as it does the time.
Results go the ways of all three forms: to Deferreds, to futures of threads and to those of asyncio.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from typing import Any

import hypothesis
from hypothesis import strategies as st
from twisted.internet.testing import MemoryReactorClock

from tests.client.fakes import NAME_SERVER, a_route, given, started
from tests.remoting.transport.wires import FarEnd
from txrocketmq.client import aio
from txrocketmq.client.base.config import ClientConfig, ProducerConfig
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.client.thread.handover import Handover
from txrocketmq.client.thread.pending_calls import begun
from txrocketmq.client.thread.reactor_thread import settle_future
from txrocketmq.client.thread.thread_call import ThreadCall
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.transport.client import Connections

TIMEOUT_MS = 1_000
_tell: Any = vars(aio)["_tell"]
"""How a result comes to a loop of asyncio."""
STORED = (ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE)
REFUSED = (ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION)
TIMES_MS = (0, 1, 50, 100, 199, 200, 201, 300, 500, 800, 999, 1_000, 1_001, 1_200)


class Wired(Connections):
    """Connections that need no name server."""

    def invoke(
        self,
        address: str,
        call: Call[Any, Any],
        header: Header,
        body: bytes = b"",
        *,
        timeout_ms: int,
    ) -> PendingReply:
        if address == NAME_SERVER:
            return given(Reply(body=a_route({"broker-a": 1, "broker-b": 1}).encode()))
        return super().invoke(address, call, header, body, timeout_ms=timeout_ms)


class Sent:
    """A send, what it has told, and whether an answer came in time that says it is stored."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.told: list[Any] = []
        self.is_stored = False
        self.is_cancelled = False
        self.cancel: Any = None


class Scene:
    """A producer and two brokers."""

    def __init__(self, config: ProducerConfig) -> None:
        self.reactor: Any = MemoryReactorClock()
        clock = Clock(self.reactor)
        self.client = ClientInstance(
            ClientConfig(namesrv_addr=NAME_SERVER, client_ip="10.0.0.9"), clock, Wired(clock)
        )
        self.producer = Producer(self.client, "g", config)
        self.sent: dict[bytes, Sent] = {}
        self.ends: list[FarEnd] = []
        self.unanswered: list[tuple[FarEnd, RemotingCommand]] = []
        self.accepted = 0
        self.loop = asyncio.new_event_loop()
        started(self.client.refresh("T"))

    def send(self, number: int) -> None:
        body = b"%d" % len(self.sent)
        self.sent[body] = sent = Sent(body)
        queue = (None, None, None, "broker-a", "broker-b")[number % 5]
        begin = partial(
            self.producer._begin_send,
            message=Message("T", body),
            queue=None if queue is None else MessageQueue("T", queue, 0),
        )
        (self.for_twisted, self.for_threads, self.for_asyncio)[number % 3](sent, begin)

    def for_twisted(self, sent: Sent, begin: Any) -> None:
        deferred = begun(begin)
        sent.cancel = deferred.cancel
        deferred.addBoth(lambda its: sent.told.append(getattr(its, "value", its)))

    def for_threads(self, sent: Sent, begin: Any) -> None:
        future: Future[Any] = Future()
        call = ThreadCall(Handover(lambda function: function()), is_awaited=False)
        call.begin(begin, partial(settle_future, future), (), {})
        sent.cancel = call.cancel
        future.add_done_callback(lambda its: sent.told.append(its.exception() or its.result()))

    def for_asyncio(self, sent: Sent, begin: Any) -> None:
        future: asyncio.Future[Any] = self.loop.create_future()
        call = ThreadCall(Handover(lambda function: function()), is_awaited=False)
        to_loop = Handover(self.loop.call_soon_threadsafe)
        call.begin(begin, partial(_tell, to_loop, future), (), {})
        sent.cancel = future.cancel

        def done(its: asyncio.Future[Any]) -> None:
            if its.cancelled():
                call.cancel()
                sent.told.append(asyncio.CancelledError())
            else:
                sent.told.append(its.exception() or its.result())

        future.add_done_callback(done)

    def turn(self) -> None:
        """What happens between two steps: brokers accept connections, and hear what was sent."""
        self.reactor.advance(0)
        for _ in range(2):  # a future tells of its result in the loop's next turn
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
        for end in list(self.ends):
            if end.wire.disconnecting or not end.protocol.connected:
                self.lose(end)
                continue
            for each in end.heard():
                if each.code == send.SEND_MESSAGE_V2.code:
                    self.unanswered.append((end, each))

    def accept(self) -> None:
        attempts = zip(self.reactor.tcpClients, self.reactor.connectors, strict=True)
        for (_, _, factory, *_), connector in list(attempts)[self.accepted :]:
            if not connector.stoppedConnecting:  # otherwise it was given up
                protocol = factory.buildProtocol(None)
                self.ends.append(FarEnd(protocol, turn=lambda: self.reactor.advance(0)))
        self.accepted = len(self.reactor.tcpClients)

    def lose(self, end: FarEnd) -> None:
        self.ends.remove(end)
        self.unanswered = [each for each in self.unanswered if each[0] is not end]
        end.leave()

    def answer(self, number: int, code: int) -> None:
        """A broker's answer is read; it may come from where nobody reads any more."""
        if not self.unanswered:
            return
        end, asked = self.unanswered.pop(number % len(self.unanswered))
        if end not in self.ends or end.wire.disconnecting or not end.protocol.connected:
            return
        sent = self.sent[asked.body]
        sent.is_stored |= code in STORED and not sent.told
        fields = {"msgId": "O", "queueId": "0", "queueOffset": "7"} if code in STORED else None
        told = RemotingCommand(code, fields, remark="no", flag=RESPONSE_FLAG, opaque=asked.opaque)
        end.protocol.dataReceived(b"".join(bytes(part) for part in encode_frame(told)))

    def step(self, what: str, number: int, ms: int, code: int) -> None:
        if what == "send":
            self.send(number)
        elif what == "accept":
            self.accept()
        elif what == "answer":
            self.answer(number, code)
        elif what == "timer":
            self.reactor.callLater(ms / 1000, self.answer, number, code)
            self.reactor.advance(ms / 1000)
        elif what == "time":
            self.reactor.advance(ms / 1000)
        elif what == "lose" and self.ends:
            self.lose(self.ends[number % len(self.ends)])
        elif what == "cancel" and self.sent:
            sent = list(self.sent.values())[number % len(self.sent)]
            sent.is_cancelled |= not sent.told
            sent.cancel()
        elif what == "shut down":
            started(self.producer.shutdown())
            started(self.client.stop())
        self.turn()


CONFIGS = st.builds(
    ProducerConfig,
    send_timeout_ms=st.just(TIMEOUT_MS),
    retry_times=st.integers(0, 2),
    retry_another_broker_when_not_store_ok=st.booleans(),
    send_max_timeout_per_request_ms=st.sampled_from([-1, 300]),
    max_in_flight=st.sampled_from([1, 2, 1_000]),
    max_block_ms=st.sampled_from([500, 5_000]),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from("send send accept answer answer timer time time lose cancel".split()),
        st.integers(0, 14),
        st.sampled_from(TIMES_MS),
        st.sampled_from(STORED + REFUSED),
    ),
    min_size=2,
    max_size=25,
)


SHORT = ProducerConfig(
    send_timeout_ms=TIMEOUT_MS, retry_times=1, send_max_timeout_per_request_ms=300
)
LATE = [("time", 0, 300, 0), ("time", 0, 200, 0), ("answer", 0, 0, ResponseCode.SUCCESS)]


@hypothesis.example(SHORT, LATE, False)
@hypothesis.example(SHORT, [*LATE[:2], ("answer", 0, 0, ResponseCode.FLUSH_DISK_TIMEOUT)], False)
@hypothesis.given(CONFIGS, STEPS, st.booleans())
def test_what_is_stored_is_not_told_as_failed(
    config: ProducerConfig, steps: list[tuple[str, int, int, int]], is_shut_down: bool
) -> None:
    scene = Scene(config)
    scene.step("send", 0, 0, 0)
    scene.step("accept", 0, 0, 0)
    for step in steps:
        scene.step(*step)
    if is_shut_down:
        scene.step("shut down", 0, 0, 0)
    for _ in range(100):
        scene.step("time", 0, 100, 0)
    scene.loop.close()
    for sent in scene.sent.values():
        (outcome,) = sent.told
        is_stored = sent.is_stored and not sent.is_cancelled
        assert isinstance(outcome, SendResult if is_stored else (SendResult, BaseException))
