# SPDX-License-Identifier: Apache-2.0
"""Clients of all kinds at a port for gRPC without a network, and a clock that counts operations."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import count
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamReset
from hpack import Encoder
from twisted.internet.testing import MemoryReactorClock

from tests.proxy.grpc.clients import Methods
from tests.proxy.grpc.texts import Text
from tests.proxy.http2.frames_of import frame
from tests.remoting.transport.wires import FarEnd
from txrocketmq.proxy.config import ProxyConfig
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.grpc.server import GrpcServer
from txrocketmq.proxy.grpc.service import Rpcs
from txrocketmq.proxy.http2.floods import DATA, GOAWAY, HEADERS, SETTINGS
from txrocketmq.proxy.http2.frames import PREFACE, heads_of
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.peer import READ_BYTES

OPERATIONS_S = 100_000_000
"""How many operations a second has."""
BEGIN = PREFACE + frame(SETTINGS)


class Port:
    """A port for gRPC, with methods of a test or of the proxy behind it."""

    def __init__(self, rpcs: Any = None, reactor: Any = None, **settings: Any) -> None:
        self.reactor: Any = reactor or MemoryReactorClock()
        self.methods = Methods()
        self.server = GrpcServer(
            Clock(self.reactor),
            ProxyConfig(**settings),
            rpcs or Rpcs("s", lambda _: Text, self.methods),
        )
        self._looks = count()
        self._now_s = 0.0
        turns = self.server.shared.turns
        turns.timer = turns._cpu_timer = self._look
        self.guests: list[Guest] = []

    def _look(self) -> float:
        self._now_s += 0.000_1  # which is less than is done between two looks
        return self._now_s

    @property
    def held_bytes(self) -> int:
        """How much is held for all connections."""
        return self.server.shared.held.total

    def guest(self, data: bytes = BEGIN) -> Guest:
        """Somebody connects, and says something."""
        self.guests.append(Guest(self, data))
        return self.guests[-1]

    def turn(self) -> None:
        """One turn of the reactor: one read of each connection that is read from."""
        for guest in self.guests:
            guest.deliver()
        now_s = self.reactor.seconds()
        for call in [each for each in self.reactor.getDelayedCalls() if each.getTime() <= now_s]:
            if call.active():  # what they have called is for the next turn, as with a real reactor
                self.reactor.calls.remove(call)
                call.called = 1
                call.func(*call.args, **call.kw)

    def turns(self, most: int = 2_000) -> None:
        """Turns until everything has arrived that is read, or some more for answers."""
        for _ in range(most):
            if not any(guest.is_busy for guest in self.guests):
                break
            self.turn()
        for _ in range(5):
            self.turn()

    def serves(self) -> int:
        """Has a well-behaved client make a call; returns how much is done until it is answered."""
        neighbour = Neighbour(self)
        asked = neighbour.ask()
        turns, done = self.server.shared.turns, 0

        def seen(frame: Any, event: str, _: object) -> Any:
            nonlocal done
            done += event == "opcode"
            return seen

        def called(frame: Any, _: str, __: object) -> Any:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return seen

        begun_s, before = self._now_s, sys.gettrace()
        turns.timer = turns._cpu_timer = lambda: begun_s + done / OPERATIONS_S
        sys.settrace(called)
        try:
            for _ in range(100):
                self.turn()
                if neighbour.is_answered(asked):
                    break
        finally:
            sys.settrace(before)
        self._now_s = turns.timer()
        turns.timer = turns._cpu_timer = self._look
        assert neighbour.is_answered(asked)
        neighbour.leave()
        return done


class Guest:
    """A connection, whose bytes wait in its socket until they are read."""

    def __init__(self, port: Port, data: bytes = b"") -> None:
        self.peer: Any = port.server.new_peer(None)
        port.server.peers.add(self.peer)
        self.end = FarEnd(self.peer)
        self.unread = data
        self.heard = b""

    @property
    def is_read(self) -> bool:
        """Whether it is read from now."""
        return bool(self.end.wire.producerState == "producing" and self.peer.connected)

    @property
    def is_busy(self) -> bool:
        """Whether something is to be read from it, or was read and not served."""
        is_behind: bool = self.peer.decoder.is_behind
        return is_behind or bool(self.unread and self.is_read)

    @property
    def is_gone(self) -> bool:
        """Whether we have closed the connection."""
        return bool(self.end.wire.disconnecting or self.end.wire.disconnected)

    def say(self, data: bytes) -> None:
        """Sends something."""
        self.unread += data

    def deliver(self) -> None:
        """Brings what one read takes."""
        if self.unread and self.is_read:
            data, self.unread = self.unread[:READ_BYTES], self.unread[READ_BYTES:]
            self.peer.dataReceived(data)
        self.heard += self.end.wire.value()
        self.end.wire.clear()

    def goodbye(self) -> int | None:
        """The code of the GOAWAY that it was sent."""
        heads, _ = heads_of(self.heard, 1 << 24)
        for kind, _, _, begin, _ in heads:
            if kind == GOAWAY:
                return int.from_bytes(self.heard[begin + 4 : begin + 8], "big")
        return None

    def leave(self) -> None:
        """Goes away without a word."""
        self.end.leave()


class Neighbour(Guest):
    """A well-behaved client, with h2 at its end."""

    numbers = count()

    def __init__(self, port: Port, **headers: str) -> None:
        super().__init__(port)
        port.guests.append(self)
        self._port = port
        self.headers = headers
        self.h2: Any = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.answers: dict[int, bytes] = {}
        self.statuses: dict[int, dict[str, str]] = {}
        self.left: dict[int, bytes] = {}
        self.takes = True

    def ask(self, method: str = "/s/Echo", message: bytes = b"hello", **headers: str) -> int:
        """Begins a call with a whole request, and returns its number."""
        number: int = self.h2.get_next_available_stream_id()
        given = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "here"}
        given["content-type"] = "application/grpc"
        given |= {name.replace("_", "-"): text for name, text in (self.headers | headers).items()}
        self.h2.send_headers(number, list(given.items()))
        self.left[number] = framed(message) if "grpc_encoding" not in headers else message
        self._say_on()
        return number

    def _say_on(self) -> None:
        """Sends of its requests what there is room for."""
        for number, data in list(self.left.items()):
            at, room = 0, self.h2.local_flow_control_window(number)
            while at < len(data) and at < room:
                part = data[at : min(room, at + 16_384)]
                at += len(part)
                self.h2.send_data(number, part, end_stream=at == len(data))
            self.left[number] = data[at:]
            if at == len(data):
                del self.left[number]
        self.unread += self.h2.data_to_send()

    def deliver(self) -> None:
        super().deliver()
        heard, self.heard = self.heard, b""
        for event in self.h2.receive_data(heard):
            if isinstance(event, DataReceived):
                self.answers[event.stream_id] = self.answers.get(event.stream_id, b"") + event.data
                if self.takes:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif "grpc-status" in dict(getattr(event, "headers", None) or ()):
                self.statuses[event.stream_id] = dict(event.headers)
            elif isinstance(event, StreamReset):
                self.statuses.setdefault(event.stream_id, {})
                self.left.pop(event.stream_id, None)
        self._say_on()

    def is_answered(self, number: int) -> bool:
        """Whether a call has ended."""
        return number in self.statuses

    def leave(self) -> None:
        super().leave()
        self._port.guests.remove(self)


def request(number: int, method: str = "Wait", *, ends: bool = True) -> bytes:
    """A whole request of one byte, or one that goes on."""
    headers = [
        (":method", "POST"),
        (":path", f"/s/{method}"),
        ("content-type", "application/grpc"),
    ]
    block = Encoder().encode([(*each, True) for each in headers])  # which changes no table
    return frame(HEADERS, block, 4, number) + frame(DATA, framed(b"x"), int(ends), number)


def numbers(many: int) -> Iterable[int]:
    return range(1, 2 * many, 2)
