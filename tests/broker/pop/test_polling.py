# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.pop import polling
from txrocketmq.broker.pop.polling import PollingResult, PopPolling, PopRequest
from txrocketmq.broker.settings.config import BrokerConfig

PEER = FakePeer()


class Polling(PopPolling):
    """Remembers who was resumed."""

    def __init__(self, **settings: Any) -> None:
        self.later: list[Callable[[], None]] = []
        self.resumed: list[str] = []
        super().__init__(BrokerConfig(**settings), self.later.append)

    def wait(
        self,
        name: str,
        queue_id: int = -1,
        group: str = "g",
        peer: FakePeer = PEER,
        born_ms: int = NOW_MS,
        poll_ms: int = 10_000,
        again: bool = False,
    ) -> PollingResult:
        def resume() -> None:
            self.resumed.append(name)
            if again:
                self.wait(name, queue_id, group, peer, born_ms, poll_ms)

        request = PopRequest(peer, "T", group, queue_id, 0, resume)
        return self.hold(request, born_ms, poll_ms, NOW_MS, 0)

    def come(self, rows: list[Any]) -> None:
        for waiting, arrived in self.listeners:
            if waiting:
                arrived(rows)

    def turn(self) -> list[str]:
        while self.later:
            self.later.pop(0)()
        resumed, self.resumed = self.resumed, []
        return resumed


def test_one_of_each_group_is_woken() -> None:
    waits = Polling()
    for name in ("a1", "a2"):
        assert waits.wait(name) is PollingResult.POLLING_SUC
    waits.wait("queue 2", queue_id=2)
    waits.wait("other", group="h")
    waits.arrived("else", 0, 1)
    assert waits.turn() == []
    waits.arrived("T", 0, 1)
    waits.arrived("T", 0, 2)
    assert sorted(waits.turn()) == ["a1", "other"]
    waits.arrived("T", 2, 1)
    assert sorted(waits.turn()) == ["a2", "queue 2"]
    assert len(waits) == 0
    assert waits.turn() == []
    assert not waits._places


def test_rows_of_queues_are_arrivals() -> None:
    waits = Polling()
    rows = [(SimpleNamespace(topic=topic, queue_id=0, max_offset=1),) for topic in ("else", "T")]
    watch = waits.watch("T", "g")
    waits.come(rows[:1])
    assert not watch.has_missed
    waits.come(rows)
    assert watch.has_missed
    watch.end()
    waits.wait("a")
    waits.come(rows)
    assert waits.turn() == ["a"]


@pytest.mark.parametrize("topic", ["%RETRY%g_T", "%RETRY%g+T"])
def test_a_retry_topic_wakes_its_group(topic: str) -> None:
    waits = Polling()
    waits.wait("a", queue_id=5)
    waits.wait("other", group="h")
    waits.arrived(topic, 0, 1)
    assert waits.turn() == ["a"]


def test_the_next_is_woken_where_something_is_left() -> None:
    waits = Polling()
    waits.wait("a")
    waits.notify("T", "g", -1)
    waits.notify("T", "h", -1)
    assert waits.turn() == ["a"]


def test_who_finds_nothing_waits_on() -> None:
    waits = Polling()
    waits.wait("a", again=True)
    waits.arrived("T", 0, 1)
    assert waits.turn() == ["a"]
    assert len(waits) == 1
    waits.tick(9_949)
    assert waits.turn() == []
    waits.tick(9_950)
    assert waits.turn() == ["a"]


def test_time_goes_by() -> None:
    waits = Polling()
    waits.wait("long", poll_ms=30_000)
    waits.wait("short", poll_ms=3_000)
    waits.wait("client's clock is ahead", born_ms=NOW_MS + 10**9, poll_ms=3_000)
    waits.tick(2_949)
    assert waits.turn() == []
    waits.tick(8_000)
    assert waits.turn() == ["short", "client's clock is ahead"]
    waits.tick(29_950)
    assert waits.turn() == ["long"]
    assert not waits._by_second


