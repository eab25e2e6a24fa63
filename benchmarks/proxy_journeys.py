# SPDX-License-Identifier: Apache-2.0
"""The journeys of a proxy whose operations are counted: sends, received messages and their ends.

The proxy has its real connections, on a reactor without a network. Calls come in the frames and
headers in which clients on grpcio write them, all of one turn in one read. What name server and
broker would answer is made here, and does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from hpack import Encoder
from twisted.internet.testing import MemoryReactorClock

from benchmarks.asked_broker import GROUP, Listener
from benchmarks.operations import Call
from benchmarks.sends import BATCH, BODY, frame
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.http2.floods import DATA, HEADERS, SETTINGS, WINDOW_UPDATE
from txrocketmq.proxy.http2.frames import MAX_FRAME_BYTES, PREFACE, heads_of
from txrocketmq.proxy.schema.enums import ClientType, Encoding, FilterType, MessageType
from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.proxy.service import Proxy
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol.body.route import (
    BrokerData,
    QueueData,
    TopicConfig,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

TOPIC: Final = "bench"
_ROUTE: Final = TopicRouteData(
    queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=8, write_queue_nums=8, perm=6),),
    broker_datas=(
        BrokerData(cluster="c", broker_name="broker-a", broker_addrs={0: "127.0.0.1:10911"}),
    ),
)
_NOW_S: Final = 1_700_000_000
_ENDS, _WHOLE = 1, 4
_ROOM: Final = b"\0\0\0\5"
_CODE: Final = re.compile(rb'\{"code":(\d+),')
_OPAQUE: Final = re.compile(rb'"opaque":(\d+)')
_HEADERS: Final = {
    ":path": "",
    ":authority": "127.0.0.1:8081",
    ":method": "POST",
    ":scheme": "http",
    "content-type": "application/grpc",
    "te": "trailers",
    "grpc-accept-encoding": "identity, deflate, gzip",
    "user-agent": "grpc-python-asyncio/1.85.3 grpc-c/53.0.0 (linux; chttp2)",
    "grpc-timeout": "10S",
}
_OWN: Final = {
    "x-mq-client-id": "host@17153@0@dn6h7mwxjlf8",
    "x-mq-language": "PYTHON",
    "x-mq-client-version": "5.1.2",
    "x-mq-protocol": "v2",
    "x-mq-date-time": "20261128T020831Z",
    "x-mq-request-id": "",
}


CALLS: Final = {
    "gRPC send": "SendMessage",
    "gRPC receive of 32": "ReceiveMessage",
    "gRPC acknowledgement": "AckMessage",
}
"""Methods by the names of their calls."""


class ProxyJourneys:
    """A proxy with a client on one connection, before a broker with one connection."""

    def __init__(self, _: Path) -> None:
        self._reactor: Any = MemoryReactorClock()
        self._reactor.advance(_NOW_S)
        config = ProxyConfig(namesrv_addr="127.0.0.1:9876")
        Proxy(config, MessagingConfig(), Clock(self._reactor)).start()
        self._far: list[tuple[Any, Listener]] = []
        self._answers: dict[int, Callable[[int], bytes]] = {
            105: lambda opaque: _answer(opaque, {}, _ROUTE.encode()),
            351: lambda opaque: _answer(opaque, {}, TopicConfig(topic_name=TOPIC).encode()),
            352: lambda opaque: _answer(
                opaque, {}, SubscriptionGroupConfig(group_name=GROUP).encode()
            ),
            310: self._stored,
            200050: self._popped,
            200051: lambda opaque: _answer(opaque, {}, b""),
        }
        self._encoder = Encoder()
        self._streams = count(1, 2)
        self._offsets = count()
        self._sink = Listener()
        self._sink.kept = bytearray()
        self._peer: Any = None
        self._connect()

    def sends(self, count: int) -> Iterator[Call]:
        """Some sends in one read, from their bytes to those of their answers."""
        yield from self._calls("SendMessage", [self._send() for _ in range(count)])

    def received(self) -> Iterator[Call]:
        """A receive of 32 messages."""
        yield from self._calls("ReceiveMessage", [self._receive()])

    def acknowledged(self, count: int) -> Iterator[Call]:
        """Some acknowledgements, of one message each, in one read."""
        yield from self._calls("AckMessage", [self._ack() for _ in range(count)])

    def turns(self, name: str, count: int, in_a_read: int) -> list[Call]:
        """Returns what makes so many calls of a kind, with so many in each read, to the end.

        What stands for the broker is a part of it, and takes little.
        """
        make = {
            "SendMessage": self._send,
            "ReceiveMessage": self._receive,
            "AckMessage": self._ack,
        }[CALLS[name]]
        reads = [
            self._read(CALLS[name], [make() for _ in range(in_a_read)])
            for _ in range(count // in_a_read)
        ]
        return [partial(self._turn, data) for data in reads]

    # ----------------------------------------------------------------- parts

    def _connect(self) -> None:
        """Connects the client, and makes it known."""
        self._peer = self._reactor.tcpServers[0][1].buildProtocol(None)
        self._peer.makeConnection(self._sink)
        begin = PREFACE + _frame(SETTINGS, b"") + _frame(WINDOW_UPDATE, b"\x3f\xff\0\0")
        self._arrive(self._peer, begin)
        heartbeat = message_type("HeartbeatRequest")(
            group={"name": GROUP}, client_type=ClientType.SIMPLE_CONSUMER
        )
        for call in self._calls("Heartbeat", [heartbeat]):
            call()

    def _calls(self, method: str, requests: Sequence[Any]) -> Iterator[Call]:
        data = self._read(method, requests)
        kept = self._sink.kept = bytearray()
        yield partial(self._arrive, self._peer, data)
        for _ in range(9):
            heads, _ = heads_of(bytes(kept), MAX_FRAME_BYTES)
            if sum(kind == HEADERS and flags & _ENDS for kind, flags, *_ in heads) == len(requests):
                return
            yield self._arrivals()
        raise SystemExit(f"benchmarks.proxy_journeys: {method} is not answered: {heads}")

    def _turn(self, data: bytes) -> None:
        self._sink.kept = None
        self._arrive(self._peer, data)
        self._arrivals()()

    def _arrive(self, peer: Any, data: bytes) -> None:
        peer.dataReceived(data)
        self._reactor.advance(0)

    def _arrivals(self) -> Call:
        """Makes connections, and returns what has the answers arrive that are due."""
        for _, _, factory, *_ in self._reactor.tcpClients:
            peer, sink = factory.buildProtocol(None), Listener()
            sink.kept = bytearray()
            peer.makeConnection(sink)
            self._far.append((peer, sink))
        if self._reactor.tcpClients:
            self._reactor.tcpClients.clear()
            self._reactor.advance(0)
        answers = []
        for peer, sink in self._far:
            asked, sink.kept = bytes(sink.kept or b""), bytearray()
            if code := _CODE.search(asked):  # of one kind are all that are asked in one turn
                answer = self._answers[int(code[1])]
                data = b"".join(answer(int(opaque)) for opaque in _OPAQUE.findall(asked))
                answers.append((peer, data))

        def arrive() -> None:
            for peer, data in answers:
                self._arrive(peer, data)

        return arrive

    def _read(self, method: str, requests: Sequence[Any]) -> bytes:
        """Returns calls as grpcio writes them: what is its client's own is written out each time,
        and each call has an id.
        """
        parts = []
        for request in requests:
            number = next(self._streams)
            fixed = {**_HEADERS, ":path": f"/{SERVICE}/{method}"}
            own = {**_OWN, "x-mq-request-id": f"{number:08x}-fb98-4512-8c54-39dbfafb1a5e"}
            block = self._encoder.encode(fixed.items(), huffman=False) + b"".join(
                b"\0" + b"".join(bytes((len(each),)) + each.encode() for each in pair)
                for pair in own.items()
            )
            parts += [
                _frame(HEADERS, block, _WHOLE, number),
                _frame(WINDOW_UPDATE, _ROOM, 0, number),
                _frame(DATA, framed(request.SerializeToString()), _ENDS, number),
                _frame(WINDOW_UPDATE, _ROOM),
            ]
        return b"".join(parts)

    def _send(self) -> Any:
        request = message_type("SendMessageRequest")()
        message = request.messages.add(topic={"name": TOPIC}, body=BODY)
        system = message.system_properties
        system.message_id = f"01{next(self._offsets):032X}"
        system.message_type = MessageType.NORMAL
        system.body_encoding = Encoding.IDENTITY
        system.born_timestamp.seconds = _NOW_S
        system.born_host = "host"
        return request

    def _receive(self) -> Any:
        return message_type("ReceiveMessageRequest")(
            group={"name": GROUP},
            message_queue={"topic": {"name": TOPIC}, "broker": {"name": "broker-a"}},
            filter_expression={"type": FilterType.TAG, "expression": "*"},
            batch_size=BATCH,
            invisible_duration={"seconds": 60},
            long_polling_timeout={"seconds": 5},
        )

    def _ack(self) -> Any:
        offset = next(self._offsets)
        entry = {
            "message_id": f"01{offset:032X}",
            "receipt_handle": f"0 {_NOW_S * 1_000} 60000 0 0 broker-a 0 {offset} {offset}",
        }
        return message_type("AckMessageRequest")(
            group={"name": GROUP}, topic={"name": TOPIC}, entries=[entry]
        )

    def _stored(self, opaque: int) -> bytes:
        offset = next(self._offsets)
        fields = {
            "msgId": f"7F00000100002A9F{offset:016X}", "queueId": "0", "queueOffset": str(offset),
            "transactionId": f"01{offset:032X}",
        }  # fmt: skip
        return _answer(opaque, fields, b"")

    @staticmethod
    def _popped(opaque: int) -> bytes:
        fields = {
            "popTime": str(_NOW_S * 1_000), "invisibleTime": "60000", "reviveQid": "0",
            "restNum": "0", "startOffsetInfo": f"0 0 {_FIRST}",
            "msgOffsetInfo": f"0 0 {','.join(map(str, range(_FIRST, _FIRST + BATCH)))}",
        }  # fmt: skip
        return _answer(opaque, fields, _RECORDS)


def _record(offset: int) -> bytes:
    message = MessageExt(
        TOPIC,
        BODY,
        properties={
            "UNIQ_KEY": f"01{offset:032X}", "RECONSUME_TIME": "0", "PGROUP": TOPIC,
            "__BORNHOST": "host", "BORN_TIMESTAMP": str(_NOW_S * 1_000),
        },
        queue_offset=offset,
        commit_log_offset=offset,
        born_timestamp=_NOW_S * 1_000,
        store_timestamp=_NOW_S * 1_000,
    )  # fmt: skip
    return encode_message(message)


_FIRST: Final = 1_000
_RECORDS: Final = b"".join(map(_record, range(_FIRST, _FIRST + BATCH)))
"""What each pop takes: the same messages, since they are not made in the course of a journey."""


def _frame(kind: int, data: bytes, flags: int = 0, stream: int = 0) -> bytes:
    return len(data).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + data


def _answer(opaque: int, fields: dict[str, str], body: bytes) -> bytes:
    texts = ",".join([f'"{name}":"{value}"' for name, value in fields.items()])
    header = (
        f'{{"code":0,"extFields":{{{texts}}},"flag":1,"language":"JAVA","opaque":{opaque},'
        '"serializeTypeCurrentRPC":"JSON","version":453}'
    )
    return frame(header.encode(), body, 0)
