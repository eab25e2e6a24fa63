# SPDX-License-Identifier: Apache-2.0
"""The reactor of servers and of the client's thread; here it runs in the test's own."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import twisted.internet
import twisted.internet.reactor
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.logger import capturedLogs

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.reactor import own_reactor
from txrocketmq.remoting.host.reactor.own_reactor import (
    CounterWaker,
    OwnReactor,
    Waker,
    install_reactor,
    new_reactor,
)

KINDS = [Waker, *([CounterWaker] if hasattr(os, "eventfd") else [])]


@pytest.fixture
def reactor() -> Iterator[Any]:
    made = new_reactor()
    yield made
    made.close()


def run(reactor: Any) -> None:
    """Until somebody stops it."""
    late = reactor.callLater(30, reactor.stop)
    reactor.run(installSignalHandlers=False)
    assert late.active(), "nobody has stopped it"


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_woken_often_finds_it_said_once(kind: type[Waker]) -> None:
    waker = kind()
    waker.doRead()  # nothing was said, and nobody waits
    for _ in range(100_000):  # more than a socket takes
        waker.wakeUp()
    waker.doRead()
    for _ in range(100_000):
        waker.doRead()
    assert waker.logPrefix() == "waker"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is open")
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_closed_with_its_last_user_and_not_before(kind: type[Waker]) -> None:
    files = Path("/proc/self/fd")
    before = len(list(files.iterdir()))
    waker = kind()
    waker.connectionLost(None)
    assert os.fstat(waker.fileno())
    waker.wakeUp()
    del waker
    assert len(list(files.iterdir())) == before


@pytest.mark.parametrize("kind", KINDS)
def test_other_threads_wake_it(
    kind: type[Waker], reactor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_reactor, "_HAS_COUNTERS", kind is CounterWaker)
    reactor.close()
    made = new_reactor()
    assert type(made.waker) is kind
    threads: list[threading.Thread] = []

    def from_elsewhere() -> None:
        thread = threading.Thread(target=made.callFromThread, args=(made.stop,))
        threads.append(thread)
        thread.start()

    made.callLater(0.01, from_elsewhere)
    run(made)
    threads[0].join()
    made.close()
    made.wakeUp()  # nobody is there any more


def test_a_turn_ends_when_all_is_done_that_is_due(reactor: Any) -> None:
    happened: list[str] = []

    def due() -> None:
        happened.append("due")
        reactor.at_end_of_turn(lambda: happened.append("end"))
        reactor.at_end_of_turn(lambda: reactor.at_end_of_turn(stop_soon))

    def stop_soon() -> None:
        happened.append("and what came at the end")
        reactor.callLater(0, reactor.stop)

    reactor.callLater(0, due)
    reactor.callLater(0, happened.append, "also due")
    run(reactor)
    assert happened == ["due", "also due", "end", "and what came at the end"]


def test_clocks_and_so_connections_know_of_it(reactor: Any) -> None:
    assert Clock(reactor).at_end_of_turn == reactor.at_end_of_turn


def test_what_fails_at_the_end_of_a_turn_keeps_nothing_else_from_it(reactor: Any) -> None:
    reactor.at_end_of_turn(lambda: 1 // 0)
    reactor.at_end_of_turn(lambda: reactor.callLater(0, reactor.stop))
    with capturedLogs() as logs:
        run(reactor)
    failures = [each["log_failure"].type for each in logs if "log_failure" in each]
    assert failures == [ZeroDivisionError]


def test_its_time_runs_on_when_the_clock_is_set(reactor: Any) -> None:
    assert reactor.seconds is time.monotonic


def test_a_read_that_fails_ends_that_connection_alone(reactor: Any) -> None:
    lost: list[str] = []

    class Fails(Protocol):
        def dataReceived(self, data: bytes) -> None:
            raise ZeroDivisionError

        def connectionLost(self, reason: Any = None) -> None:
            lost.append(reason.type.__name__)
            reactor.stop()

    class Factory(ClientFactory):
        protocol = Fails
        noisy = False

    with socket.create_server(("127.0.0.1", 0)) as server:
        reactor.connectTCP(*server.getsockname(), Factory())
        ours: list[socket.socket] = []

        def answer() -> None:
            ours.append(server.accept()[0])
            ours[0].sendall(b"x")

        thread = threading.Thread(target=answer)
        thread.start()
        with capturedLogs() as logs:
            run(reactor)
        thread.join()
        ours[0].close()
    assert lost == ["ZeroDivisionError"]
    assert any(each.get("isError") for each in logs)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is open")
def test_nothing_stays_open(reactor: Any) -> None:
    gc.collect()
    files = Path("/proc/self/fd")
    before = len(list(files.iterdir()))
    for _ in range(3):
        made = new_reactor()
        made.callLater(0, made.stop)
        run(made)
        made.close()
    assert len(list(files.iterdir())) == before


def test_where_there_is_no_epoll_it_is_select(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("select.epoll", raising=False)
    made = new_reactor()
    made.at_end_of_turn(lambda: made.callLater(0, made.stop))
    run(made)
    assert "Select" in type(made).__name__
    made.close()


def test_a_server_runs_a_reactor_of_short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = sys.modules["twisted.internet.reactor"]
    install_reactor()
    assert sys.modules["twisted.internet.reactor"] is installed  # a program has its own
    monkeypatch.setattr(twisted.internet, "reactor", installed, raising=False)
    monkeypatch.delitem(sys.modules, "twisted.internet.reactor")
    install_reactor()
    reactor = twisted.internet.reactor
    assert isinstance(reactor, OwnReactor)
    assert sys.modules["twisted.internet.reactor"] is reactor
    reactor.close()
