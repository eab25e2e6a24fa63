# SPDX-License-Identifier: Apache-2.0
"""The server as programs get it; what it does is tested with its parts, and in tests/process."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.testing import server
from txrocketmq.testing.aio import AioServer


class StandIn(server.Server):
    """One that starts nothing."""

    happened: list[Any] = []  # noqa: RUF012 - emptied by the test

    def __init__(self) -> None:
        self.namesrv_addr, self.broker_addr = "n:1", "b:2"

    @classmethod
    def start(cls, **settings: object) -> Any:
        cls.happened.append(settings)
        return cls()

    def stop(self) -> None:
        self.happened.append("stop")


class StandInProcess:
    """A process that notes what is called."""

    namesrv_addr, broker_addr, store, log_path, pid = "n:1", "b:2", "store", "log", 7
    credentials: dict[str, str] = {}  # noqa: RUF012 - never changed

    def __init__(self) -> None:
        self.happened: list[Any] = []
        self.is_paused = False

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.happened.append((name, *arguments))


class StandInClient:
    def __init__(self, happened: list[Any]) -> None:
        self.happened = happened

    def shutdown(self) -> None:
        self.happened.append("client")


def served(clients: int = 0) -> tuple[Any, StandInProcess]:
    process = StandInProcess()
    it: Any = server.Server(process)  # type: ignore[arg-type]
    it._clients = [StandInClient(process.happened) for _ in range(clients)]
    return it, process


def test_it_is_where_its_process_is() -> None:
    it, _ = served()
    assert (it.namesrv_addr, it.broker_addr) == ("n:1", "b:2")
    assert (it.store, it.log_path) == ("store", "log")
    assert it.pid == 7


def test_its_life_is_that_of_its_process() -> None:
    it, process = served()
    it.advance(5)
    it.kill()
    it.restart()
    it.pause()
    it.resume()
    it.ask("lag", "g")
    assert process.happened == [
        ("advance", 5), ("kill",), ("restart",), ("pause",), ("resume",), ("ask", "lag", "g"),
    ]  # fmt: skip


def test_its_clients_end_before_the_store_is_emptied_or_removed() -> None:
    it, process = served(clients=2)
    it.reset()
    it.stop()
    assert process.happened == ["client", "client", ("reset",), ("stop",)]


def test_clients_of_a_paused_server_can_say_good_bye() -> None:
    it, process = served(clients=1)
    process.is_paused = True
    it.stop()
    assert process.happened == [("resume",), "client", ("stop",)]
    it, process = served()
    process.is_paused = True
    it.stop()
    assert process.happened == [("stop",)]


def test_it_stops_though_a_client_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    it, process = served()
    monkeypatch.setattr(it, "shut_down_clients", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        it.stop()
    assert process.happened == [("stop",)]


def test_it_runs_as_long_as_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "Server", StandIn)
    StandIn.happened = []
    with server.running(a=1):
        assert StandIn.happened == [{"a": 1}]
    assert StandIn.happened == [{"a": 1}, "stop"]


def test_the_same_for_asyncio_is_made_once() -> None:
    it = StandIn()
    assert isinstance(it.aio, AioServer)
    assert it.aio is it.aio
    assert it.aio.namesrv_addr == "n:1"
