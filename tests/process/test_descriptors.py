# SPDX-License-Identifier: Apache-2.0
"""Real servers that come to the end of the files that they may have open."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack, suppress

import pytest

from tests.process.test_bad_peers import LIMIT_S, Peer, message
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.testing.server import Server, running

FILES = 256
IDLE = 400


def come(stack: ExitStack, address: str) -> socket.socket:
    """A connection that asks for nothing."""
    host, _, port = address.rpartition(":")
    idle = stack.enter_context(socket.create_connection((host, int(port)), timeout=LIMIT_S))
    idle.settimeout(0)
    return idle


def are_open(connections: list[socket.socket]) -> int:
    """How many of the connections the server has not closed."""
    count = 0
    for connection in connections:
        with suppress(BlockingIOError):
            with suppress(ConnectionResetError):
                connection.recv(1)
            continue
        count += 1
    return count


def settled(connections: list[socket.socket]) -> int:
    """As are_open, when the server has accepted them all."""
    before, deadline = -1, time.monotonic() + LIMIT_S
    while (now := are_open(connections)) != before or now == len(connections):
        assert time.monotonic() < deadline, "it takes them all"
        before = now
        time.sleep(0.2)  # another process: there is nothing that could tell
    return now


def said(server: Server, text: str) -> int:
    return server.log_path.read_text("utf-8").count(text)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_sends_go_on_though_more_clients_come_than_files_may_be_open(flush: str) -> None:
    with running(flushDiskType=flush, mappedFileSizeCommitLog=65_536) as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        producer = Peer(server.broker_addr)

        def send(topic: str, count: int = 20) -> None:
            for _ in range(count):
                answer = producer.ask(message(topic, bytes(8_000)))
                assert answer.code == ResponseCode.SUCCESS, answer.remark

        send("T")
        with ExitStack() as stack:
            stack.enter_context(producer.socket)
            with ExitStack() as crowd:
                idle = [come(crowd, server.broker_addr) for _ in range(IDLE)]
                taken = settled(idle)
                assert FILES // 2 < taken < FILES
                send("T")
                send("another", 1)
                deadline = time.monotonic() + 3
                while time.monotonic() < deadline:  # several jobs of flushing
                    send("T", 1)
                    time.sleep(0.1)
                assert settled([come(crowd, server.namesrv_addr)]) == 0
            send("T")
            again = [come(stack, server.broker_addr) for _ in range(20)]
            time.sleep(0.5)
            assert are_open(again) == 20, "there is room again"
            send("T")
        assert said(server, "connections are refused: ") == 2, "once for each of the two servers"
        assert said(server, "Too many open files") == 0
        assert said(server, "EMFILE") == 0