def test_who_may_not_wait() -> None:
    waits = Polling(pop_polling_size=1, max_pop_polling_size=4)
    assert waits.wait("a", poll_ms=0) is PollingResult.NOT_POLLING
    assert waits.wait("a", born_ms=NOW_MS - 9_951) is PollingResult.POLLING_TIMEOUT
    results = [waits.wait("a") for _ in range(3)]
    assert results[1:] == [PollingResult.POLLING_SUC, PollingResult.POLLING_FULL]
    assert [waits.wait("b", queue_id=each) for each in range(3)] == [
        PollingResult.POLLING_SUC,
        PollingResult.POLLING_SUC,
        PollingResult.POLLING_FULL,
    ]
    assert (waits.count("T", "g", -1), waits.count("T", "g", 0), waits.count("T", "h", 0)) == (
        2, 1, 0,
    )  # fmt: skip


def test_a_peer_goes() -> None:
    waits = Polling()
    gone = FakePeer(1)
    waits.wait("gone", peer=gone)
    waits.wait("stays")
    waits.arrived("T", 0, 1)
    waits.disconnected(gone, 0)
    waits.disconnected(gone, 0)
    assert waits.turn() == ["stays"]


def test_many_are_resumed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "SLICE", 2)
    waits = Polling()
    for number in range(5):
        waits.wait(str(number))
    waits.tick(20_000)
    assert waits.resumed == ["0", "1"]
    assert waits.turn() == ["0", "1", "2", "3", "4"]


def test_those_whose_time_is_over_are_resumed_once_however_often_time_is_told() -> None:
    waits = Polling()
    for number in range(3 * polling.SLICE):
        waits.wait(f"{number}", queue_id=number, poll_ms=5_000)
    late = FakePeer(9)
    waits.wait("gone", queue_id=0, peer=late, poll_ms=5_000)
    waits.wait("later", poll_ms=5_900)
    waits.tick(5_500)
    waits.tick(5_600)
    assert len(waits.resumed) == 2 * polling.SLICE
    waits.disconnected(late, 5_600)
    assert waits.turn() == [f"{number}" for number in range(3 * polling.SLICE)]
    assert len(waits) == 1
    waits.tick(6_000)
    assert waits.turn() == ["later"]
    assert not waits._by_second


def test_an_arrival_costs_the_same_however_many_groups_wait() -> None:
    waits = Polling()
    for number in range(500):
        waits.wait(f"{number}", group=f"g{number}")
    waits._places = Watched(waits._places)
    waits.arrived("T", 0, 1)
    assert Watched.iterated == 0
    assert len(waits.turn()) == 500


class Watched(dict[str, Any]):
    """Counts how often the groups of a topic are gone through."""

    iterated = 0

    def get(self, key: str, default: Any = None) -> Any:
        Watched.iterated += 1
        return super().get(key, default)

    __getitem__ = get


def test_a_turn_ends_when_its_time_is_over() -> None:
    waits = Polling()
    now_s = iter(range(1_000))
    waits._timer = lambda: next(now_s) * 0.4 * polling.SLICE_S
    for number in range(9):
        waits.wait(f"{number}", group=f"g{number}")
    waits.arrived("T", 0, 1)
    turns = []
    while waits.later:
        waits.later.pop(0)()
        turns.append(len(waits.resumed))
    assert waits.resumed == [f"{number}" for number in range(9)]
    assert turns == [2, 5, 8, 9]


def test_a_crowd_of_a_peer_is_forgotten_in_slices_and_none_of_it_runs() -> None:
    waits = Polling()
    gone = FakePeer(1)
    for number in range(3 * polling.SLICE):
        waits.wait(f"{number}", peer=gone)
    waits.wait("there")
    waits.disconnected(gone, 0)
    waits.arrived("T", 0, 1)
    waits.later.pop(0)()
    assert len(waits) == 2 * polling.SLICE + 1
    waits.tick(100_000)
    assert waits.turn() == ["there"]
    assert len(waits) == 0


def test_a_pop_that_fails_keeps_the_others_from_nothing() -> None:
    waits = Polling()

    def fails() -> None:
        raise OSError("a page cannot be read")

    waits.hold(PopRequest(PEER, "T", "g", -1, 0, fails), NOW_MS, 10_000, NOW_MS, 0)
    waits.wait("at queue 0", queue_id=0)
    waits.wait("other", group="h")
    waits.arrived("T", 0, 1)
    with pytest.raises(OSError, match="a page cannot be read"):
        waits.later.pop()()
    assert sorted(waits.turn()) == ["at queue 0", "other"]
