# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, or behave as if: what they can hold is limited, and others are served.

Each of them does the worst of its kind on connections without a network, on which a read brings
what fits into one, and is not read from while it is paused. While it is measured how soon others
are served, the clock of turns counts operations of the interpreter, ten nanoseconds each, so that
the machine does not matter. What counts are our own accounts: the bytes that are held, what calls
ended with, and those operations. They are those of the table in docs/grpc.md.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest
from h2.errors import ErrorCodes
from hpack import Encoder

from tests.proxy.accounts.signing import some_accounts
from tests.proxy.guests import BEGIN, Neighbour, Port, numbers, request
from tests.proxy.http2.frames_of import frame
from tests.proxy.scene import ProxyScene, a_message
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.sources import AccountsHere
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.grpc.stream import CALL_BYTES
from txrocketmq.proxy.http2.floods import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from txrocketmq.proxy.http2.frames import PREFACE, heads_of
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.remoting.protocol import pop, send

MIB = 1 << 20
MOST_OPERATIONS = 2_500_000
"""How much is done, for all clients together, until one that asks for little has its answer: four
turns of five milliseconds, and what is begun in them."""


@pytest.fixture
def port() -> Port:
    return Port()


RESETS = b"".join(request(n) + frame(RST_STREAM, bytes(4), 0, n) for n in numbers(3_000))
RESETS_OF_HALVES = b"".join(
    request(n, ends=False) + frame(RST_STREAM, bytes(4), 0, n) for n in numbers(3_000)
)
FLOODS = {
    "resets": RESETS,
    "resets of unfinished requests": RESETS_OF_HALVES,
    "settings": frame(SETTINGS) * 5_000,
    "settings of windows": request(1)
    + b"".join(frame(SETTINGS, b"\0\4" + n.to_bytes(4, "big")) for n in range(5_000)),
    "pings": frame(PING, bytes(8)) * 20_000,
    "continuations": frame(HEADERS, b"\x82", 0, 1) + frame(CONTINUATION, b"", 0, 1) * 5_000,
    "long continuations": frame(HEADERS, b"\x82", 0, 1)
    + frame(CONTINUATION, b"\x82" * 16_000, 0, 1) * 64,
    "headers of a MiB": frame(HEADERS, b"\x82", 0, 1)
    + frame(CONTINUATION, (b"\0\x02xx\x7f\x80\x76" + b"y" * 15_000), 0, 1) * 61
    + frame(CONTINUATION, b"\x82", 4, 1),
    "sizes of the table": frame(HEADERS, b"\x20" * 16_000, 0, 1)
    + frame(CONTINUATION, b"\x20" * 16_000, 0, 1) * 60
    + frame(CONTINUATION, b"\x82", 4, 1),
    "empty data": request(1, ends=False) + frame(DATA, b"", 0, 1) * 20_000,
    "room": request(1) + frame(WINDOW_UPDATE, bytes(3) + b"\1") * 20_000,
    "priorities": frame(2, bytes(5), 0, 1) * 20_000,
    "unknown frames": frame(99, bytes(100)) * 5_000,
}


BREAKS_RULES = ("continuations", "long continuations", "sizes of the table")
"""Those that break a rule of h2 or of HPACK before they are many enough for a flood."""


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_its_connection_and_holds_up_nobody(port: Port, name: str) -> None:
    flood = FLOODS[name]
    is_calm = name not in BREAKS_RULES
    code = ErrorCodes.ENHANCE_YOUR_CALM if is_calm else ErrorCodes.PROTOCOL_ERROR
    guests = [port.guest(BEGIN + flood) for _ in range(3)]
    assert port.serves() < MOST_OPERATIONS
    port.turns()
    for guest in guests:
        assert guest.is_gone
        assert guest.goodbye() == code
        assert not guest.peer.streams
    assert port.held_bytes == 0
    assert port.serves() < MOST_OPERATIONS


def test_calls_that_are_reset_are_cancelled_and_forgotten(port: Port) -> None:
    port.guest(BEGIN + RESETS)
    port.turns()
    assert port.methods.cancelled == len(port.methods.waiting)
    assert port.server.service.counts.of("Wait").open == 0
    assert not port.server.service.deadlines._steps


def test_more_calls_than_there_may_be_are_refused(port: Port) -> None:
    guest = port.guest(BEGIN + b"".join(map(request, numbers(3_000))))
    port.turns()
    assert not guest.is_gone
    assert len(port.methods.waiting) == 1_000
    heads, _ = heads_of(guest.heard, 1 << 24)
    refused = [guest.heard[begin:end] for kind, _, _, begin, end in heads if kind == RST_STREAM]
    assert refused.count(int(ErrorCodes.REFUSED_STREAM).to_bytes(4, "big")) == 2_000
    assert 1_000 * CALL_BYTES <= port.held_bytes < 1_000 * (CALL_BYTES + 1_024)
    guest.leave()
    assert port.held_bytes == 0
    assert port.methods.cancelled == 1_000


