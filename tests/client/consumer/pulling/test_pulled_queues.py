# SPDX-License-Identifier: Apache-2.0
"""Queues that are taken and given up, in order with locks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock as Time

from tests.client.fakes import result_of
from txrocketmq.client.base.errors import BrokerNotExist
from txrocketmq.client.consumer.pulling import pulled_queues
from txrocketmq.client.consumer.pulling.pulled_queues import LOCK_AGAIN_MS, PulledQueues
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageQueue

A, B = (MessageQueue("T", "broker-a", number) for number in range(2))


class Around:
    """All that the queues have to do with, and what it is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, in_order: bool = False) -> None:
        self.clock = Clock(Time())
        self.said: list[Any] = []
        self.pulls: dict[MessageQueue, Deferred[int | None]] = {}
        self.queues = 0
        self.locked = {A, B}
        self.left: Deferred[None] = succeed(None)
        monkeypatch.setattr(pulled_queues, "first_offset", self.first_offset)
        each: Any = self
        self.pulled = PulledQueues(
            each, each, {"T"}, each, each, each, each, each if in_order else None  # type: ignore[arg-type]
        )  # fmt: skip

    async def first_offset(self, _: object, __: object, ___: object, queue: MessageQueue) -> int:
        if queue not in self.locked:
            raise BrokerNotExist("it is away")
        return 5

    async def read(self, process_queue: ProcessQueue, offset: int) -> int | None:
        self.pulls[process_queue.queue] = Deferred()
        return await self.pulls[process_queue.queue]

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        self.said.append(("persist", *queues))

    def forget(self, queue: MessageQueue) -> None:
        """Notes of a queue are forgotten."""

    def set(self, queue: MessageQueue, offset: int) -> None:
        self.said.append(("set", queue, offset))

    async def lock(self, queues: Iterable[MessageQueue]) -> frozenset[MessageQueue]:
        return frozenset(queues) & self.locked

    def unlock(self, queues: Iterable[MessageQueue]) -> None:
        self.said.append(("unlock", *queues))

    async def unlock_all(self, process_queues: Iterable[ProcessQueue]) -> None:
        self.said.append(("unlock all", *(each.queue for each in process_queues)))

    def when_left(self, process_queue: ProcessQueue) -> Deferred[None]:
        return self.left

    def look(self) -> None:
        self.said.append("look")

    def look_later(self, delay_ms: int | None = None) -> None:
        self.said.append(("look later", delay_ms))


def test_queues_are_read_until_they_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(monkeypatch)
    pulled = around.pulled
    assert result_of(pulled.take({B, A})) == 2
    assert ([*pulled], around.queues) == ([A, B], 2)
    assert pulled.of_topic("T") == {A, B}
    assert pulled.of_topic("U") == set()
    (first, _) = pulled.process_queues
    result_of(pulled.give_up(A))
    result_of(pulled.give_up(A))
    assert first.dropped
    assert around.pulls[A].called, "its pull was cancelled"
    assert ([*pulled], around.queues, around.said) == ([B], 1, [("persist", A)])


def test_a_queue_whose_offset_was_elsewhere_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(monkeypatch)
    result_of(around.pulled.take({A}))
    around.pulls[A].callback(9)
    assert [*around.pulled] == []
    assert around.said == [("set", A, 9), ("persist", A), "look"]


def test_a_broker_that_is_away_leaves_its_queue_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(monkeypatch)
    around.locked = {B}
    assert result_of(around.pulled.take({A, B})) == 1
    assert [*around.pulled] == [B]


def test_in_order_only_what_is_locked_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(monkeypatch, in_order=True)
    around.locked = {B}
    assert result_of(around.pulled.take({A, B})) == 1
    assert [each.locked for each in around.pulled.process_queues] == [True]
    assert around.said == [("look later", LOCK_AGAIN_MS)]


def test_in_order_a_queue_is_unlocked_when_its_listener_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    around = Around(monkeypatch, in_order=True)
    around.left = Deferred()
    result_of(around.pulled.take({A}))
    result_of(around.pulled.give_up(A))
    assert around.said == [("persist", A)]
    assert result_of(around.pulled.take({A})) == 0, "it is still locked for what it had"
    around.left.callback(None)
    assert around.said[-2:] == [("unlock", A), ("look later", None)]
    assert result_of(around.pulled.take({A})) == 1


def test_the_end_leaves_all_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(monkeypatch, in_order=True)
    result_of(around.pulled.take({A, B}))
    around.pulled.stop()
    assert [each.called for each in around.pulls.values()] == [True, True]
    result_of(around.pulled.leave())
    assert [*around.pulled] == []
    assert around.said == [("persist", A, B), ("unlock all", A, B)]
    assert result_of(around.pulled.take({A})) == 0
