# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.live.fakes import (
    BORN_MS,
    NAME_SERVER,
    FakeBroker,
    World,
    lost_connection,
    queue,
)
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import PULLED, ResponseCode
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.protocol.offset import GET_MAX_OFFSET, SEARCH_OFFSET_BY_TIMESTAMP
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC
from txrocketmq.remoting.routing.queue_requests import pull_header
from txrocketmq.spark.arrow.errors import ClusterError, OptionError
from txrocketmq.spark.live.wire.cluster import Cluster, header_of
from txrocketmq.spark.live.wire.rpc import Refused, Unreachable

MakeWorld = Callable[..., World]
MASTER, SLAVE = "10.0.1.1:10911", "10.0.1.1:10921"


def two_brokers(world: MakeWorld) -> World:
    a, b = FakeBroker("a"), FakeBroker("b")
    a.fill("t", [3, 0])
    b.fill("t", [5])
    b.fill("u", [1], first=100)
    return world(a, b)


def with_slave(world: MakeWorld) -> World:
    broker = FakeBroker("a", addresses={0: MASTER, 1: SLAVE})
    broker.fill("t", [3])
    return world(broker)


def test_topics_queues_and_clusters(world: MakeWorld) -> None:
    cluster = two_brokers(world).cluster()
    assert cluster.topics() == ["t", "u"]
    assert cluster.read_queues("t") == [queue("t", "a", 0), queue("t", "a", 1), queue("t", "b", 0)]
    assert cluster.read_queues("nowhere") == []
    assert cluster.cluster_of("a") == "C"
    assert cluster.cluster_of("c") is None
    assert cluster.masters("t") == {"a": "10.0.1.1:10911", "b": "10.0.1.2:10911"}
    assert str(cluster) == NAME_SERVER


def test_a_route_is_asked_for_once(world: MakeWorld) -> None:
    made = two_brokers(world)
    cluster = made.cluster()
    cluster.read_queues("t")
    kept = pickle.loads(pickle.dumps(Cluster(NAME_SERVER)))  # noqa: S301 - our own
    assert kept.name_servers == cluster.name_servers
    cluster.read_queues("t")
    assert made.asked[NAME_SERVER, "GET_ROUTEINFO_BY_TOPIC"] == 1
    cluster.read_queues("t", again=True)
    assert made.asked[NAME_SERVER, "GET_ROUTEINFO_BY_TOPIC"] == 2


def test_bounds_of_queues(world: MakeWorld) -> None:
    cluster = two_brokers(world).cluster()
    queues = cluster.read_queues("t") + cluster.read_queues("u")
    assert list(cluster.max_offsets(queues).values()) == [3, 0, 5, 101]
    assert list(cluster.min_offsets(queues).values()) == [0, 0, 0, 100]
    assert cluster.max_offsets([]) == {}


@pytest.mark.parametrize("second", [-5, 0, 0.3, 1, 1.2, 1.9, 2, 3.6, 4, 9])
def test_offsets_by_time_are_exact_though_the_broker_is_not(
    world: MakeWorld, second: float
) -> None:
    cluster = two_brokers(world).cluster()
    where = queue("t", "b", 0)
    cluster.read_queues("t")
    found = cluster.offsets_at([where], BORN_MS + int(1000 * second))
    assert found == {where: next((at for at in range(5) if at >= second), 5)}


def test_the_first_of_messages_of_one_millisecond(world: MakeWorld) -> None:
    made = two_brokers(world)
    messages = made.brokers["b"].queues["t", 0].messages
    for each in messages[1:4]:
        each.store_timestamp = BORN_MS + 2000

    def middle(_address: str, call: Call[Any, Any], header: Any) -> Reply[Any] | None:
        if call is not SEARCH_OFFSET_BY_TIMESTAMP:
            return None
        return Reply(SEARCH_OFFSET_BY_TIMESTAMP.response(offset=2))

    made.fail = middle
    cluster = made.cluster()
    cluster.read_queues("t")
    assert cluster.offsets_at([queue("t", "b", 0)], BORN_MS + 2000) == {queue("t", "b", 0): 1}
    assert cluster.offsets_at([queue("t", "a", 1)], BORN_MS) == {queue("t", "a", 1): 0}


def test_offsets_of_groups(world: MakeWorld) -> None:
    made = two_brokers(world)
    cluster = made.cluster()
    first, _, third = cluster.read_queues("t")
    cluster.commit_offsets("g", {first: 2, third: 4})
    assert made.brokers["a"].group_offsets == {("g", "t", 0): 2}
    assert made.brokers["b"].group_offsets == {("g", "t", 0): 4}


def test_pulls(world: MakeWorld) -> None:
    cluster = two_brokers(world).cluster()
    _, _, where = cluster.read_queues("t")
    pulled = cluster.pull(where, 1, max_messages=2)
    header = header_of(pulled)
    assert (pulled.code, header.next_begin_offset) == (0, 3)
    assert (header.min_offset, header.max_offset) == (0, 5)
    assert b"body 0/1" in pulled.body_bytes
    assert b"body 0/2" in pulled.body_bytes
    assert b"body 0/3" not in pulled.body_bytes
    assert cluster.pull(where, 5).remark == "OFFSET_OVERFLOW_ONE"
    of_tags = pull_header(where, 0, 32, "B || C")
    nothing = cluster.start_pull(of_tags, where.broker_name).wait(PULLED)
    assert (nothing.remark, nothing.body_bytes) == ("NO_MATCHED_MESSAGE", b"")
    assert header_of(nothing).next_begin_offset == 5


