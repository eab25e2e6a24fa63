# SPDX-License-Identifier: Apache-2.0
"""What a broker looks through by itself. How long it takes in one turn: test_turns.py."""

from __future__ import annotations

from tests.broker.conftest import Parts
from tests.broker.test_turns import IN_TWENTY_YEARS_MS
from txrocketmq.broker.cluster.topic_routes import TopicRoutes
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.tables.clients import EXPIRED_MS
from txrocketmq.broker.upkeep import Upkeep
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.message.message import MessageQueue


def test_clients_that_are_silent_are_forgotten_and_closed(parts: Parts) -> None:
    failed: list[tuple[str, Exception]] = []
    journal = Journal(parts)
    upkeep = Upkeep(
        parts, journal, lambda: parts.now_ms, lambda what, why: failed.append((what, why))
    )
    silent = parts.consumer("g", "c1", "T")
    causes: list[str] = []
    parts.consumers.on_change.append(lambda _: causes.append(journal.who()))
    parts.locks.lock("g", "c1", [MessageQueue("T", "b", 0)], parts.now_ms)
    upkeep.expire()
    assert silent.connected
    parts.now_ms += EXPIRED_MS + 1
    upkeep.expire()
    assert not silent.connected
    assert causes == ["their heartbeats did not come"]
    assert parts.consumers.group("g") is None
    assert parts.locks.lock("g", "c2", [MessageQueue("T", "b", 0)], parts.now_ms)
    assert journal.who() == "the broker itself"
    assert failed == []


def test_counters_are_sampled(parts: Parts) -> None:
    upkeep = Upkeep(parts, Journal(parts), lambda: parts.now_ms, lambda *_: None)
    parts.stats.put("T", 1, 100)
    for _ in range(4):
        parts.stats.put("T", 10, 100)
        parts.now_ms += 10_000
        upkeep.sample(1)
    assert parts.stats.topic_put_tps("T") > 0


def test_queues_follow_the_log(parts: Parts) -> None:
    failed: list[tuple[str, Exception]] = []
    upkeep = Upkeep(
        parts, Journal(parts), lambda: parts.now_ms, lambda what, why: failed.append((what, why))
    )
    for _ in range(3):
        parts.put("T", 0, body=bytes(40_000))
    upkeep.follow_log()
    assert parts.store.min_offset("T", 0) == 0
    parts.store.flush.flush_all()
    parts.store.delete_expired(IN_TWENTY_YEARS_MS)
    upkeep.follow_log()
    assert parts.store.min_offset("T", 0) == 1
    assert failed == []


def test_what_was_popped_in_order_long_ago_is_forgotten(parts: Parts) -> None:
    upkeep = Upkeep(parts, Journal(parts), lambda: parts.now_ms, lambda *_: None)
    parts.topic("T", queues=1)
    parts.groups.find("g")
    orders = parts.pop.orders
    orders.popped(None, "T", "g", 0, parts.now_ms, 1_000, [5])
    upkeep.expire()
    assert orders.get("T", "g", 0) is not None
    parts.topics.delete("T")
    upkeep.expire()
    assert orders.get("T", "g", 0) is None


def test_routes_are_asked_for_again(parts: Parts) -> None:
    asked: list[str] = []

    def ask(topic: str) -> PendingReply:
        asked.append(topic)
        return PendingReply()

    parts.routes = TopicRoutes(ask)
    parts.routes._queues = {"T": [], "U": []}
    Upkeep(parts, Journal(parts), lambda: parts.now_ms, lambda *_: None).refresh_routes()
    assert asked == ["T", "U"]


def test_a_failure_is_told_and_is_not_the_end(parts: Parts) -> None:
    failed: list[tuple[str, Exception]] = []
    upkeep = Upkeep(
        parts, Journal(parts), lambda: parts.now_ms, lambda what, why: failed.append((what, why))
    )
    error = ValueError("oh")

    def fail(_: object) -> None:
        raise error

    parts.consumer("g", "c1", "T")
    parts.consumers.on_change.append(fail)
    parts.now_ms += EXPIRED_MS + 1
    upkeep.expire()
    assert failed == [("forgetting clients", error)]