# --------------------------------------------------------------------------- slow and small


def test_windows_of_one_byte(port: Port) -> None:
    """Each answer waits whole, and byte by byte leaves no more than floods may."""
    window = frame(SETTINGS, b"\0\4" + (1).to_bytes(4, "big"))
    guests = [port.guest(PREFACE + window) for _ in range(6)]
    message = framed(b"x" * 10_000)
    block = Encoder().encode(
        [(":method", "POST"), (":path", "/s/Echo"), ("content-type", "application/grpc")]
    )
    for guest in guests:
        for number in numbers(50):
            guest.say(frame(HEADERS, block, 4, number) + frame(DATA, message, 1, number))
    port.turns()
    assert not any(guest.is_gone for guest in guests)
    assert 6 * 50 * 10_000 < port.held_bytes < 6 * 50 * 40_000
    assert port.serves() < MOST_OPERATIONS
    for guest in guests:
        guest.say(b"".join(frame(WINDOW_UPDATE, b"\0\0\0\1", 0, n) for n in numbers(50)) * 100)
    assert port.serves() < MOST_OPERATIONS
    port.turns()
    assert all(guest.is_gone for guest in guests)  # 5,000 times room for one byte
    assert port.held_bytes == 0


def test_slow_readers_of_long_messages() -> None:
    """32 messages of 4 MiB for each: what is held of them counts, and the most greedy go."""
    scene = ProxyScene()
    body = b"y" * (4 * MIB - 1_000)
    scene.on(pop.POP_MESSAGE, scene.popped(*(a_message(body, number) for number in range(32))))
    port = Port(scene.messaging.rpcs, max_bytes_held_for_peers=256 * MIB)
    slow = []
    asks = message_type("ReceiveMessageRequest")(
        group={"name": "G"},
        message_queue={"topic": {"name": "T"}, "broker": {"name": "broker-a"}},
        batch_size=32,
        invisible_duration={"seconds": 30},
    ).SerializeToString()
    for number in range(4):
        scene.heartbeat(client_id=f"slow-{number}")
        client = Neighbour(port, x_mq_client_id=f"slow-{number}")
        client.takes = False
        client.ask(f"/{SERVICE}/ReceiveMessage", asks, grpc_timeout="30S")
        slow.append(client)
        for _ in range(60):
            port.turn()
            scene.advance(1, 1)
        assert port.held_bytes < 330 * MIB
    assert sum(client.is_gone or not client.peer.connected for client in slow) >= 2
    still = [client for client in slow if client.peer.connected]
    assert all(client.peer.held_bytes >= 128 * MIB for client in still)
    quick = Neighbour(port, x_mq_client_id="quick")
    asked = quick.ask(
        f"/{SERVICE}/Heartbeat", message_type("HeartbeatRequest")(client_type=1).SerializeToString()
    )
    for _ in range(20):
        port.turn()
    assert quick.statuses[asked]["grpc-status"] == "0"
    for client in [*slow, quick]:
        client.leave()
    assert port.held_bytes == 0
    scene.messaging.stop()


def test_clients_that_vanish_in_a_receive() -> None:
    """Their messages are made visible again, and nothing is kept."""
    scene = ProxyScene()
    scene.heartbeat(client_id="gone")
    messages = [a_message(b"z" * 30_000, number) for number in range(10)]
    scene.on(pop.POP_MESSAGE, scene.popped(*messages))
    port = Port(scene.messaging.rpcs)
    client = Neighbour(port, x_mq_client_id="gone")
    client.takes = False
    asks = message_type("ReceiveMessageRequest")(
        group={"name": "G"},
        message_queue={"topic": {"name": "T"}, "broker": {"name": "broker-a"}},
        batch_size=32,
        auto_renew=True,
    ).SerializeToString()
    client.ask(f"/{SERVICE}/ReceiveMessage", asks, grpc_timeout="30S")
    for _ in range(10):
        port.turn()
    assert 9 * 30_000 <= port.held_bytes < 2 * MIB
    client.leave()
    scene.advance(3_000)
    assert port.held_bytes == 0
    hidden = [header.invisible_time for header in scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)]
    assert len(hidden) >= 7
    assert set(hidden) <= {1_000}
    scene.messaging.stop()


def test_two_thousand_connections(port: Port) -> None:
    """Silent ones, half requests, calls that wait, and bytes one by one, all at once."""
    half = request(1, ends=False)
    kinds = (b"", BEGIN, BEGIN + half, BEGIN + request(1), BEGIN + half[:-1], PREFACE[:9])
    guests = [port.guest(kinds[number % len(kinds)]) for number in range(2_000)]
    most = 0.0
    for _ in range(4):
        port.guests, others = [], port.guests
        most = max(most, port.serves())  # all the others are silent
        port.guests = others
        for number, guest in enumerate(guests):
            if number % 50 == 0:
                guest.deliver()
    assert most < 50_000
    port.turns()
    assert not any(guest.is_gone for guest in guests)
    assert port.held_bytes < 2_000 * 32 * 1_024
    for guest in guests:
        guest.leave()
    assert port.held_bytes == 0
    assert not port.server.peers


