# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.counted import lines_of
from tests.fakes import NOW_MS
from tests.namesrv.conftest import addresses, kinds, perms, registration, table_with, topics
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.namesrv.routes.route_events import BrokerJoined, BrokerLeft, MinIdChanged
from txrocketmq.namesrv.routes.route_table import RouteTable, taken
from txrocketmq.namesrv.routes.route_view import encoded_route
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.serialize.json import encode_body, encode_standard_body

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


def test_a_master_that_goes_is_missed_at_once_however_many_topics_there_are() -> None:
    having = topics(*(f"t{number}" for number in range(1_000)))
    table = table_with(support_acting_master=True)
    for broker_id, port in ((0, 10911), (1, 20911)):
        its = registration(broker_id, port=port, acting_master=True, having=having)
        table.register(its, port, NOW_MS)
    assert lines_of(lambda: table.channel_closed(10911)) < 100
    for _ in range(2):
        assert perms(table, "t999") == {"broker-a": 4}
        assert addresses(table, "t999") == {0: "10.0.0.1:20911"}
        finished(table.cleaning())
    table.register(registration(0, acting_master=True, having=having), "m", NOW_MS)
    assert perms(table, "t999") == {"broker-a": 6}
    assert not table.is_to_clean


# --------------------------------------------------------------------------------------- zones


def zones() -> RouteTable:
    table = table_with()
    table.register(registration(zone="North", filter_servers=["f1"]), "a", NOW_MS)
    table.register(
        registration(name="broker-b", port=20911, zone="south", filter_servers=["f2"]), "b", NOW_MS
    )
    table.register(registration(name="broker-c", port=30911), "c", NOW_MS)
    return table


def route_in(table: RouteTable, zone: str) -> TopicRouteData:
    view = table.view("T1")
    assert view is not None
    return taken(view.route(zone))


def test_a_zone_leaves_out_masters_elsewhere() -> None:
    near = route_in(zones(), "north")
    assert [broker.broker_name for broker in near.broker_datas] == ["broker-a"]
    assert [queue.broker_name for queue in near.queue_datas] == ["broker-a"]
    assert near.filter_server_table == {"10.0.0.1:10911": ["f1"]}


def test_a_zone_keeps_brokers_without_master() -> None:
    table = zones()
    table.register(registration(1, name="broker-b", port=40911, zone="south"), "b1", NOW_MS)
    table.channel_closed("b")
    near = route_in(table, "north")
    assert {broker.broker_name for broker in near.broker_datas} == {"broker-a", "broker-b"}


# ------------------------------------------------------------------------------------- one moment


def test_a_view_stays_as_it_was_while_brokers_change() -> None:
    table = zones()
    view, clusters = table.view("T1"), table.cluster_view()
    assert view is not None
    before, info = table.route("T1"), table.cluster_info()
    steps = view.route()
    table.channel_closed("a")
    table.register(registration(1, name="broker-b", port=40911), "b1", NOW_MS)
    table.register(registration(name="broker-d", port=50911), "d", NOW_MS)
    table.delete_topic("T1")
    assert taken(steps) == before
    assert b"".join(taken(clusters.encoded())) == info.encode()
    assert b"".join(taken(table.cluster_view().encoded())) == table.cluster_info().encode()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 40))))
def test_what_is_encoded_in_steps_is_the_same(brokers: list[tuple[str, int, int]]) -> None:
    table = table_with()
    for cluster, number, broker_id in brokers:
        its = registration(
            broker_id, name=f"b{number}", cluster=cluster, port=100 * number + broker_id
        )
        table.register(its, number, NOW_MS)
    assert b"".join(taken(table.cluster_view().encoded())) == table.cluster_info().encode()
    route = table.route("T1")
    if route is not None:
        assert b"".join(taken(encoded_route(route, encode_body))) == route.encode()
        standard = b"".join(taken(encoded_route(route, encode_standard_body)))
        assert standard == route.encode_standard()
