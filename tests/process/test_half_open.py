# SPDX-License-Identifier: Apache-2.0
"""Connections whose other end is gone without a word: clients make new ones, and lose nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from txrocketmq.client import (
    ConsumeFrom,
    MQClientError,
    Producer,
    PushConsumer,
    RemotingError,
    new_message,
)
from txrocketmq.remoting.transport import client as transport
from txrocketmq.testing.server import Server

RECOVERED_S = 90
CPU_S = 6
"""What the client may take while it finds out: about half of what a busy loop would."""


class Proxy:
    """Forwards connections to a server; those that `freeze` finds stay open and say no more."""

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._frozen: set[socket.socket] = set()
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> int:
        """How many connections there are that say no more."""
        frozen = set(self.open)
        self._frozen |= frozen
        return len(frozen) // 2

    def close(self) -> None:
        self._over.set()
        self._listener.close()
        for each in self.open:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(self._to)
                self.open += [here, there]
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if source in self._frozen:
                    self._over.wait()
                    return
                sink.sendall(data)
            if source not in self._frozen:
                sink.close()


@pytest.fixture
def proxy(rocketmq_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """In front of the broker, for all clients of this process."""
    broker_port = int(rocketmq_server.broker_addr.rpartition(":")[2])
    found = Proxy(broker_port)
    endpoint = transport._endpoint

    def through(reactor: Any, host: str, port: int) -> Any:
        return endpoint(reactor, host, found.port if port == broker_port else port)

    monkeypatch.setattr(transport, "_endpoint", through)
    yield found
    found.close()


def test_nothing_acknowledged_is_lost_when_connections_are_half_open(
    rocketmq_server: Server, proxy: Proxy
) -> None:
    where: dict[str, Any] = {"namesrv_addr": rocketmq_server.namesrv_addr}
    acknowledged: list[str] = []
    consumed: list[str] = []

    def listener(messages: Any, _: object) -> None:
        consumed.extend(each.body.decode() for each in messages)

    with contextlib.ExitStack() as clients:
        producer = clients.enter_context(Producer("half-open-p", **where))
        _make_topic(producer)
        consumer = PushConsumer(
            "half-open",
            {"HalfOpen": "*"},
            listener,
            consume_from=ConsumeFrom.FIRST_OFFSET,
            **where,
        )
        clients.enter_context(consumer)

        def send_some(count: int) -> None:
            end = time.monotonic() + RECOVERED_S
            wanted = len(acknowledged) + count
            number = 0
            while len(acknowledged) < wanted:
                number += 1
                assert time.monotonic() < end, "sends do not succeed again"
                body = f"m{wanted}-{number}"
                with contextlib.suppress(MQClientError, RemotingError):
                    producer.send(new_message("HalfOpen", body))
                    acknowledged.append(body)

        for _ in range(2):
            send_some(20)
            _wait_for(lambda: set(acknowledged) <= set(consumed))
            busy_s = time.process_time()
            assert proxy.freeze() >= 1
            send_some(20)
            _wait_for(lambda: set(acknowledged) <= set(consumed))
            assert time.process_time() - busy_s < CPU_S
        assert len(proxy.open) // 2 < 20


def _make_topic(producer: Any) -> None:
    """It is there before the consumer looks for it."""
    end = time.monotonic() + RECOVERED_S
    while True:
        producer.send(new_message("HalfOpen", "first"))
        with contextlib.suppress(MQClientError):
            producer.publish_queues("HalfOpen")
            return
        assert time.monotonic() < end
        time.sleep(0.05)


def _wait_for(is_done: Any) -> None:
    end = time.monotonic() + RECOVERED_S
    while not is_done():
        assert time.monotonic() < end, "not all that was acknowledged is consumed"
        time.sleep(0.05)
