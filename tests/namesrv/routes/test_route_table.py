# SPDX-License-Identifier: Apache-2.0
"""Who registers, who leaves, and what routes say of it; 4.9 brokers and 5.x ones."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import lines_of
from tests.fakes import NOW_MS
from tests.namesrv.conftest import addresses, kinds, perms, registration, table_with, topics
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.namesrv.routes.brokers import BROKER_EXPIRED_MS, MAX_ADDRESSES
from txrocketmq.namesrv.routes.registration import Registered
from txrocketmq.namesrv.routes.route_events import (
    BrokerJoined,
    BrokerLeft,
    RegistrationIgnored,
    TwoOfOneId,
)
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.remoting.protocol.body.route import QueueData
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo


@pytest.fixture
def table() -> RouteTable:
    return table_with()


# ------------------------------------------------------------------------------- registrations


def test_a_master_is_found_by_its_topics(table: RouteTable) -> None:
    assert table.register(registration(), "channel", NOW_MS) == Registered()
    route = table.route("T1")
    assert route is not None
    assert route.to_json() == {
        "brokerDatas": [
            {
                "brokerAddrs": {0: "10.0.0.1:10911"},
                "brokerName": "broker-a",
                "cluster": "c1",
                "enableActingMaster": False,
            }
        ],
        "filterServerTable": {},
        "queueDatas": [
            {
                "brokerName": "broker-a",
                "perm": 6,
                "readQueueNums": 4,
                "topicSysFlag": 0,
                "writeQueueNums": 4,
            }
        ],
    }
    assert table.route("T3") is None
    assert [str(event) for event in table.take_events()] == [
        "broker broker-a (0) of c1 at 10.0.0.1:10911 joined with 2 topics"
    ]


def test_registering_again_is_no_news(table: RouteTable) -> None:
    table.register(registration(), "channel", NOW_MS)
    table.register(registration(counter=2), "channel", NOW_MS)
    assert kinds(table) == [BrokerJoined]


def test_two_of_one_name_and_id_are_told_of_while_both_live(table: RouteTable) -> None:
    table.register(registration(), "a", NOW_MS)
    table.register(registration(port=20911), "b", NOW_MS)
    events = table.take_events()
    (two,) = [event for event in events if isinstance(event, TwoOfOneId)]
    assert "10.0.0.1:20911 and 10.0.0.1:10911" in str(two)
    table.register(registration(), "a", NOW_MS)
    assert kinds(table) == [TwoOfOneId], "the first one registers again: both still live"
    table.unregister("c1", "broker-a", "10.0.0.1:10911")
    table.take_events()
    table.register(registration(port=20911), "b", NOW_MS)
    assert TwoOfOneId not in kinds(table)


def test_a_slave_beside_its_master_is_not_another_of_its_id(table: RouteTable) -> None:
    table.register(registration(), "m", NOW_MS)
    table.register(registration(1, port=20911), "s", NOW_MS)
    assert TwoOfOneId not in kinds(table)


def test_two_brokers_share_a_topic(table: RouteTable) -> None:
    table.register(registration(), "a", NOW_MS)
    table.register(registration(name="broker-b", port=20911), "b", NOW_MS)
    assert perms(table) == {"broker-a": 6, "broker-b": 6}
    assert table.cluster_info().to_json()["clusterAddrTable"] == {"c1": ["broker-a", "broker-b"]}


def test_a_slave_is_told_its_master(table: RouteTable) -> None:
    assert table.register(registration(1, port=20911), "s", NOW_MS) == Registered()
    table.register(registration(), "m", NOW_MS)
    told = table.register(registration(1, port=20911), "s", NOW_MS)
    assert told == Registered(master_address="10.0.0.1:10911", ha_address="10.0.0.1:10912")
    assert addresses(table) == {0: "10.0.0.1:10911", 1: "10.0.0.1:20911"}


def test_a_slave_of_4_9_registers_no_topics(table: RouteTable) -> None:
    table.register(registration(1), "s", NOW_MS)
    assert table.route("T1") is None
    assert table.member_group("c1", "broker-a").broker_addrs == {1: "10.0.0.1:10911"}


def test_the_first_slave_of_5_x_registers_topics(table: RouteTable) -> None:
    table.register(registration(2, port=20911, acting_master=False), "s2", NOW_MS)
    table.register(
        registration(3, port=30911, acting_master=False, having=topics("T3", "T4")), "s3", NOW_MS
    )
    assert perms(table) == {"broker-a": 6}
    assert table.route("T3") is None


def test_a_slave_that_becomes_master_has_one_id(table: RouteTable) -> None:
    table.register(registration(1), "s", NOW_MS)
    table.register(registration(0), "s", NOW_MS)
    assert addresses(table) == {0: "10.0.0.1:10911"}


def test_a_single_topic_of_an_unknown_broker_is_refused_and_leaves_no_trace(
    table: RouteTable,
) -> None:
    assert table.register(registration(having=topics("T1")), "c", NOW_MS) is None
    assert table.cluster_info().to_json() == {"brokerAddrTable": {}, "clusterAddrTable": {}}
    assert table.data_version("c1", "10.0.0.1:10911") is None
    assert table.topics().topic_list == ()
    assert kinds(table) == []


def test_a_single_topic_of_a_known_broker_is_added(table: RouteTable) -> None:
    table.register(registration(), "c", NOW_MS)
    assert table.register(registration(counter=2, having=topics("T3")), "c", NOW_MS) is not None
    assert set(table.topics().topic_list) == {"T1", "T2", "T3"}


def test_topics_count_only_when_the_data_version_differs(table: RouteTable) -> None:
    table.register(registration(), "c", NOW_MS)
    table.register(registration(having=topics("T1", "T2", perm=4)), "c", NOW_MS)
    assert perms(table) == {"broker-a": 6}
    table.register(registration(counter=2, having=topics("T1", "T2", perm=4)), "c", NOW_MS)
    assert perms(table) == {"broker-a": 4}


def test_a_topic_that_was_deleted_here_comes_back_with_the_same_version(table: RouteTable) -> None:
    table.register(registration(), "c", NOW_MS)
    table.delete_topic("T1")
    table.register(registration(), "c", NOW_MS)
    assert perms(table) == {"broker-a": 6}


@pytest.mark.parametrize(("deletes", "left"), [(False, {"T1", "T2", "T3"}), (True, {"T1", "T3"})])
def test_topics_that_are_no_longer_registered(deletes: bool, left: set[str]) -> None:
    table = table_with(delete_topic_with_broker_registration=deletes)
    table.register(registration(), "c", NOW_MS)
    table.register(registration(counter=2, having=topics("T1", "T3")), "c", NOW_MS)
    assert set(table.topics().topic_list) == left


def test_a_broker_with_an_older_term_is_ignored(table: RouteTable) -> None:
    table.register(registration(state_version=5), "new", NOW_MS)
    table.take_events()
    answer = table.register(registration(port=20911, state_version=4), "old", NOW_MS)
    assert answer == Registered()
    assert addresses(table) == {0: "10.0.0.1:10911"}
    assert kinds(table) == [RegistrationIgnored]
    table.register(registration(port=20911, state_version=6), "newer", NOW_MS)
    assert addresses(table) == {0: "10.0.0.1:20911"}


def test_a_slave_that_claims_the_id_of_a_later_master_leaves_its_own(table: RouteTable) -> None:
    table.register(registration(1, port=20911), "old", NOW_MS)
    table.register(registration(state_version=5), "new", NOW_MS)
    table.take_events()
    table.register(registration(port=20911, state_version=4), "old", NOW_MS)
    assert addresses(table) == {0: "10.0.0.1:10911"}
    assert kinds(table) == [BrokerLeft, RegistrationIgnored]


def test_filter_servers_are_of_a_broker_address(table: RouteTable) -> None:
    table.register(registration(filter_servers=["10.0.0.1:5000"]), "c", NOW_MS)
    route = table.route("T1")
    assert route is not None
    assert route.filter_server_table == {"10.0.0.1:10911": ["10.0.0.1:5000"]}
    table.register(registration(filter_servers=None), "c", NOW_MS)
    route = table.route("T1")
    assert route is not None
    assert route.filter_server_table
    table.register(registration(filter_servers=[]), "c", NOW_MS)
    route = table.route("T1")
    assert route is not None
    assert not route.filter_server_table


def test_queue_mappings_of_static_topics(table: RouteTable) -> None:
    mapping = TopicQueueMappingInfo(topic="T1", total_queues=4, bname="broker-a", epoch=7)
    table.register(registration(queue_mappings={"T1": mapping}), "c", NOW_MS)
    route = table.route("T1")
    assert route is not None
    assert route.topic_queue_mapping_by_broker == {"broker-a": mapping}


def test_an_address_that_registers_under_another_name_leaves_the_first(table: RouteTable) -> None:
    table.register(registration(), "c", NOW_MS)
    table.register(registration(name="broker-b"), "d", NOW_MS)
    assert perms(table) == {"broker-b": 6}
    assert list(table.cluster_info().broker_addr_table) == ["broker-b"]
    assert kinds(table) == [BrokerJoined, BrokerLeft, BrokerJoined]


# ------------------------------------------------------------------------------------ liveness


def test_silent_brokers_expire_after_two_minutes(table: RouteTable) -> None:
    table.register(registration(), "c", NOW_MS)
    assert table.expire(NOW_MS + BROKER_EXPIRED_MS) == []
    table.seen("c1", "10.0.0.1:10911", NOW_MS + 1)
    assert table.expire(NOW_MS + BROKER_EXPIRED_MS + 1) == []
    (gone,) = table.expire(NOW_MS + BROKER_EXPIRED_MS + 2)
    assert gone.channel == "c"
    assert table.route("T1") is None
    assert table.topics().topic_list == ()
    assert [str(event) for event in table.take_events()][1:] == [
        "broker broker-a of c1 at 10.0.0.1:10911 left: it was silent for 120000 ms"
    ]


def test_a_broker_may_say_how_long_it_is_silent(table: RouteTable) -> None:
    table.register(registration(heartbeat_timeout_ms=3_000), "c", NOW_MS)
    assert table.expire(NOW_MS + 3_000) == []
    assert len(table.expire(NOW_MS + 3_001)) == 1


def test_a_sign_of_life_of_an_unknown_broker_is_nothing(table: RouteTable) -> None:
    table.seen("c1", "10.0.0.1:10911", NOW_MS)
    assert table.data_version("c1", "10.0.0.1:10911") is None


def test_a_closed_channel_takes_its_brokers_along(table: RouteTable) -> None:
    table.register(registration(), "one", NOW_MS)
    table.register(registration(name="broker-b", port=20911), "one", NOW_MS)
    table.register(registration(name="broker-c", port=30911), "two", NOW_MS)
    table.channel_closed("one")
    assert perms(table) == {"broker-c": 6}
    assert kinds(table) == [BrokerJoined] * 3 + [BrokerLeft] * 2


def test_the_end_of_an_old_channel_does_not_touch_a_broker_that_is_back(table: RouteTable) -> None:
    table.register(registration(), "old", NOW_MS)
    table.register(registration(), "new", NOW_MS)
    table.channel_closed("old")
    assert perms(table) == {"broker-a": 6}


def test_unregistering_the_master_leaves_the_slave_and_the_topics(table: RouteTable) -> None:
    table.register(registration(), "m", NOW_MS)
    table.register(registration(1, port=20911), "s", NOW_MS)
    table.unregister("c1", "broker-a", "10.0.0.1:10911")
    assert addresses(table) == {1: "10.0.0.1:20911"}
    assert perms(table) == {"broker-a": 6}
    table.unregister("c1", "broker-a", "10.0.0.1:20911")
    assert table.cluster_info().to_json() == {"brokerAddrTable": {}, "clusterAddrTable": {}}
    assert table.topics().topic_list == ()


def test_unregistering_what_is_not_there_is_nothing(table: RouteTable) -> None:
    table.register(registration(), "m", NOW_MS)
    table.unregister("c1", "broker-z", "10.0.0.1:10911x")
    table.unregister("c1", "broker-a", "10.0.0.9:10911")
    assert addresses(table) == {0: "10.0.0.1:10911"}


def test_the_cluster_goes_with_its_last_broker(table: RouteTable) -> None:
    table.register(registration(), "a", NOW_MS)
    table.register(registration(name="broker-b", port=20911, cluster="c2"), "b", NOW_MS)
    table.channel_closed("b")
    assert list(table.cluster_info().cluster_addr_table) == ["c1"]


# -------------------------------------------------------------------------------------- topics


def test_write_permission_is_taken_and_given_in_memory(table: RouteTable) -> None:
    table.register(registration(having=topics("T1", "T2", perm=7)), "c", NOW_MS)
    table.register(registration(name="broker-b", port=20911), "d", NOW_MS)
    assert finished(table.wipe_write_perm("broker-a")) == 2
    assert perms(table) == {"broker-a": 5, "broker-b": 6}
    table.register(registration(having=topics("T1", "T2", perm=7)), "c", NOW_MS)
    assert perms(table)["broker-a"] == 5, "an unchanged registration does not undo it"
    assert finished(table.add_write_perm("broker-a")) == 2
    assert perms(table)["broker-a"] == 6
    assert finished(table.wipe_write_perm("nobody")) == 0


def test_deleting_a_topic_everywhere_or_in_a_cluster(table: RouteTable) -> None:
    table.register(registration(), "a", NOW_MS)
    table.register(registration(name="broker-b", port=20911, cluster="c2"), "b", NOW_MS)
    table.delete_topic("T1", "c2")
    assert perms(table) == {"broker-a": 6}
    table.delete_topic("T1", "c1")
    table.delete_topic("T2")
    table.delete_topic("T2", "no such cluster")
    assert table.topics().topic_list == ()


def test_registering_one_topic(table: RouteTable) -> None:
    table.register(registration(), "a", NOW_MS)
    queue = QueueData(broker_name="broker-a", read_queue_nums=1, write_queue_nums=1, perm=6)
    table.register_topic("T9", [queue])
    assert perms(table, "T9") == {"broker-a": 6}
    table.register_topic("T8", [queue, QueueData(broker_name="unknown")])
    table.register_topic("T7", [])
    assert table.route("T8") is None
    assert table.route("T7") is None


def test_lists_of_topics(table: RouteTable) -> None:
    having = topics("T1", "T2") | topics("U1", sys_flag=1) | topics("S1", sys_flag=2)
    table.register(registration(having=having), "a", NOW_MS)
    table.register(registration(name="broker-b", port=20911, cluster="c2"), "b", NOW_MS)
    assert set(table.topics().topic_list) == {"T1", "T2", "U1", "S1"}
    assert set(chain(*table.topics_in_turns())) == {"T1", "T2", "U1", "S1"}
    assert [*table.topics_in_turns(lambda queues: "broker-b" in queues)] == [["T1", "T2"]]
    assert table.broker_names("c2") == {"broker-b"}
    assert table.broker_names("c3") == set()
    address, names = table.system_topics_in_turns()
    assert list(chain(*names)) == ["c1", "broker-a", "c2", "broker-b"]
    assert address == "10.0.0.1:10911"


def test_a_connection_with_many_brokers_ends_in_steps(table: RouteTable) -> None:
    for number in range(1_000):
        table.register(registration(name=f"b{number}", port=number), "a", NOW_MS)
    table.register(registration(name="other", port=2_000), "b", NOW_MS)
    assert lines_of(lambda: table.channel_closed("a")) < 1_000
    table.register(registration(name="b999", port=999, counter=2), "c", NOW_MS)
    steps = iter(table.cleaning())
    while table.is_to_clean:
        assert lines_of(lambda: next(steps, None)) < 150
    assert table.live_brokers == 2
    route = table.route("T1")
    assert route is not None
    assert {each.broker_name for each in route.broker_datas} == {"b999", "other"}
    table.channel_closed("c")
    assert table.live_brokers == 1


def test_silent_brokers_are_looked_for_in_steps(table: RouteTable) -> None:
    for number in range(1_000):
        table.register(registration(name=f"b{number}", port=number), number, NOW_MS)
    steps = table.expiring(NOW_MS)
    assert lines_of(lambda: next(steps)) < 600
    assert not table.expire(NOW_MS)
    assert len(table.expire(NOW_MS + BROKER_EXPIRED_MS + 1)) == 1_000


def test_a_name_has_a_limited_number_of_addresses(table: RouteTable) -> None:
    for number in range(MAX_ADDRESSES):
        assert table.register(registration(number, port=number), number, NOW_MS) is not None
    assert table.register(registration(5_000, port=5_000), "new", NOW_MS) is None
    assert table.register(registration(7, port=7), 7, NOW_MS) is not None
    assert len(table.member_group("c1", "broker-a").broker_addrs) == MAX_ADDRESSES


def test_without_brokers_there_is_nobody_to_ask(table: RouteTable) -> None:
    address, names = table.system_topics_in_turns()
    assert (address, list(names)) == (None, [])


# ---------------------------------------------------------------------------------- invariants

brokers = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"]), st.sampled_from([1, 2, 3]))
steps = st.one_of(
    st.tuples(
        st.just("register"), brokers, st.integers(0, 2), st.sampled_from([None, True, False])
    ),
    st.tuples(st.just("close"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("unregister"), brokers),
    st.tuples(st.just("delete"), st.sampled_from(["T1", "T2"])),
    st.tuples(st.just("expire"), st.integers(0, 300_000)),
)


@given(st.lists(steps, max_size=30))
def test_the_table_holds_together(script: list[tuple[object, ...]]) -> None:
    table = table_with(support_acting_master=True)
    for step in script:
        _take(table, step)
        info = table.cluster_info()
        named = {name for names in info.cluster_addr_table.values() for name in names}
        assert named == set(info.broker_addr_table)
        assert all(info.cluster_addr_table.values())
        for broker in info.broker_addr_table.values():
            assert broker.broker_addrs
            assert len(set(broker.broker_addrs.values())) == len(broker.broker_addrs)
        for topic in table.topics().topic_list:
            route = table.route(topic)
            assert route is not None
            assert {q.broker_name for q in route.queue_datas} <= named
    table.expire(NOW_MS + 10**9)
    assert table.cluster_info().to_json() == {"brokerAddrTable": {}, "clusterAddrTable": {}}
    assert table.topics().topic_list == ()


def _take(table: RouteTable, step: tuple[object, ...]) -> None:
    match step:
        case ("register", (int(broker_id), str(name), int(port)), int(counter), acting_master):
            assert acting_master is None or isinstance(acting_master, bool)
            it = registration(
                broker_id,
                name=name,
                cluster=f"c-{name}",
                port=port,
                counter=counter,
                state_version=counter,
                acting_master=acting_master,
            )
            table.register(it, port, NOW_MS)
        case ("close", channel):
            table.channel_closed(channel)
        case ("unregister", (_, str(name), int(port))):
            table.unregister(f"c-{name}", name, f"10.0.0.1:{port}")
        case ("delete", str(topic)):
            table.delete_topic(topic)
        case ("expire", int(after_ms)):
            table.expire(NOW_MS + after_ms)
        case _:
            raise AssertionError(step)


_BROKERS = st.sampled_from(["x", "y", "z"])
_NAMES = st.sampled_from(["T1", "T2", "T3", "T4"])
_CHANGES = st.one_of(
    st.tuples(st.just("register"), _BROKERS, st.sets(_NAMES, min_size=2)),
    st.tuples(st.just("topic"), _BROKERS, _NAMES),
    st.tuples(st.just("delete"), st.sampled_from([None, "c1"]), _NAMES),
    st.tuples(st.just("leave"), _BROKERS, st.none()),
)


@given(st.lists(_CHANGES, max_size=30), st.booleans())
def test_topics_and_brokers_always_agree(
    changes: list[tuple[str, Any, Any]], deletes: bool
) -> None:
    table = table_with(delete_topic_with_broker_registration=deletes)
    for count, (what, one, other) in enumerate(changes):
        port = 10911 + "xyz".find(one or "x")
        if what == "register":
            its = registration(name=one, port=port, having=topics(*other), counter=count)
            table.register(its, one, NOW_MS)
        elif what == "topic":
            table.register_topic(other, [QueueData(broker_name=one)])
        elif what == "delete":
            table.delete_topic(other, one)
        else:
            table.unregister("c1", one, f"10.0.0.1:{port}")
        listed = set(table.topics().topic_list)
        found = {topic: table.route(topic) for topic in ("T1", "T2", "T3", "T4")}
        assert listed == {topic for topic, route in found.items() if route is not None}
        for route in filter(None, found.values()):
            assert {queue.broker_name for queue in route.queue_datas} == {
                broker.broker_name for broker in route.broker_datas
            }
            assert {queue.broker_name for queue in route.queue_datas} <= table._brokers.keys()
        if count % 3 == 0:
            finished(table.cleaning())
            assert table.topic_count == len(listed)
    assert {each: set(its) for each, its in table._clusters_of.items()} == {
        name: {"c1"} for name in table._brokers
    }
    assert {key for keys in table._of_channel.values() for key in keys} == table._live.keys()
