# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.fakes import Asked, FakeConnections
from txrocketmq.broker.cluster import outer_api
from txrocketmq.broker.cluster.outer_api import Identity, NameServers, TopicTable
from txrocketmq.broker.work.in_thread import Done, InThread, at_once
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.errors import ConnectError, RequestTimeout
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol import topic as topic_calls
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    KVTable,
    QueueData,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.route import (
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.protocol.topic import RegisterTopicRequestHeader
from txrocketmq.remoting.transport.client import Connections

TOPICS = {"T": TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4)}
VERSION = DataVersion(timestamp=5, counter=2)
REGISTERED: Reply[Any] = Reply(RegisterBrokerResponseHeader())


class Scene:
    """Name servers "a:1" and "b:2", as a broker sees them."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.connections = FakeConnections()
        self.table = TopicTable(TOPICS, VERSION, 6)
        self.in_thread: InThread = at_once
        self.order_topics: list[set[str]] = []
        self.servers = NameServers(
            cast("Connections", self.connections),
            Identity("C", "broker-a", 0, "10.0.0.1:10911", "10.0.0.1:10912"),
            lambda: 24_000,
            lambda: self.table,
            self.order_topics.append,
            self._run,
            lambda: self.now_ms,
        )
        self.servers.set_addresses(" a:1 ; b:2;")

    def register(self, *, force: bool = True) -> list[Asked]:
        self.servers.register(force=force)
        return self.connections.take()

    def _run(self, work: Callable[[], None], done: Done) -> None:
        self.in_thread(work, done)

    def register_at(self, version: int) -> None:
        """Registers with name servers that answer as those of this version."""
        for each in self.register():
            each.pending.resolve(Reply(RegisterBrokerResponseHeader(), version=version))

    def register_topics(self, *topics: TopicConfig) -> list[Asked]:
        self.servers.register_topics(topics)
        return self.connections.take()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_every_name_server_is_told_everything(scene: Scene) -> None:
    asked = scene.register()
    assert [each.address for each in asked] == ["a:1", "b:2"]
    assert scene.connections.timeouts_ms == [24_000, 24_000]
    for each in asked:
        assert each.call is route.REGISTER_BROKER
        assert each.header == RegisterBrokerRequestHeader(
            broker_name="broker-a",
            broker_addr="10.0.0.1:10911",
            cluster_name="C",
            ha_server_addr="10.0.0.1:10912",
            broker_id=0,
            enable_acting_master=False,
            body_crc32=body_crc(each.body),
        )
        wrapper = RegisterBrokerBody.decode(each.body).topic_config_serialize_wrapper
        assert wrapper.topic_config_table == TOPICS
        assert wrapper.data_version == VERSION


def test_the_text_of_a_registration_is_what_its_class_writes(scene: Scene) -> None:
    topics = {
        "b": TopicConfig(topic_name="b", attributes={"message.type": "FIFO"}),
        "a": TopicConfig(topic_name="a", order=True, perm=7),
    }
    for each in (topics, {**topics, "b": TopicConfig(topic_name="b")}, {}):
        scene.table = TopicTable(each, VERSION, 6)
        expected = RegisterBrokerBody(
            topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
                topic_config_table=dict(sorted(each.items())), data_version=VERSION
            )
        )
        assert scene.register()[0].body == expected.encode()


def test_name_servers_are_told_no_more_than_the_broker_permits(scene: Scene) -> None:
    def told() -> int:
        wrapper = RegisterBrokerBody.decode(scene.register()[0].body).topic_config_serialize_wrapper
        return wrapper.topic_config_table["T"].perm

    assert told() == 6
    scene.table = scene.table._replace(permission=4)
    assert told() == 4
    scene.table = scene.table._replace(permission=6)
    assert told() == 6


def _wrapper(asked: Asked) -> TopicConfigAndMappingSerializeWrapper:
    return RegisterBrokerBody.decode(asked.body).topic_config_serialize_wrapper


@pytest.mark.parametrize("is_split", [True, False])
def test_a_long_registration_goes_in_parts_that_are_all_news(
    scene: Scene, is_split: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_split:
        monkeypatch.setattr(outer_api, "MAX_BODY_BYTES", 700)
    scene.servers.set_addresses("a:1")
    topics = {f"t{number}": TopicConfig(topic_name=f"t{number}") for number in range(7)}
    scene.table = TopicTable(topics, VERSION, 6, part_size=3, is_split=is_split)
    found: dict[str, TopicConfig] = {}
    versions = []
    asked = scene.register()
    while asked:
        (part,) = asked
        if len(found) < 6:
            assert not scene.register_topics(NEW), "it would be told before what is older"
        assert len(_wrapper(part).topic_config_table) <= 3
        found |= _wrapper(part).topic_config_table
        versions.append(_wrapper(part).data_version)
        part.pending.resolve(Reply(RegisterBrokerResponseHeader(), version=MQVersion.V5_4_0))
        asked = scene.connections.take()
        if len(versions) == 3:
            break
    assert found == topics
    assert versions[-1] == VERSION
    assert len(set(versions)) == 3
    assert len(asked) == 1, "what changed meanwhile"
    assert scene.servers.is_registered


def test_a_newer_registration_waits_for_the_parts_of_the_older(scene: Scene) -> None:
    scene.servers.set_addresses("a:1")
    topics = {f"t{number}": TopicConfig(topic_name=f"t{number}") for number in range(4)}
    scene.table = TopicTable(topics, VERSION, 6, part_size=2, is_split=True)
    (first,) = scene.register()
    scene.table = TopicTable(TOPICS, VERSION.next(6), 6, part_size=2, is_split=True)
    assert not scene.register()
    first.pending.resolve(REGISTERED)
    (second,) = scene.connections.take()
    assert _wrapper(second).data_version == VERSION
    second.pending.resolve(REGISTERED)
    (new,) = scene.connections.take()
    assert _wrapper(new).topic_config_table == TOPICS


def test_parts_end_where_one_is_refused(scene: Scene) -> None:
    scene.servers.set_addresses("a:1")
    topics = {f"t{number}": TopicConfig(topic_name=f"t{number}") for number in range(4)}
    scene.table = TopicTable(topics, VERSION, 6, part_size=2, is_split=True)
    (first,) = scene.register()
    first.pending.resolve(Reply(code=ResponseCode.SYSTEM_ERROR, remark="no"))
    assert not scene.connections.take()
    assert not scene.servers.is_registered
    scene.now_ms = 1_000
    scene.servers.tick()
    (again,) = scene.connections.take()
    assert again.body == first.body, "it begins anew"


NEW = TopicConfig(topic_name="N", read_queue_nums=3, write_queue_nums=2, topic_sys_flag=1)


def test_a_name_server_of_5_x_is_told_a_new_topic_alone(scene: Scene) -> None:
    scene.register_at(MQVersion.V5_4_0)
    scene.table = scene.table._replace(permission=4)
    asked = scene.register_topics(NEW)
    assert [each.address for each in asked] == ["a:1", "b:2"]
    for each in asked:
        assert each.call is topic_calls.REGISTER_TOPIC_IN_NAMESRV
        assert each.header == RegisterTopicRequestHeader(topic="N")
        assert TopicRouteData.decode(each.body).queue_datas == (
            QueueData(
                broker_name="broker-a",
                read_queue_nums=3,
                write_queue_nums=2,
                perm=4,
                topic_sys_flag=1,
            ),
        )
        each.pending.resolve(Reply())
    assert scene.connections.take() == []


@pytest.mark.parametrize("version", [MQVersion.V4_9_7, None])
def test_one_of_4_9_or_that_knows_nothing_yet_is_told_everything(
    scene: Scene, version: MQVersion | None
) -> None:
    if version is not None:
        scene.register_at(version)
    asked = scene.register_topics(NEW)
    assert [each.call for each in asked] == [route.REGISTER_BROKER] * 2


@pytest.mark.parametrize(
    "answer", [ConnectError("nobody"), Reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED)]
)
def test_one_that_does_not_take_a_topic_alone_is_told_everything(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    scene.register_at(MQVersion.V5_4_0)
    first, second = scene.register_topics(NEW)
    first.pending.resolve(answer)
    second.pending.resolve(Reply())
    (again,) = scene.connections.take()
    assert (again.address, again.call) == ("a:1", route.REGISTER_BROKER)


def test_an_older_registration_never_comes_after_a_newer_one(scene: Scene) -> None:
    """While one is made in a thread, what is new waits, and is in the next one."""
    scene.register_at(MQVersion.V5_4_0)
    in_threads: list[tuple[Callable[[], None], Done]] = []
    scene.in_thread = lambda work, done: in_threads.append((work, done))
    assert scene.register() == []
    scene.table = TopicTable({**TOPICS, "N": NEW}, VERSION.next(6), 6)
    assert scene.register_topics(NEW) == []
    assert scene.register() == []
    versions = []
    while in_threads:
        work, done = in_threads.pop(0)
        work()
        done(None)
        versions += [
            RegisterBrokerBody.decode(each.body).topic_config_serialize_wrapper.data_version.counter
            for each in scene.connections.take()
        ]
    assert versions == [2, 2, 3, 3]


def test_an_answer_may_name_order_topics(scene: Scene) -> None:
    first, second = scene.register()
    first.pending.resolve(
        Reply(RegisterBrokerResponseHeader(), KVTable(table={"T": "broker-a:4"}).encode())
    )
    second.pending.resolve(REGISTERED)
    assert scene.order_topics == [{"T"}]


def test_without_force_name_servers_are_asked_what_they_have(scene: Scene) -> None:
    for each in scene.register():
        each.pending.resolve(REGISTERED)
    asked = scene.register(force=False)
    for each in asked:
        assert each.call is route.QUERY_DATA_VERSION
        assert each.header == QueryDataVersionRequestHeader(
            broker_name="broker-a",
            broker_addr="10.0.0.1:10911",
            cluster_name="C",
            broker_id=0,
        )
        assert DataVersion.decode(each.body) == VERSION
    asked[0].pending.resolve(Reply(QueryDataVersionResponseHeader(changed=False)))
    assert scene.connections.asked == []
    asked[1].pending.resolve(Reply(QueryDataVersionResponseHeader(changed=True)))
    (again,) = scene.connections.take()
    assert (again.address, again.call) == ("b:2", route.REGISTER_BROKER)


@pytest.mark.parametrize(
    "answer", [RequestTimeout("3 s"), Reply(code=ResponseCode.SYSTEM_ERROR), Reply()]
)
def test_one_that_does_not_say_what_it_has_is_told(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    for each in scene.register():
        each.pending.resolve(REGISTERED)
    first, _ = scene.register(force=False)
    first.pending.resolve(answer)
    (again,) = scene.connections.take()
    assert (again.address, again.call) == ("a:1", route.REGISTER_BROKER)


@pytest.mark.parametrize(
    "answer",
    [
        ConnectError("nobody there"),
        Reply(code=ResponseCode.SYSTEM_ERROR, remark="crc32 not match"),
    ],
)
def test_one_that_refused_is_told_again_without_asking(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    first, second = scene.register()
    first.pending.resolve(answer)
    second.pending.resolve(REGISTERED)
    again = scene.register(force=False)
    assert {each.address: each.call for each in again} == {
        "a:1": route.REGISTER_BROKER,
        "b:2": route.QUERY_DATA_VERSION,
    }


def test_an_answer_that_is_none_does_no_harm(scene: Scene) -> None:
    first, _ = scene.register()
    first.pending.resolve(Reply(RegisterBrokerResponseHeader(), b"{broken"))
    assert scene.order_topics == []


def test_answers_say_where_the_master_of_a_slave_is() -> None:
    scene = Scene()
    told: list[Any] = []

    def answer(at_a: Reply[Any] | Exception, at_b: Reply[Any] | Exception) -> list[Any]:
        told.clear()
        first, second = scene.register()
        second.pending.resolve(at_b)
        first.pending.resolve(at_a)
        return list(told)

    def says(ha: str | None, address: str | None) -> Reply[Any]:
        return Reply(RegisterBrokerResponseHeader(ha_server_addr=ha, master_addr=address))

    nothing = says(None, None)
    scene.servers._on_master = lambda *news: told.append(news)
    assert answer(says("m:2", "m:1"), nothing) == [], "a master has none"
    scene.servers._identity = replace(scene.servers._identity, broker_id=1)
    assert answer(nothing, nothing) == [(None, None)] * 2
    assert answer(nothing, says("m:2", "m:1")) == [("m:2", "m:1")] * 2
    assert answer(says("n:2", "n:1"), says("m:2", "m:1")) == [("m:2", "m:1"), ("n:2", "n:1")]
    assert answer(ConnectError("gone"), says("m:2", "m:1")) == [("n:2", "n:1")]
    assert answer(ConnectError("gone"), says("", "m:1")) == [(None, "m:1")]


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (Reply(body=KVTable(table={"commitLogMaxOffset": "77"}).encode()), [77]),
        (Reply(body=KVTable(table={"commitLogMaxOffset": "x"}).encode()), []),
        (Reply(body=KVTable(table={}).encode()), []),
        (Reply(body=b"{"), []),
        (Reply(code=ResponseCode.SYSTEM_ERROR), []),
        (ConnectError("gone"), []),
    ],
)
def test_another_broker_is_asked_where_its_log_ends(outcome: Any, end: list[int]) -> None:
    connections = FakeConnections()
    found: list[int] = []
    outer_api.ask_log_end(cast("Connections", connections), "m:1", found.append)
    (asked,) = connections.take()
    assert (asked.address, asked.call.code) == ("m:1", 28)
    asked.pending.resolve(outcome)
    assert found == end


def test_leave_is_taken_of_all_before_the_end(scene: Scene) -> None:
    done: list[bool] = []
    scene.servers.unregister(lambda: done.append(True))
    first, second = scene.connections.take()
    assert first.call is route.UNREGISTER_BROKER
    assert first.header == UnRegisterBrokerRequestHeader(
        broker_name="broker-a",
        broker_addr="10.0.0.1:10911",
        cluster_name="C",
        broker_id=0,
    )
    first.pending.resolve(Reply())
    assert done == []
    second.pending.resolve(ConnectError("nobody there"))
    assert done == [True]


def test_after_the_leave_nobody_is_told_anything(scene: Scene) -> None:
    begun: list[tuple[Callable[[], None], Done]] = []
    scene.register_at(MQVersion.V5_4_0)
    scene.in_thread = lambda work, done: begun.append((work, done))
    assert scene.register() == []
    scene.servers.unregister(lambda: None)
    assert len(scene.connections.take()) == 2
    ((work, done),) = begun
    work()
    done(None)
    assert scene.register() == []
    assert scene.register_topics(TOPICS["T"]) == []
    assert not scene.servers.is_registered


def test_without_name_servers_the_end_comes_at_once(scene: Scene) -> None:
    done: list[bool] = []
    scene.servers.set_addresses("")
    scene.servers.unregister(lambda: done.append(True))
    assert done == [True]
    assert scene.register() == []


def route_of(scene: Scene) -> list[Reply[Any] | Exception]:
    outcomes: list[Reply[Any] | Exception] = []
    scene.servers.ask_route("T").then(outcomes.append)
    return outcomes


def test_a_route_is_asked_of_the_first_that_answers(scene: Scene) -> None:
    outcomes = route_of(scene)
    (first,) = scene.connections.take()
    assert (first.address, first.call) == ("a:1", route.GET_ROUTEINFO_BY_TOPIC)
    assert first.header == GetRouteInfoRequestHeader(topic="T")
    first.pending.resolve(RequestTimeout("3 s"))
    (second,) = scene.connections.take()
    answer: Reply[Any] = Reply(code=ResponseCode.TOPIC_NOT_EXIST)
    second.pending.resolve(answer)
    assert second.address == "b:2"
    assert outcomes == [answer]
    assert scene.connections.asked == []


def test_a_route_that_nobody_tells(scene: Scene) -> None:
    outcomes = route_of(scene)
    error = RequestTimeout("3 s")
    for _ in range(2):
        scene.connections.take()[0].pending.resolve(error)
    scene.servers.set_addresses("")
    (none,) = route_of(scene)
    assert outcomes == [error]
    assert isinstance(none, ConnectError)


def test_who_did_not_register_us_is_asked_again_sooner_and_later(scene: Scene) -> None:
    times: list[int] = []
    for asked in scene.register():
        asked.pending.resolve(ConnectError("down"))
    assert not scene.servers.is_registered
    for second in range(1, 64):
        scene.now_ms = second * 1_000
        scene.servers.tick()
        for asked in scene.connections.take():
            if asked.address == "a:1":
                times.append(second)
            asked.pending.resolve(ConnectError("down"))
    assert times == [1, 3, 7, 15, 31, 63]


def test_who_has_registered_us_is_not_asked_again(scene: Scene) -> None:
    first, second = scene.register()
    first.pending.resolve(ConnectError("down"))
    second.pending.resolve(REGISTERED)
    assert scene.servers.is_registered
    scene.now_ms = 1_000
    scene.servers.tick()
    (again,) = scene.connections.take()
    assert again.address == "a:1"
    scene.now_ms = 30_000
    scene.servers.tick()
    assert not scene.connections.take(), "it has not answered yet"
    again.pending.resolve(REGISTERED)
    scene.now_ms = 60_000
    scene.servers.tick()
    assert not scene.connections.take()


def test_without_name_servers_nothing_is_missing(scene: Scene) -> None:
    scene.servers.set_addresses("")
    assert scene.servers.is_registered
