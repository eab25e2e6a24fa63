# SPDX-License-Identifier: Apache-2.0
"""The journeys of a client whose operations are counted: sends, and messages that are pulled.

The client has its real connections, on a reactor without a network; what name server and broker
would answer is made here, and does not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock

from benchmarks import frames
from benchmarks.asked_broker import GROUP, PRODUCERS, Listener
from benchmarks.operations import Call
from benchmarks.sends import BATCH, BODY, frame
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import Message, MessageExt, encode_message
from txrocketmq.remoting.protocol.body.route import BrokerData, QueueData, TopicRouteData

_ROUTE: Final = TopicRouteData(
    queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=1, write_queue_nums=1, perm=6),),
    broker_datas=(
        BrokerData(cluster="c", broker_name="broker-a", broker_addrs={0: "127.0.0.1:10911"}),
    ),
)
_TOPIC_NOT_EXIST: Final = 17


class ClientJourneys:
    """A client with a producer, and a consumer of either kind."""

    def __init__(self, _: Path) -> None:
        self._reactor: Any = MemoryReactorClock()
        self._reactor.advance(1_700_000_000)
        self._peers: list[tuple[Any, Listener]] = []
        self._consumed = 0
        self._next = 0
        self._pull: int | None = None
        config = ClientConfig(namesrv_addr="127.0.0.1:9876", client_ip="127.0.0.1")
        self._client = ClientInstance(config, Clock(self._reactor))
        self._producer = Producer(self._client, PRODUCERS)
        self._polled: LitePullConsumer | None = None

    def send(self) -> Iterator[Call]:
        """A send, from the call to the result."""
        results: list[Any] = []
        properties = {"TAGS": "paid", "orderId": "20251122000001", "region": "eu-central"}
        message = Message("bench", BODY, properties=properties)
        yield partial(self._begin_send, message, results)
        while not results:
            yield self._arrivals()
        if getattr(results[0], "queue_offset", None) is None:
            raise SystemExit(f"benchmarks.client_journeys: not sent: {results}")

    def pulled(self) -> Iterator[Call]:
        """32 messages, from the answer to a pull to the next pull."""
        if self._pull is None:
            consumer = PushConsumer(self._client, GROUP, {"bench": "*"}, self._listen)
            Deferred.fromCoroutine(consumer.start())
            while self._pull is None:
                self._arrivals()()
        opaque, self._pull = self._pull, None
        before = self._consumed
        data = self._found(opaque)
        yield partial(self._received, self._broker, data)
        while self._pull is None:
            yield self._arrivals()
        if self._consumed != before + BATCH:
            raise SystemExit("benchmarks.client_journeys: not all messages were consumed")

    def polled(self) -> Iterator[Call]:
        """32 messages of a lite pull consumer, from the answer to a pull to the call that polls."""
        if self._polled is None:
            self._polled = LitePullConsumer(self._client, GROUP, {"bench": "*"})
            Deferred.fromCoroutine(self._polled.start())
        while self._pull is None:
            self._arrivals()()
        opaque, self._pull = self._pull, None
        data, given = self._found(opaque), list[list[MessageExt]]()
        yield partial(self._received, self._broker, data)
        yield partial(self._poll, self._polled, given)
        if [len(each) for each in given] != [BATCH] or self._pull is None:
            raise SystemExit("benchmarks.client_journeys: not all messages were polled")

    # ----------------------------------------------------------------- parts

    def _begin_send(self, message: Message, results: list[Any]) -> None:
        Deferred.fromCoroutine(self._producer.send(message)).addBoth(results.append)
        self._reactor.advance(0)

    def _poll(self, consumer: LitePullConsumer, given: list[list[MessageExt]]) -> None:
        Deferred.fromCoroutine(consumer.poll(0)).addCallback(given.append)
        self._arrivals()

    def _listen(self, messages: list[MessageExt], _: object) -> None:
        self._consumed += len(messages)

    def _received(self, peer: Any, data: bytes) -> None:
        peer.dataReceived(data)
        self._reactor.advance(0)

    def _arrivals(self) -> Call:
        """Makes connections, and returns what has the answers arrive that are due."""
        self._reactor.advance(0)
        for _, port, factory, *_ in self._reactor.tcpClients:
            peer, sink = factory.buildProtocol(None), Listener()
            sink.kept = bytearray()
            peer.makeConnection(sink)
            self._peers.append((peer, sink))
            if port == 10911:
                self._broker = peer
        self._reactor.tcpClients.clear()
        self._reactor.advance(0)
        answers = []
        for peer, sink in self._peers:
            asked, rest = frames.split(bytes(sink.kept or b""))
            sink.kept = bytearray(rest)
            data = b"".join(self._answer(header) for header, _ in asked if header["flag"] == 0)
            if data:
                answers.append((peer, data))

        def arrive() -> None:
            for peer, data in answers:
                self._received(peer, data)

        return arrive

    def _answer(self, header: dict[str, Any]) -> bytes:
        fields, body, code = {}, b"", 0
        match header["code"]:
            case 310:
                self._next += 1
                fields = {
                    "msgId": "7F000001" + "0" * 24, "queueId": "0", "queueOffset": str(self._next),
                    "transactionId": "x",
                }  # fmt: skip
            case 105 if header["extFields"]["topic"] == "bench":
                body = _ROUTE.encode()
            case 105:
                code = _TOPIC_NOT_EXIST
            case 38:
                body = json.dumps({"consumerIdList": [self._client.client_id]}).encode()
            case 14:
                fields = {"offset": "0"}
            case 11 | 361:
                self._pull = header["opaque"]
                return b""
        return _answer(code, header["opaque"], fields, body)

    def _found(self, opaque: int) -> bytes:
        first, self._next = self._next, self._next + BATCH
        properties = {"UNIQ_KEY": "FD", "TAGS": "paid", "WAIT": "true"}
        body = b"".join(
            encode_message(
                MessageExt(
                    "bench", BODY, properties=properties, queue_offset=at, commit_log_offset=at,
                )
            )
            for at in range(first, self._next)
        )  # fmt: skip
        fields = {
            "suggestWhichBrokerId": "0", "nextBeginOffset": str(self._next), "minOffset": "0",
            "maxOffset": str(self._next),
        }  # fmt: skip
        return _answer(0, opaque, fields, body)


def _answer(code: int, opaque: int, fields: dict[str, str], body: bytes) -> bytes:
    header = {
        "code": code, "extFields": fields, "flag": 1, "language": "JAVA", "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON", "version": 407,
    }  # fmt: skip
    return frame(json.dumps(header, separators=(",", ":")).encode(), body, 0)
