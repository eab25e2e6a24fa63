# SPDX-License-Identifier: Apache-2.0
"""The server for asyncio does what the other does; see tests/process for both at work."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, cast

import pytest

from txrocketmq.testing.aio import AioServer
from txrocketmq.testing.calls import ListenerErrors
from txrocketmq.testing.server import Server


class StandIn:
    namesrv_addr, broker_addr = "n:1", "b:2"

    def __init__(self) -> None:
        self.called: list[Any] = []
        self.why: list[str | None] = ["not yet", None]
        self.listener_errors = ListenerErrors()

    def why_not_consumed(self, group: str, topic: str | None, *, ignore_errors: bool) -> str | None:
        return self.why.pop(0)

    def client_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {"namesrv_addr": "127.0.0.1:1", **settings}

    consumer_settings = client_settings

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> str:
            self.called.append((name, *arguments, *named.items()))
            return name

        return call


CALLS: dict[str, tuple[Any, ...]] = {
    "send": ("T", b"x"),
    "create_topic": ("T", 3, "FIFO"),
    "topics": (),
    "groups": (),
    "messages": ("T",),
    "lag": ("g", "T"),
    "refuse": ("SYSTEM_BUSY",),
    "delay_ms": (5,),
    "drop_connections": (),
    "advance": (5,),
    "restart": (),
    "kill": (),
    "reset": (),
    "pause": (),
    "resume": (),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_the_servers(name: str) -> None:
    server = StandIn()
    aio = AioServer(cast(Server, server))
    asyncio.run(getattr(aio, name)(*CALLS[name]))
    assert server.called == [(name, *CALLS[name])]


def test_it_has_what_the_server_has() -> None:
    public = {name for name in dir(Server) if not name.startswith("_")}
    of_a_process = {"start", "stop", "pid", "ask", "aio", "why_not_consumed"} | {
        "has_clients",
        "shut_down_clients",
    }
    settings = {"client_settings", "consumer_settings", "grpc_endpoint"}
    missing = public - of_a_process - settings - set(dir(AioServer))
    assert missing == set()


def test_waiting_does_not_hold_the_loop_up() -> None:
    server = StandIn()
    asyncio.run(AioServer(cast(Server, server)).wait_consumed("g"))
    assert server.why == []
    server.why = ["something is left"]
    with pytest.raises(TimeoutError, match="after 0 s something is left"):
        asyncio.run(AioServer(cast(Server, server)).wait_consumed("g", timeout_s=0))


def test_clients_are_those_for_asyncio() -> None:
    server = StandIn()
    aio = AioServer(cast(Server, server))
    assert inspect.iscoroutinefunction(type(aio.producer()).start)
    push = asyncio.run(aio.consumer("T", lambda messages, context: None))
    lite = asyncio.run(aio.consumer("T", poll_timeout_ms=1))
    assert (type(push).__name__, type(lite).__name__) == ("PushConsumer", "LitePullConsumer")
    assert server.called == [("ask", "ensure_topic", "T")] * 2
