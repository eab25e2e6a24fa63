# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.counted import lines_of
from tests.fakes import NOW_MS
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.tables.stats import BrokerStats, StatsItem, StatsSnapshot

DAY = 700_000


@pytest.fixture
def stats() -> BrokerStats:
    return BrokerStats("C", lambda topic: topic.startswith("sys"), NOW_MS)


def value_of(stats: BrokerStats, name: str, key: str) -> tuple[int, int]:
    item = stats.item(name, key)
    assert item is not None, (name, key)
    return item.value, item.times


def test_puts_count_for_topic_and_broker(stats: BrokerStats) -> None:
    stats.put("T", 3, 300)
    stats.put("T", 1, 50)
    stats.put("U", 1, 10)
    assert value_of(stats, "TOPIC_PUT_NUMS", "T") == (4, 4)
    assert value_of(stats, "TOPIC_PUT_SIZE", "T") == (350, 4)
    assert value_of(stats, "BROKER_PUT_NUMS", "C") == (5, 5)


def test_gets_count_for_topic_and_group(stats: BrokerStats) -> None:
    stats.got("g", "T", 32, 3_200)
    stats.got("g", "T", 1, 100)
    assert value_of(stats, "GROUP_GET_NUMS", "T@g") == (33, 2)
    assert value_of(stats, "GROUP_GET_SIZE", "T@g") == (3_300, 2)
    assert value_of(stats, "BROKER_GET_NUMS", "C") == (33, 2)


def test_messages_sent_back(stats: BrokerStats) -> None:
    stats.sent_back("g", "T")
    stats.sent_back("g", "T")
    assert value_of(stats, "SNDBCK_PUT_NUMS", "T@g") == (2, 2)


def test_a_counter_exists_from_its_first_use(stats: BrokerStats) -> None:
    assert stats.item("TOPIC_PUT_NUMS", "T") is None
    assert stats.item("BROKER_PUT_NUMS", "C") is not None


def test_the_last_minute(stats: BrokerStats) -> None:
    for second in range(121):
        stats.put("T", 2, 20)
        finished(stats.tick(NOW_MS + second * 1000, DAY))
    item = stats.item("TOPIC_PUT_SIZE", "T")
    assert item is not None
    assert item.minute.snapshot() == StatsSnapshot(1_200, 20.0, 10.0)
    assert stats.topic_put_tps("T") == 2.0
    assert stats.topic_put_tps("U") == stats.group_get_tps("g", "T") == 0.0
    stats.got("g", "T", 60, 1)
    finished(stats.tick(NOW_MS + 130_000, DAY))
    assert stats.group_get_tps("g", "T") == 6.0


def test_the_last_hour_and_day(stats: BrokerStats) -> None:
    for minute in range(26 * 60):
        stats.put("T", 1, 1)
        finished(stats.tick(NOW_MS + minute * 60_000, DAY))
    item = stats.item("TOPIC_PUT_NUMS", "T")
    assert item is not None
    assert item.hour.snapshot().sum == 60
    assert item.day.snapshot().sum == 24 * 60


def test_a_window_needs_two_samples() -> None:
    item = StatsItem()
    assert item.minute.snapshot() == StatsSnapshot()
    item.add(5)
    item.sample(item.minute, 1000)
    assert item.minute.snapshot() == StatsSnapshot()
    item.sample(item.minute, 1000)
    assert item.minute.snapshot() == StatsSnapshot(0, 0.0, 0.0)


def test_totals_are_of_what_is_not_the_broker_s_own(stats: BrokerStats) -> None:
    stats.put("T", 3, 1)
    stats.put("sysT", 5, 1)
    stats.got("g", "T", 2, 1)
    stats.got("g", "sysT", 7, 1)
    assert stats.totals_now() == (3, 2)


def test_totals_of_mornings(stats: BrokerStats) -> None:
    stats.put("T", 3, 1)
    finished(stats.tick(NOW_MS, DAY))
    assert stats.put_mornings == (0, 0)
    finished(stats.tick(NOW_MS, DAY + 1))
    assert stats.put_mornings == (0, 3)
    stats.put("T", 4, 1)
    stats.got("g", "T", 1, 1)
    finished(stats.tick(NOW_MS, DAY + 2))
    assert stats.put_mornings == (3, 7)
    assert stats.get_mornings == (0, 1)


def test_a_deleted_topic_is_counted_anew(stats: BrokerStats) -> None:
    stats.put("T", 3, 1)
    stats.got("g", "T", 3, 1)
    stats.got("g", "TT", 3, 1)
    finished(stats.remove_topic("T"))
    assert stats.item("TOPIC_PUT_NUMS", "T") is None
    assert stats.item("GROUP_GET_NUMS", "T@g") is None
    stats.put("T", 1, 1)
    stats.got("g", "TT", 1, 1)
    assert value_of(stats, "TOPIC_PUT_NUMS", "T") == (1, 1)
    assert value_of(stats, "GROUP_GET_NUMS", "TT@g") == (4, 2)
    assert value_of(stats, "BROKER_PUT_NUMS", "C") == (4, 4)


def test_a_topic_that_goes_costs_what_it_has_whatever_else_there_is(stats: BrokerStats) -> None:
    for number in range(3_000):
        stats.put(f"t{number}", 1, 1)
        stats.got(f"g{number}", "T", 1, 1)
        stats.died(f"g{number}", f"t{number}")
    assert lines_of(lambda: finished(stats.remove_topic("t7"))) < 40
    assert len(stats.dead_letters()) == 2_999
    pauses = sum(1 for _ in stats.remove_topic("T"))
    assert pauses > 300
    for number in range(3_000):
        finished(stats.remove_topic(f"t{number}"))
    assert not stats._keys_of
    assert not stats._groups
    assert len(stats._items) == 2, "those of the broker as a whole"


def test_sizes_are_counted_where_they_are_wanted(stats: BrokerStats) -> None:
    stats.sized("T", [10])
    assert stats.sizes is None
    stats.sizes = {}
    stats.sized("T", [10, 1024, 5_000])
    assert stats.sizes["T"].counts[:3] == [2, 0, 1]
    assert stats.sizes["T"].total == 6_034
    finished(stats.remove_topic("T"))
    assert stats.sizes == {}


def test_dead_letters_are_counted_by_topic_and_group(stats: BrokerStats) -> None:
    for topic in ("T", "T", "U"):
        stats.died("g", topic)
    assert stats.dead_letters() == [("T", "g", 2), ("U", "g", 1)]
    finished(stats.remove_topic("T"))
    assert stats.dead_letters() == [("U", "g", 1)]


def test_light_queues_are_counted_as_one() -> None:
    stats = BrokerStats("c", lambda _: False, 0)
    for name in ("%LMQ%a", "%LMQ%b"):
        stats.got(name, name, 2, 20)
        stats.sent_back(name, name)
    item = stats.item("GROUP_GET_NUMS", "%LMQ%@%LMQ%")
    assert item is not None
    assert item.value == 4
    assert stats.item("SNDBCK_PUT_NUMS", "%LMQ%@%LMQ%") is not None
    assert stats.item("GROUP_GET_NUMS", "%LMQ%a@%LMQ%a") is None