# ------------------------------------------------------------------------- what is in messages


def answered(port: Port, method: str, request: Any, **headers: str) -> Any:
    """The answer of the proxy to a request of one client, or the status of gRPC."""
    client = Neighbour(port, **{"x_mq_client_id": "me", **headers})
    asked = client.ask(f"/{SERVICE}/{method}", request.SerializeToString())
    for _ in range(50):
        port.turn()
    client.leave()
    data = client.answers.get(asked)
    if not data:
        return int(client.statuses[asked]["grpc-status"])
    return message_type(f"{method}Response").FromString(data[5:])


def sends(topic: str, body: bytes = b"body", **system: Any) -> Any:
    its = {"message_id": "01", "message_type": 1, **system}
    message = {"topic": {"name": topic}, "system_properties": its, "body": body}
    return message_type("SendMessageRequest")(messages=[message])


@pytest.mark.parametrize(
    "name", ["T" * 100_000, "T\0", "T\n", "T\x7f", "漢字", "../../T", " ", "T%s"]
)
def test_hostile_names(name: str) -> None:
    scene = ProxyScene()
    port = Port(scene.messaging.rpcs)
    route = message_type("QueryRouteRequest")(topic={"name": name})
    for method, asks in (("SendMessage", sends(name)), ("QueryRoute", route)):
        status = answered(port, method, asks).status
        if name == "T%s":
            assert status.code == Code.TOPIC_NOT_FOUND
        else:
            assert status.code == Code.ILLEGAL_TOPIC
        assert len(status.message) < 1_000
    group = message_type("HeartbeatRequest")(client_type=2, group={"name": name})
    code = answered(port, "Heartbeat", group).status.code
    assert code == (Code.OK if name == "T%s" else Code.ILLEGAL_CONSUMER_GROUP)
    ack = message_type("AckMessageRequest")(
        group={"name": "G"}, topic={"name": "T"}, entries=[{"receipt_handle": name}]
    )
    said = answered(port, "AckMessage", ack)
    assert said.status.code == Code.INVALID_RECEIPT_HANDLE
    assert len(said.entries[0].status.message) < 1_000
    assert port.held_bytes == 0
    scene.messaging.stop()


def test_a_client_id_is_not_as_long_as_headers_may_be() -> None:
    scene = ProxyScene()
    port = Port(scene.messaging.rpcs)
    heartbeat = message_type("HeartbeatRequest")(client_type=2, group={"name": "G"})
    for number in range(5):
        said = answered(port, "Heartbeat", heartbeat, x_mq_client_id=f"{number}" + "i" * 15_000)
        assert said.status.code == Code.CLIENT_ID_REQUIRED
    assert len(scene.messaging.clients) == 0
    assert port.held_bytes == 0
    scene.messaging.stop()


def test_wrong_signatures_are_refused_and_remembered_little() -> None:
    accounts = AccountsConfig(authentication_enabled=True, authorization_enabled=True)
    scene = ProxyScene(accounts=accounts, here=AccountsHere(some_accounts()))
    port = Port(scene.messaging.rpcs)
    for number in range(100):
        wrong = (
            f"MQv2-HMAC-SHA1 Credential={'nobody' if number % 2 else 'root'},"
            f" SignedHeaders=x-mq-date-time, Signature={number:040X}"
        )
        said = answered(
            port, "SendMessage", sends("T"), authorization=wrong, x_mq_date_time=f"{number}"
        )
        assert said.status.code == Code.UNAUTHORIZED
    assert not scene.asked(send.SEND_MESSAGE_V2)
    assert port.held_bytes == 0
    scene.messaging.stop()


def test_bombs_of_grpc(port: Port) -> None:
    """A message of 1 GiB that is a MiB on the wire, of which no more than a MiB is made."""
    bomb = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    zeros = bytes(MIB)
    packed = b"".join([bomb.compress(zeros) for _ in range(512)]) + bomb.flush()
    client = Neighbour(port)
    asked = client.ask(message=b"\1" + framed(packed)[1:], grpc_encoding="gzip")
    most = 0
    for _ in range(200):
        port.turn()
        most = max(most, port.held_bytes)
    assert client.statuses[asked]["grpc-status"] == "8"
    assert most < 4 * MIB
    client.leave()
    assert port.held_bytes == 0


def test_bombs_of_bodies() -> None:
    scene = ProxyScene()
    port = Port(scene.messaging.rpcs)
    bomb = gzip.compress(bytes(64 * MIB), 9)
    said = answered(port, "SendMessage", sends("T", bomb, body_encoding=2))
    assert said.status.code == Code.MESSAGE_CORRUPTED  # as for what is no gzip at all
    assert port.held_bytes == 0
    scene.messaging.stop()
