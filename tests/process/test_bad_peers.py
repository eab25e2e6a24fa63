# SPDX-License-Identifier: Apache-2.0
"""Peers that misbehave on real sockets: the broker's memory stays bounded, others are served."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.protocol import pull, send
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.testing.server import Server, running

LIMIT_S = 20.0
MIB = 1 << 20
SLACK_BYTES = 128 * MIB
"""What all bad peers of a test together may cost; what they ask for is far more."""


class Peer:
    """A plain socket to the broker."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=LIMIT_S)
        self._decoder = FrameDecoder()

    def ask(self, data: bytes) -> RemotingCommand:
        """Sends a frame and waits for the answer."""
        self.socket.sendall(data)
        while True:
            got = self.socket.recv(MIB)
            assert got, "the broker has closed the connection"
            answers: list[RemotingCommand] = self._decoder.receive(got)
            if answers:
                return answers[0]

    def push(self, data: bytes, seconds: float) -> int:
        """Sends as much as the broker takes, over and over; the bytes that it took."""
        self.socket.settimeout(0.2)
        taken, deadline = 0, time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                taken += self.socket.send(data[taken % len(data) :])
            except TimeoutError:
                continue
            except OSError:  # given up
                break
        return taken


def frame(call: Call[Any, Any], header: Header, body: bytes = b"") -> bytes:
    command = RemotingCommand(call.code, header.encode(), body)
    return b"".join(map(bytes, encode_frame(command)))


def message(topic: str, body: bytes) -> bytes:
    header = SendMessageRequestHeader(
        producer_group="p",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
    )
    return frame(send.SEND_MESSAGE, header, body)


def pull_of(topic: str) -> bytes:
    header = PullMessageRequestHeader(
        consumer_group="g",
        topic=topic,
        queue_id=0,
        queue_offset=0,
        max_msg_nums=32,
        sys_flag=PullSysFlag.SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
    )
    return frame(pull.PULL_MESSAGE, header)


def memory_bytes(pid: int) -> int:
    """What a process holds that is its own: pages of mapped files are the system's."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * resource.getpagesize()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for these tests alone: they look at its memory."""
    with running() as made:
        yield made


@pytest.fixture
def peers(server: Server) -> Iterator[list[Peer]]:
    """Connections made with `connect`, closed at the end; then all must be well."""
    made: list[Peer] = []
    before = memory_bytes(server.pid)
    yield made
    assert memory_bytes(server.pid) - before < SLACK_BYTES
    assert_serves(server)
    for each in made:
        each.socket.close()
    assert_serves(server)


def connect(server: Server, peers: list[Peer]) -> Peer:
    peers.append(Peer(server.broker_addr))
    return peers[-1]


def assert_serves(server: Server) -> None:
    """A well-behaved client is served, and soon."""
    with ExitStack() as stack:
        peer = Peer(server.broker_addr)
        stack.callback(peer.socket.close)
        started = time.monotonic()
        for _ in range(20):
            assert peer.ask(message("Well", b"behaved")).code == ResponseCode.SUCCESS
        assert peer.ask(pull_of("Well")).code == ResponseCode.SUCCESS
        assert time.monotonic() - started < LIMIT_S / 2


def store_large(server: Server, peers: list[Peer]) -> None:
    writer = connect(server, peers)
    for _ in range(32):
        assert writer.ask(message("Large", bytes(8_000))).code == ResponseCode.SUCCESS


def test_clients_that_never_read(server: Server, peers: list[Peer]) -> None:
    store_large(server, peers)
    pulls = pull_of("Large") * 300  # 75 MiB of answers each
    for _ in range(8):
        connect(server, peers).push(pulls, 0.02)
        assert_serves(server)


def test_many_clients_that_ask_for_long_answers_and_never_read(
    server: Server, peers: list[Peer]
) -> None:
    writer = connect(server, peers)
    for _ in range(4):
        assert writer.ask(message("Huge", bytes(MIB))).code == ResponseCode.SUCCESS
    pulls = pull_of("Huge") * 50  # 50 MiB of answers each
    for _ in range(60):
        connect(server, peers).socket.sendall(pulls)
    assert_serves(server)


def test_a_client_that_reads_late_gets_all_answers(server: Server, peers: list[Peer]) -> None:
    store_large(server, peers)
    peer = connect(server, peers)
    peer.socket.sendall(pull_of("Large") * 300)  # far more than buffers hold
    assert_serves(server)
    decoder, answers = FrameDecoder(), 0
    while answers < 300:
        got = peer.socket.recv(MIB)
        assert got, "the broker has closed the connection"
        found = decoder.receive(got)
        assert all(answer.code == ResponseCode.SUCCESS for answer in found)
        answers += len(found)
    assert answers == 300


def test_clients_that_send_and_never_read(server: Server, peers: list[Peer]) -> None:
    sends = message("Small", b"x") * 500
    for _ in range(2):
        connect(server, peers).push(sends, 0.3)
        assert_serves(server)


def test_connections_that_say_nothing(server: Server, peers: list[Peer]) -> None:
    for _ in range(100):
        connect(server, peers)


def test_half_of_the_largest_frame(server: Server, peers: list[Peer]) -> None:
    start = (16 * MIB - 4).to_bytes(4, "big") + (100).to_bytes(4, "big")
    for _ in range(5):
        peer = connect(server, peers)
        peer.socket.sendall(start + bytes(8 * MIB))


def test_a_client_that_writes_byte_by_byte(server: Server, peers: list[Peer]) -> None:
    peer = connect(server, peers)
    peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = message("Slow", b"body")
    for at in range(len(data) - 1):
        peer.socket.sendall(data[at : at + 1])
    assert_serves(server)
    assert peer.ask(data[-1:]).code == ResponseCode.SUCCESS


def test_a_client_that_leaves_half_open(server: Server, peers: list[Peer]) -> None:
    peer = connect(server, peers)
    peer.socket.sendall(message("Half", b"body") + message("Half", b"body")[:40])
    peer.socket.shutdown(socket.SHUT_WR)
    while peer.socket.recv(MIB):  # it is answered or not; the end comes in any case
        pass


def test_clients_that_are_torn_away(server: Server, peers: list[Peer]) -> None:
    linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")  # close with a reset
    for _ in range(30):
        peer = Peer(server.broker_addr)
        peer.socket.sendall(pull_of("Large") * 20)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        peer.socket.close()
    assert peers == []


def test_garbage_ends_the_connection(server: Server, peers: list[Peer]) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\x7f\xff\xff\xff" * 4):
        peer = connect(server, peers)
        peer.socket.sendall(garbage)
        assert peer.socket.recv(100) == b""


def test_unknown_codes_and_missing_fields(server: Server, peers: list[Peer]) -> None:
    peer = connect(server, peers)
    nothing = RemotingCommand(9_999, {})
    assert (
        peer.ask(b"".join(map(bytes, encode_frame(nothing)))).code
        == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    )
    missing = RemotingCommand(RequestCode.PULL_MESSAGE, {})
    answer = peer.ask(b"".join(map(bytes, encode_frame(missing))))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "the custom field <consumerGroup> is null" in (answer.remark or "")
