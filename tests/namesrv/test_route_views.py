# SPDX-License-Identifier: Apache-2.0
"""How routes are bent: slaves that act as masters (5.x), zones. Mirrors part of route_table.py."""

from __future__ import annotations

from tests.fakes import NOW_MS
from tests.namesrv.conftest import addresses, kinds, perms, registration, table_with, topics
from txrocketmq.namesrv.route_events import BrokerJoined, BrokerLeft, MinIdChanged
from txrocketmq.namesrv.route_table import RouteTable, without_other_zones

# ------------------------------------------------------------------- acting masters, smallest id


def acting(supported: bool = True) -> RouteTable:
    """Master and two slaves of 5.x with enableActingMaster; the master is gone."""
    table = table_with(support_acting_master=supported)
    table.register(registration(acting_master=True), "m", NOW_MS)
    for broker_id, port in ((1, 20911), (2, 30911)):
        table.register(registration(broker_id, port=port, acting_master=True), port, NOW_MS)
    table.take_events()
    table.channel_closed("m")
    return table


def test_the_smallest_slave_acts_as_master_and_cannot_be_written() -> None:
    table = acting()
    assert perms(table) == {"broker-a": 4}
    assert addresses(table) == {0: "10.0.0.1:20911", 2: "10.0.0.1:30911"}
    assert table.member_group("c1", "broker-a").broker_addrs == {
        1: "10.0.0.1:20911",
        2: "10.0.0.1:30911",
    }


def test_nobody_acts_unless_it_is_supported() -> None:
    table = acting(supported=False)
    assert addresses(table) == {1: "10.0.0.1:20911", 2: "10.0.0.1:30911"}


def test_nobody_acts_for_brokers_that_do_not_want_it() -> None:
    table = table_with(support_acting_master=True)
    table.register(registration(acting_master=False), "m", NOW_MS)
    table.register(registration(1, port=20911, acting_master=False), "s", NOW_MS)
    table.channel_closed("m")
    assert perms(table) == {"broker-a": 6}
    assert addresses(table) == {1: "10.0.0.1:20911"}


def test_routes_of_member_groups_show_the_slave_as_it_is() -> None:
    table = table_with(support_acting_master=True)
    having = topics("rmq_sys_SYNC_BROKER_MEMBER_broker-a", "T1", perm=4)
    table.register(registration(1, acting_master=True, having=having), "s", NOW_MS)
    assert addresses(table) == {0: "10.0.0.1:10911"}
    assert addresses(table, "rmq_sys_SYNC_BROKER_MEMBER_broker-a") == {1: "10.0.0.1:10911"}


def test_the_topics_of_an_acting_master_are_registered_read_only() -> None:
    table = table_with(support_acting_master=True)
    table.register(registration(1, acting_master=True), "s", NOW_MS)
    assert perms(table) == {"broker-a": 4}


def test_those_who_remain_are_told_of_the_new_smallest_id() -> None:
    (left, changed) = acting().take_events()
    assert isinstance(left, BrokerLeft)
    assert changed == MinIdChanged(
        broker_name="broker-a",
        min_id=1,
        min_address="10.0.0.1:20911",
        offline_address="10.0.0.1:10911",
        ha_address=None,
        told=("10.0.0.1:20911", "10.0.0.1:30911"),
    )


def test_a_slave_that_leaves_changes_no_smallest_id() -> None:
    table = acting()
    table.take_events()
    table.channel_closed(30911)
    assert kinds(table) == [BrokerLeft]


def test_the_others_are_told_of_a_master_that_comes_back() -> None:
    table = acting()
    table.take_events()
    table.register(registration(acting_master=True), "m", NOW_MS)
    (joined, changed) = table.take_events()
    assert isinstance(joined, BrokerJoined)
    assert changed == MinIdChanged(
        broker_name="broker-a",
        min_id=0,
        min_address="10.0.0.1:10911",
        offline_address=None,
        ha_address="10.0.0.1:10912",
        told=("10.0.0.1:20911", "10.0.0.1:30911"),
    )
    assert perms(table) == {"broker-a": 6}


# --------------------------------------------------------------------------------------- zones


def zones() -> RouteTable:
    table = table_with()
    table.register(registration(zone="North", filter_servers=["f1"]), "a", NOW_MS)
    table.register(
        registration(name="broker-b", port=20911, zone="south", filter_servers=["f2"]), "b", NOW_MS
    )
    table.register(registration(name="broker-c", port=30911), "c", NOW_MS)
    return table


def test_a_zone_leaves_out_masters_elsewhere() -> None:
    route = zones().route("T1")
    assert route is not None
    near = without_other_zones(route, "north")
    assert [broker.broker_name for broker in near.broker_datas] == ["broker-a"]
    assert [queue.broker_name for queue in near.queue_datas] == ["broker-a"]
    assert near.filter_server_table == {"10.0.0.1:10911": ["f1"]}


def test_a_zone_keeps_brokers_without_master() -> None:
    table = zones()
    table.register(registration(1, name="broker-b", port=40911, zone="south"), "b1", NOW_MS)
    table.channel_closed("b")
    route = table.route("T1")
    assert route is not None
    near = without_other_zones(route, "north")
    assert {broker.broker_name for broker in near.broker_datas} == {"broker-a", "broker-b"}
