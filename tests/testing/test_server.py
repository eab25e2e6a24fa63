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
