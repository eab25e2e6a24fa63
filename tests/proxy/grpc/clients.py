# SPDX-License-Identifier: Apache-2.0
"""A connection of ours with h2's client at its other end, and methods that it calls."""

from __future__ import annotations

from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as TaskClock

from tests.proxy.grpc.texts import Text
from tests.remoting.transport.wires import FarEnd
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.grpc.peer import GrpcPeer, Service
from txrocketmq.proxy.grpc.service import Kind, Rpcs, rpc
from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus
from txrocketmq.remoting.host.clock import Clock


class Talk:
    """Says everything twice; waits where it is told to."""

    def __init__(self, methods: Methods, call: Call) -> None:
        self._methods = methods
        self._call = call

    def received(self, message: Text) -> Any:
        """Answers, or does what the message says."""
        if message.text == "end":
            self._call.end(GrpcError(GrpcStatus.ABORTED, "as you like"))
        elif message.text == "fail":
            raise ZeroDivisionError
        elif message.text == "wait":
            return self._methods.wait()
        else:
            self._call.write(Text(message.text * 2))
        return None

    def ended(self, reason: str) -> None:
        """Remembers why."""
        self._methods.ended.append(reason)


class Methods:
    """What is served; `waiting` are the answers that are to come."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.waiting: list[Deferred[Any]] = []
        self.cancelled = 0
        self.ended: list[str] = []

    @rpc("Echo", most_bytes=None)
    def echo(self, call: Call, request: Text) -> Text:
        self.calls.append(call)
        return request

    @rpc("Bulk", most_bytes=None, bodies=(1, 4))
    def bulk(self, call: Call, request: Text) -> Text:
        return Text("taken")

    @rpc("Wait")
    def wait(self, call: Call | None = None, request: Text | None = None) -> Deferred[Any]:
        def cancelled(_: Deferred[Any]) -> None:
            self.cancelled += 1

        self.waiting.append(Deferred(cancelled))
        if call is not None:
            call.on_cancel.append(lambda: self.ended.append("cancelled"))
        return self.waiting[-1]

    @rpc("Async")
    async def in_time(self, call: Call, request: Text) -> Text:
        await self.wait()
        return Text("after that")

    @rpc("Refuse")
    def refuse(self, call: Call, request: Text) -> Text:
        raise GrpcError(GrpcStatus.NOT_FOUND, "nö")

    @rpc("Fail")
    def fail(self, call: Call, request: Text) -> Text:
        raise ZeroDivisionError

    @rpc("Many", kind=Kind.STREAM)
    def many(self, call: Call, request: Text) -> Deferred[None]:
        """Writes so many messages of so many bytes as the request says."""
        count, size = map(int, request.text.split())
        done: Deferred[None] = Deferred()
        left = [count]

        def go_on() -> None:
            while left[0]:
                left[0] -= 1
                if not call.write(Text("x" * size)):
                    return
            done.callback(None)

        call.on_room = go_on
        self.left = left
        go_on()
        return done

    @rpc("Talk", kind=Kind.CONVERSATION)
    def talk(self, call: Call) -> Talk:
        return Talk(self, call)


def texts(headers: Any) -> dict[str, str]:
    """Headers by name."""
    return dict(headers)


class Answer:
    """What the client was sent for a call."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.data = b""
        self.trailers: dict[str, str] = {}
        self.is_over = False
        self.reset: int | None = None

    @property
    def status(self) -> int:
        """The status of gRPC."""
        return int((self.trailers or self.headers).get("grpc-status", "-1"))

    @property
    def message(self) -> str:
        """The message of gRPC."""
        return (self.trailers or self.headers).get("grpc-message", "")


class Client:
    """The client of a connection to methods; time goes on when it is told to."""

    def __init__(self, *, window_bytes: int | None = None, **named: Any) -> None:
        self.time: Any = TaskClock()
        self.clock = Clock(self.time)
        self.methods = Methods()
        self.service = Service(Rpcs("s", lambda _: Text, self.methods), 1 << 24, 100)
        self.closed: list[Any] = []
        self.peer = GrpcPeer(self.clock, self.service, self.closed.append, **named)
        self.end = FarEnd(self.peer)
        self.h2: Any = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.local_settings.max_concurrent_streams = 100
        if window_bytes is not None:
            self.h2.local_settings.initial_window_size = window_bytes
            self.h2.local_settings.acknowledge()
        self.takes = window_bytes is None
        """Whether it makes room for what it has read."""
        self.h2.initiate_connection()
        self.answers: dict[int, Answer] = {}
        self.events: list[Any] = []
        self.exchange()

    def exchange(self, turns: int = 3) -> None:
        """Sends and reads all that there is, in several turns."""
        for _ in range(turns):
            if data := self.h2.data_to_send():
                self.peer.dataReceived(data)
            self.time.advance(0)
            data = self.end.wire.value()
            self.end.wire.clear()
            for event in self.h2.receive_data(data):
                self._heard(event)

    def _heard(self, event: Any) -> None:
        self.events.append(event)
        answer = self.answers.setdefault(getattr(event, "stream_id", None) or 0, Answer())
        if isinstance(event, ResponseReceived):
            answer.headers = texts(event.headers)
        elif isinstance(event, DataReceived):
            answer.data += event.data
            if self.takes:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, TrailersReceived):
            answer.trailers = texts(event.headers)
        elif isinstance(event, StreamReset):
            answer.reset = event.error_code
        elif isinstance(event, StreamEnded):
            answer.is_over = True

    def open(self, method: str, **headers: str) -> int:
        """Begins a call; returns its number. Names of headers have underscores here."""
        number: int = self.h2.get_next_available_stream_id()
        given = {
            ":method": "POST",
            ":scheme": "http",
            ":path": f"/s/{method}",
            ":authority": "here",
            "content-type": "application/grpc",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        self.h2.send_headers(number, list(given.items()))
        self.answers[number] = Answer()
        return number

    def call(self, method: str, text: str = "", **headers: str) -> Answer:
        """Makes a call; returns what there is of an answer."""
        number = self.open(method, **headers)
        self.say(number, text, ends=True)
        return self.answers[number]

    def pour(self, number: int, data: bytes) -> None:
        """Sends data of any length, as there is room, and ends the request."""
        while data:
            room = min(self.h2.local_flow_control_window(number), 16_384, len(data))
            if room:
                self.h2.send_data(number, data[:room], end_stream=room == len(data))
                data = data[room:]
            else:
                self.exchange(1)

    def say(self, number: int, text: str, *, ends: bool = False) -> None:
        """Sends a message of a call."""
        data = framed(text.encode())
        for at in range(0, len(data), 16_384):
            part = data[at : at + 16_384]
            last = at + len(part) == len(data)
            self.h2.send_data(number, part, end_stream=ends and last)
        self.exchange()
