# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.tables.clients import EXPIRED_MS, Client, ConsumerGroup, Consumers, Producers
from txrocketmq.remoting.message.tags import SubscriptionData


def client(peer: FakePeer, client_id: str = "c1", now_ms: int = NOW_MS) -> Client:
    return Client(peer, client_id, "JAVA", 407, now_ms)


def beat(
    consumers: Consumers, who: Client, group: str = "g", *topics: str, version: int = 1
) -> bool:
    return consumers.register(
        who,
        group,
        "CONSUME_PASSIVELY",
        "CLUSTERING",
        "CONSUME_FROM_LAST_OFFSET",
        [SubscriptionData(topic, sub_version=version) for topic in topics],
    )


def test_a_group_changes_when_members_or_topics_do() -> None:
    told: list[tuple[str, list[str]]] = []
    consumers = Consumers()
    consumers.on_change.append(lambda group: told.append((group.name, group.client_ids())))
    first, second = FakePeer(1), FakePeer(2)
    assert beat(consumers, client(first), "g", "T")
    assert not beat(consumers, client(first), "g", "T")
    assert beat(consumers, client(second, "c2"), "g", "T")
    assert beat(consumers, client(first), "g", "T", "U")
    assert beat(consumers, client(first), "g", "T")
    assert told == [("g", ["c1"]), ("g", ["c1", "c2"]), ("g", ["c1", "c2"]), ("g", ["c1", "c2"])]


def test_a_newer_subscription_replaces_silently_and_an_older_one_does_not() -> None:
    consumers = Consumers()
    peer = FakePeer()
    beat(consumers, client(peer), "g", "T", version=5)
    assert not beat(consumers, client(peer), "g", "T", version=9)
    assert not beat(consumers, client(peer), "g", "T", version=7)
    group = consumers.group("g")
    assert group is not None
    assert group.subscriptions["T"].sub_version == 9


def test_a_heartbeat_without_subscriptions_leaves_them() -> None:
    consumers = Consumers()
    peer = FakePeer()
    beat(consumers, client(peer), "g", "T")
    assert not consumers.register(client(peer), "g", "CONSUME_ACTIVELY", "CLUSTERING", "x", None)
    group = consumers.group("g")
    assert group is not None
    assert set(group.subscriptions) == {"T"}
    assert group.consume_type == "CONSUME_ACTIVELY"


def test_one_id_on_two_connections_is_one_member() -> None:
    group = ConsumerGroup("g")
    first, second = FakePeer(1), FakePeer(2)
    assert group.add(client(first, "b"))
    assert group.add(client(second, "b"))
    assert not group.add(client(first, "b"))
    assert group.client_ids() == ["b"]
    assert group.find("b") is group.members[first]
    assert group.find("x") is None


def test_the_last_member_takes_the_group_along() -> None:
    told: list[int] = []
    consumers = Consumers()
    consumers.on_change.append(lambda group: told.append(len(group.members)))
    first, second = FakePeer(1), FakePeer(2)
    beat(consumers, client(first), "g", "T")
    beat(consumers, client(second, "c2"), "g", "T")
    consumers.unregister("g", "c1", first)
    assert [group.name for group in consumers.groups()] == ["g"]
    consumers.unregister("g", "c1", first)  # was not there any more
    consumers.unregister("x", "c1", first)
    consumers.unregister("g", "c2", second)
    assert told == [1, 2, 1, 0]
    assert consumers.groups() == []
    assert consumers.group("g") is None


def test_a_lost_connection_leaves_all_its_groups() -> None:
    told: list[str] = []
    consumers = Consumers()
    consumers.on_change.append(lambda group: told.append(group.name))
    peer, other = FakePeer(1), FakePeer(2)
    for group in ("g", "h"):
        beat(consumers, client(peer), group, "T")
    beat(consumers, client(other, "c2"), "h", "T")
    told.clear()
    consumers.disconnected(peer, NOW_MS)
    assert told == ["g", "h"]
    assert [group.name for group in consumers.groups()] == ["h"]


def test_silent_members_are_forgotten_after_two_minutes() -> None:
    consumers = Consumers()
    silent, lively = FakePeer(1), FakePeer(2)
    beat(consumers, client(silent), "g", "T")
    beat(consumers, client(lively, "c2", NOW_MS + 1), "g", "T")
    assert finished(consumers.expire(NOW_MS + EXPIRED_MS)) == []
    assert finished(consumers.expire(NOW_MS + EXPIRED_MS + 1)) == [silent]
    group = consumers.group("g")
    assert group is not None
    assert group.client_ids() == ["c2"]


def test_producers_come_and_go() -> None:
    producers = Producers()
    first, second = FakePeer(1), FakePeer(2)
    producers.register("p", client(first))
    producers.register("p", client(first, now_ms=NOW_MS + 5))
    producers.register("p", client(second, "c2"))
    assert [each.client_id for each in producers.members("p")] == ["c1", "c2"]
    assert producers.members("p")[0].last_seen_ms == NOW_MS + 5
    producers.unregister("p", first)
    producers.unregister("x", first)
    producers.disconnected(second, NOW_MS)
    assert producers.groups() == []


def test_silent_producers_are_forgotten() -> None:
    producers = Producers(expired_ms=100)
    peer = FakePeer()
    producers.register("p", client(peer))
    assert finished(producers.expire(NOW_MS + 100)) == []
    assert finished(producers.expire(NOW_MS + 101)) == [peer]
    assert producers.members("p") == []


def test_a_producer_is_found_by_its_id() -> None:
    producers = Producers()
    first, second = FakePeer(1), FakePeer(2)
    assert producers.find("c1") is None
    producers.register("p", client(first))
    producers.register("q", client(first))
    producers.register("p", client(first))
    assert producers.find("c1") is first
    producers.register("p", client(second))
    assert producers.find("c1") is second  # it has connected anew
    producers.unregister("p", second)
    assert producers.find("c1") is first
    producers.unregister("p", first)
    assert producers.find("c1") is first  # it is in the other group still
    producers.disconnected(first, NOW_MS)
    assert producers.find("c1") is None
    assert not producers._by_id


def test_a_producer_that_takes_another_id_is_found_by_that() -> None:
    producers = Producers(expired_ms=100)
    peer = FakePeer(1)
    producers.register("p", client(peer, "old", 0))
    producers.register("p", client(peer, "new", 0))
    assert producers.find("old") is None
    assert producers.find("new") is peer
    assert finished(producers.expire(101)) == [peer]
    assert producers.find("new") is None
