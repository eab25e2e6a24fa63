# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import started
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType
from txrocketmq.proxy.sessions import clients as module
from txrocketmq.proxy.sessions.clients import EXPIRY_MS, MAX_STREAMS, Clients
from txrocketmq.remoting.host.clock import Clock

PEER = "10.1.1.1:5000"
PUSH, PRODUCER = ClientType.PUSH_CONSUMER, ClientType.PRODUCER


class FakeStream:
    """A stream that remembers why it was ended."""

    def __init__(self) -> None:
        self.closed = ""

    def tell(self, command: Any) -> None:
        raise AssertionError

    def close(self, why: str) -> None:
        self.closed = why


def known() -> tuple[Clients, ReactorClock, list[str]]:
    time = ReactorClock()
    clients = Clients(Clock(time))
    gone: list[str] = []
    clients.on_gone.append(lambda client: gone.append(client.id))
    clients.start()
    return clients, time, gone


def test_a_client_is_gone_when_it_was_not_heard_of_for_a_while() -> None:
    clients, time, gone = known()
    clients.register("a", PEER, PUSH, "G")
    clients.register("b", PEER, PUSH, "G")
    time.pump([1] * 30)
    assert clients.get("b") is not None
    time.pump([1] * (EXPIRY_MS // 1_000 - 29))
    assert (gone, len(clients)) == (["a"], 1)


def test_a_client_with_a_stream_stays() -> None:
    clients, time, gone = known()
    stream = FakeStream()
    clients.attach(clients.register("a", PEER, PUSH, "G"), stream)
    time.pump([1] * (3 * EXPIRY_MS // 1_000))
    assert gone == []
    clients.detach("a", stream)
    time.pump([1] * (1 + EXPIRY_MS // 1_000))
    assert gone == ["a"]


def test_a_client_that_changes_its_group_begins_anew_but_keeps_its_streams() -> None:
    clients, _, gone = known()
    first = clients.register("a", PEER, PUSH, "G")
    clients.attach(first, FakeStream())
    assert clients.register("a", PEER, PUSH, "G") is first
    second = clients.register("a", PEER, PUSH, "H")
    assert (second.group, len(second.streams), gone) == ("H", 1, ["a"])


def test_clients_are_limited_for_each_address_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 3)
    monkeypatch.setattr(module, "MAX_CLIENTS_OF_HOST", 2)
    clients, _, _ = known()
    clients.register("a", PEER, PUSH, "G")
    clients.register("b", "10.1.1.1:6000", PUSH, "G")
    for client_id, peer in (("c", "10.1.1.1:7000"), ("c", "10.1.1.2:1"), ("d", "10.1.1.3:1")):
        try:
            clients.register(client_id, peer, PUSH, "G")
        except Refused as error:
            assert error.code is Code.TOO_MANY_REQUESTS
    assert [each.id for each in clients] == ["a", "b", "c"]
    clients.remove("a")
    clients.register("d", "10.1.1.1:7000", PUSH, "G")
    with pytest.raises(Refused):
        clients.register("x" * 1_000, "10.1.1.4:1", PUSH, "G")


def test_a_client_has_so_many_streams() -> None:
    clients, _, _ = known()
    client = clients.register("a", PEER, PUSH, "G")
    streams = [FakeStream() for _ in range(MAX_STREAMS + 1)]
    for stream in streams:
        clients.attach(client, stream)
        clients.attach(client, stream)
    assert len(client.streams) == clients.streams == MAX_STREAMS
    assert [bool(each.closed) for each in streams] == [True] + [False] * MAX_STREAMS


def test_producers_are_found_by_topic() -> None:
    clients, _, _ = known()
    a, b = (clients.register(name, PEER, PRODUCER) for name in "ab")
    clients.publishes(a, ["T", "U"])
    clients.add_topic(b, "T")
    clients.add_topic(b, "T")
    assert [each.id for each in clients.producers("T")] == ["a", "b"]
    assert set(clients.published()) == {"T", "U"}
    clients.publishes(a, ["U"])
    clients.remove("b")
    assert (list(clients.producers("T")), set(clients.published())) == ([], {"U"})


def test_a_client_is_waited_for() -> None:
    clients, time, _ = known()
    first, second = (started(clients.wait(name, 1_000)) for name in "ab")
    client = clients.register("a", PEER, PUSH, "G")
    assert first.result is client
    time.advance(1)
    assert second.result is None
    cancelled = started(clients.wait("c", 1_000))
    cancelled.addErrback(lambda _: None)
    cancelled.cancel()
    clients.register("c", PEER, PUSH, "G")
    assert clients._waiting == {}
