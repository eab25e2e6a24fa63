# SPDX-License-Identifier: Apache-2.0
"""A port that is open before what serves it is there."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs

from txrocketmq.proxy.door import Door
from txrocketmq.remoting.host.clock import Clock


class Port:
    """A port that listens, and remembers what is done with it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def getHost(self) -> Any:  # noqa: N802 - Twisted's
        return type("Address", (), {"port": 8081})

    def doRead(self) -> None:
        """Accepts somebody."""
        self.done.append("accept")

    def stopReading(self) -> None:  # noqa: N802 - Twisted's
        self.done.append("wait")

    def startReading(self) -> None:  # noqa: N802 - Twisted's
        self.done.append("go on")

    def stopListening(self) -> Deferred[None]:  # noqa: N802 - Twisted's
        self.done.append("close")
        return succeed(None)


class Reactor(MemoryReactorClock):
    """A reactor whose ports can be looked at."""

    def listenTCP(self, *_: Any) -> Any:  # noqa: N802 - Twisted's
        self.opened = Port()
        return self.opened


class Served:
    """In place of a proxy."""

    def __init__(self) -> None:
        self.listening: Any = None
        self.stopped = 0

    def start(self, listening: Any) -> None:
        """Takes the port over."""
        self.listening = listening

    def stop(self) -> Deferred[None]:
        """Ends."""
        self.stopped += 1
        return succeed(None)


def test_the_first_client_waits_for_the_service() -> None:
    reactor: Any = Reactor()  # type: ignore[no-untyped-call]
    served: Any = Served()
    door: Any = Door(Clock(reactor), lambda: served)
    door.open(8081, "127.0.0.1")
    assert (door.port, door.proxy) == (8081, None)
    reactor.opened.doRead()
    reactor.advance(1)
    assert door.proxy is served
    assert served.listening is reactor.opened
    assert reactor.opened.done == ["wait", "go on"]
    reactor.opened.doRead()
    assert reactor.opened.done[-1] == "accept"
    door.close()
    assert served.stopped == 1


def test_a_port_that_nobody_came_to() -> None:
    reactor: Any = Reactor()  # type: ignore[no-untyped-call]
    door = Door(Clock(reactor), lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    door.open(8081, "127.0.0.1")
    assert door.close().called
    assert reactor.opened.done == ["close"]
    assert door.close().called


def test_a_service_that_cannot_begin_is_said_and_the_port_closed() -> None:
    reactor: Any = Reactor()  # type: ignore[no-untyped-call]
    door = Door(Clock(reactor), lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    door.open(8081, "127.0.0.1")
    with capturedLogs() as logs:
        reactor.opened.doRead()
        reactor.advance(1)
    assert any("log_failure" in each for each in logs)
    assert reactor.opened.done == ["wait", "close"]