def test_the_slave_answers_for_a_master_that_is_away(world: MakeWorld) -> None:
    made = with_slave(world)
    cluster = made.cluster()
    cluster.read_queues("t")
    made.down = {MASTER}
    assert cluster.min_offsets([queue("t", "a", 0)]) == {queue("t", "a", 0): 0}
    assert made.pauses == [0.5]
    with pytest.raises(Unreachable, match=MASTER):
        cluster.commit_offsets("g", {queue("t", "a", 0): 2})
    with pytest.raises(Unreachable, match=MASTER):
        cluster.max_offsets([queue("t", "a", 0)])
    assert made.pauses == [0.5, 0.5, 1, 2, 4, 0.5, 1, 2, 4]


def test_only_what_has_no_answer_is_asked_again(world: MakeWorld) -> None:
    made = two_brokers(world)
    troubles = [lost_connection(), Reply(code=ResponseCode.SYSTEM_BUSY, remark="busy")]

    def fail(address: str, call: Call[Any, Any], header: Any) -> Any:
        return troubles.pop() if call is GET_MAX_OFFSET and address == MASTER and troubles else None

    made.fail = fail
    cluster = made.cluster()
    assert list(cluster.max_offsets(cluster.read_queues("t")).values()) == [5, 3, 0]
    assert made.asked["10.0.1.2:10911", "GET_MAX_OFFSET"] == 1
    assert made.asked[MASTER, "GET_MAX_OFFSET"] == 4
    assert made.asked[NAME_SERVER, "GET_ROUTEINFO_BY_TOPIC"] == 2, "it may have moved"


def test_a_refusal_is_not_asked_again(world: MakeWorld) -> None:
    made = two_brokers(world)
    made.fail = lambda _, call, __: (
        Reply(code=ResponseCode.NO_PERMISSION, remark="no") if call is GET_MAX_OFFSET else None
    )
    cluster = made.cluster()
    with pytest.raises(Refused, match=r"NO_PERMISSION \(16\): no"):
        cluster.max_offsets(cluster.read_queues("t"))
    assert made.pauses == []


def test_a_broker_that_moved_is_found(world: MakeWorld) -> None:
    made = two_brokers(world)
    cluster = made.cluster()
    queues = cluster.read_queues("t")
    made.brokers["a"].addresses = {0: "10.0.1.9:10911"}
    made.down = {MASTER}
    made.fail = lambda address, *_: Unreachable("no connection") if address == MASTER else None
    assert list(cluster.max_offsets(queues).values()) == [5, 3, 0]


def test_name_servers_are_asked_in_turn(world: MakeWorld) -> None:
    made = two_brokers(world)
    made.down = {"10.0.0.8:1"}
    assert Cluster(f"10.0.0.8:1; {NAME_SERVER};", pause=made.pauses.append).topics() == ["t", "u"]
    made.down = {NAME_SERVER}
    with pytest.raises(Unreachable, match=f"no name server is reachable: .*{NAME_SERVER}"):
        made.cluster(attempts=2).topics()
    assert made.pauses == [0.5]


def test_a_name_server_that_is_busy_is_passed_over(world: MakeWorld) -> None:
    made = two_brokers(world)
    busy: Reply[Any] = Reply(code=ResponseCode.SYSTEM_BUSY, remark="overloaded")
    made.fail = lambda address, *_: busy if address == "10.0.0.8:1" else None
    assert Cluster(f"10.0.0.8:1;{NAME_SERVER}", pause=made.pauses.append).topics() == ["t", "u"]
    made.fail = lambda *_: busy
    with pytest.raises(Unreachable, match="no name server is reachable: .*overloaded"):
        made.cluster(attempts=2).topics()
    refusal: Reply[Any] = Reply(code=ResponseCode.NO_PERMISSION, remark="not for you")
    made.fail = lambda *_: refusal
    with pytest.raises(Refused, match="not for you"):
        made.cluster().topics()


@pytest.mark.parametrize("text", ["", " ; ", "host", "a:1;b", "http://h:9876/x"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(OptionError, match="option nameServer=.* is not valid; valid: host:port"):
        Cluster(text)


def test_static_topics_are_refused(world: MakeWorld) -> None:
    made = two_brokers(world)
    static = TopicRouteData(topic_queue_mapping_by_broker={"a": TopicQueueMappingInfo()})
    made.fail = lambda _, call, __: (
        Reply(body=static.encode()) if call is GET_ROUTEINFO_BY_TOPIC else None
    )
    with pytest.raises(ClusterError, match="t is a static topic"):
        made.cluster().read_queues("t")


def test_an_answer_that_is_no_route(world: MakeWorld) -> None:
    made = two_brokers(world)
    made.fail = lambda _, call, __: Reply(body=b"[") if call is GET_ROUTEINFO_BY_TOPIC else None
    with pytest.raises(ClusterError, match="an answer is no TopicRouteData"):
        made.cluster().route("t")


def test_a_broker_that_nobody_knows(world: MakeWorld) -> None:
    with pytest.raises(Unreachable, match="no broker x is registered at 10"):
        two_brokers(world).cluster().max_offsets([queue("t", "x", 0)])
    with pytest.raises(Unreachable, match="broker x has no master now"):
        two_brokers(world).cluster().master("x")
