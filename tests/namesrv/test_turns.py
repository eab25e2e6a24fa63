# SPDX-License-Identifier: Apache-2.0
"""Long requests of brokers: slices, the order of a peer, turns of peers, limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.counted import lines_of
from tests.fakes import NOW_MS, FakePeer, outcome_of, refused
from tests.namesrv.conftest import MakeNames, Names, registration, topics
from txrocketmq.namesrv import turns
from txrocketmq.namesrv.kv_config import MAX_KEYS
from txrocketmq.namesrv.turns import SLICE_S, Own, Steps, Turns
from txrocketmq.remoting.call import Call, PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    QueueData,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.protocol.operations import admin, ha

MANY = 1_500
MOST_LINES = 1_500
"""How many lines of Python may run in one turn; this is less than one for each of MANY topics,
and of what follows from it."""
STEPS = 2
"""Steps in a slice."""
LISTS = {206, 224, 304, 311, 312, 313}
OF_SETTINGS = {100, 101, 102, 219, 318, 319}
"""Their work is as long as what administrators have set, which is limited (see kv_config.py)."""


class Scene:
    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self.seen: list[str] = []
        self._now_s = 0.0
        self.turns = Turns(self.later.append, self._timer)

    def _timer(self) -> float:
        self._now_s += SLICE_S / STEPS
        return self._now_s

    def steps(self, name: str, count: int, error: Exception | None = None) -> Steps:
        for _ in range(count):
            self.seen.append(name)
            yield
        if error is not None:
            raise error
        return Reply(remark=name)

    def run(self) -> list[str]:
        while self.later:
            self.later.pop(0)()
        seen, self.seen = self.seen, []
        return seen


def test_short_requests_are_served_at_once_and_long_ones_in_turns() -> None:
    scene, one, other = Scene(), FakePeer(1), FakePeer(2)
    short = scene.turns.answer(one, scene.steps("short", 1))
    assert isinstance(short, Reply)
    assert short.remark == "short"
    long = scene.turns.answer(one, scene.steps("a", 6))
    after = scene.turns.answer(one, scene.steps("b", 1))
    beside = scene.turns.answer(other, scene.steps("c", 4))
    at_once = scene.turns.answer(FakePeer(3), scene.steps("d", 0))
    assert isinstance(at_once, Reply)
    assert "".join(scene.seen) == "shortaacc"
    scene.seen.clear()
    assert "".join(scene.run()) == "aaccaab"
    for promise, remark in ((long, "a"), (after, "b"), (beside, "c")):
        assert isinstance(promise, PendingReply)
        reply = outcome_of(promise)
        assert isinstance(reply, Reply)
        assert reply.remark == remark
    assert not scene.turns._peers
    assert not scene.turns._bytes
    assert scene.turns._all_bytes == 0


def test_one_that_fails_ends_nobody_else() -> None:
    scene, peer, error = Scene(), FakePeer(), ValueError("a defect")
    with pytest.raises(ValueError, match="a defect"):
        scene.turns.answer(peer, scene.steps("now", 1, error))
    late = scene.turns.answer(peer, scene.steps("a", 5, error))
    next_one = scene.turns.answer(peer, scene.steps("b", 1))
    scene.run()
    assert isinstance(late, PendingReply)
    assert outcome_of(late) is error
    assert isinstance(next_one, PendingReply)
    assert isinstance(outcome_of(next_one), Reply)


def test_what_a_peer_wanted_ends_when_it_has_gone() -> None:
    scene, gone, there = Scene(), FakePeer(1), FakePeer(2)
    for name in "ab":
        scene.turns.answer(gone, scene.steps(name, 9))
    scene.turns.answer(there, scene.steps("c", 4))
    gone.close()
    scene.seen.clear()
    assert scene.run() == ["c", "c"]
    assert not scene.turns._peers


def test_what_waits_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_BYTES_OF_PEER", 10_000)
    monkeypatch.setattr(turns, "MAX_BYTES", 15_000)
    scene, one, other = Scene(), FakePeer(1), FakePeer(2)
    for peer, size_bytes in ((one, 4_000), (one, 3_000), (other, 3_000)):
        scene.turns.answer(peer, scene.steps("a", 9), size_bytes)
    with refused(ResponseCode.SYSTEM_BUSY, "too many registrations are waiting"):
        scene.turns.answer(one, scene.steps("b", 9), 1_000)
    with refused(ResponseCode.SYSTEM_BUSY, "too many registrations are waiting"):
        scene.turns.answer(FakePeer(3), scene.steps("b", 9), 3_000)
    scene.run()
    assert scene.turns._all_bytes == 0


def test_own_work_has_its_turns_beside_requests() -> None:
    scene, peer, failures = Scene(), FakePeer(), list[Exception]()
    scene.turns.run(own(scene, "x", 5), failures.append)
    scene.turns.run(own(scene, "y", 3, ValueError("a defect")), failures.append)
    scene.turns.run(own(scene, "z", 1), failures.append)
    scene.turns.answer(peer, scene.steps("a", 5))
    assert "".join(scene.run()) == "aaxxaaxxaxyyyz"
    assert [str(each) for each in failures] == ["a defect"]
    scene.turns.run(own(scene, "again", 1), failures.append)
    assert scene.run() == ["again"]


def own(scene: Scene, name: str, count: int, error: Exception | None = None) -> Own:
    yield from scene.steps(name, count, error)
    return True


def test_whoever_hears_an_answer_disturbs_nobody() -> None:
    """Neither by raising nor by asking again at once."""
    scene, one, other = Scene(), FakePeer(1), FakePeer(2)

    def heard(_: object) -> None:
        scene.turns.answer(FakePeer(3), scene.steps("c", 4))
        raise ValueError("a defect")

    pending = scene.turns.answer(one, scene.steps("a", 3))
    assert isinstance(pending, PendingReply)
    pending.then(heard)
    scene.turns.answer(other, scene.steps("b", 9))
    with pytest.raises(ValueError, match="a defect"):
        scene.run()
    scene.run()
    assert not scene.later
    assert not scene.turns._peers


class Large:
    """A name server on which a broker has many topics, and the requests of a test."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.later = names.later
        now_s = iter(range(1_000_000))
        names.turns._timer = lambda: next(now_s) * SLICE_S / STEPS
        self.broker = FakePeer(1)
        self.longest = 0
        self.where: list[tuple[str, int]] = []  # in which functions those lines ran
        self.version = int(MQVersion.V5_4_0)

    def ask(self, code: int, header: Header, body: bytes = b"") -> Reply[Any]:
        """Serves a request to its end; notes the longest turn."""
        binding = self.names.registry.bindings[code]
        command = RemotingCommand(code, header.encode(), body, version=self.version)
        request = Request(header, command, self.broker, NOW_MS, NOW_MS)
        answers: list[Any] = []
        handler = binding.handler
        assert handler is not None
        self._count(lambda: answers.append(handler(request)))
        while self.later:
            self._count(self.later.pop(0))
        if isinstance(answers[0], PendingReply):
            answers[0].then(answers.append)
        assert isinstance(answers[-1], Reply), repr(answers[-1])
        return answers[-1]

    def _count(self, call: Callable[[], object]) -> None:
        lines = lines_of(call, where := Counter[str]())
        if lines > self.longest:
            self.longest, self.where = lines, where.most_common(5)

    def register(self, counter: int, count: int = MANY, perm: int = 6) -> Reply[Any]:
        table = {f"t{each}": TopicConfig(topic_name=f"t{each}", perm=perm) for each in range(count)}
        body = RegisterBrokerBody(
            topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
                topic_config_table=table, data_version=DataVersion(timestamp=1, counter=counter)
            )
        )
        header = route.RegisterBrokerRequestHeader(
            broker_name="b", broker_addr="10.0.0.1:10911", cluster_name="c",
            ha_server_addr="10.0.0.1:10912", broker_id=0,
        )  # fmt: skip
        return self.ask(route.REGISTER_BROKER.code, header, body.encode())


@pytest.fixture
def large(make_names: MakeNames) -> Large:
    """A name server whose codecs have been derived already, with one large broker."""
    made = Large(make_names(deleteTopicWithBrokerRegistration="true"))
    made.register(1, count=2)
    made.register(2)
    made.ask(
        route.WIPE_WRITE_PERM_OF_BROKER.code,
        route.WipeWritePermOfBrokerRequestHeader(broker_name="b"),
    )
    asked = route.GetRouteInfoRequestHeader(topic="t1")
    made.ask(route.GET_ROUTEINFO_BY_TOPIC.code, asked)
    by_cluster = topic.GetTopicsByClusterRequestHeader(cluster="c")
    for code in sorted(LISTS | {106}):
        made.ask(code, by_cluster if code == 224 else NoHeader())
    made.ask(901, ha.GetBrokerMemberGroupRequestHeader(cluster_name="c", broker_name="b"))
    made.longest = 0
    return made


def test_a_registration_of_many_topics_never_runs_long_in_one_turn(large: Large) -> None:
    large.register(3, perm=4)
    assert len(large.names.table.topics().topic_list) == MANY
    assert large.names.table.data_version("c", "10.0.0.1:10911") == DataVersion(
        timestamp=1, counter=3
    )
    large.register(4, count=5)
    assert len(large.names.table.topics().topic_list) == 5
    assert 100 < large.longest < MOST_LINES


@pytest.mark.parametrize(
    ("call", "header", "body"),
    [
        (
            route.WIPE_WRITE_PERM_OF_BROKER,
            route.WipeWritePermOfBrokerRequestHeader(broker_name="b"),
            b"",
        ),
        (
            route.ADD_WRITE_PERM_OF_BROKER,
            route.AddWritePermOfBrokerRequestHeader(broker_name="b"),
            b"",
        ),
        (topic.DELETE_TOPIC_IN_NAMESRV, topic.DeleteTopicFromNamesrvRequestHeader(topic="t1"), b""),
        (route.GET_ROUTEINFO_BY_TOPIC, route.GetRouteInfoRequestHeader(topic="t1"), b""),
        (route.GET_BROKER_CLUSTER_INFO, NoHeader(), b""),
        (
            ha.GET_BROKER_MEMBER_GROUP,
            ha.GetBrokerMemberGroupRequestHeader(cluster_name="c", broker_name="b"),
            b"",
        ),
        (
            topic.REGISTER_TOPIC_IN_NAMESRV,
            topic.RegisterTopicRequestHeader(topic="new"),
            TopicRouteData(queue_datas=[QueueData(broker_name="b")]).encode(),
        ),
        (
            route.QUERY_DATA_VERSION,
            route.QueryDataVersionRequestHeader(
                broker_name="b", broker_addr="10.0.0.1:10911", cluster_name="c", broker_id=0
            ),
            DataVersion().encode(),
        ),
        (
            route.BROKER_HEARTBEAT,
            route.BrokerHeartbeatRequestHeader(
                cluster_name="c", broker_addr="10.0.0.1:10911", broker_name="b"
            ),
            b"",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Call) else "",
)
def test_no_other_request_does_either(
    large: Large, call: Call[Any, Any], header: Header, body: bytes
) -> None:
    large.ask(call.code, header, body)
    assert large.longest < MOST_LINES, large.where


@pytest.mark.parametrize("standard", [False, True])
def test_a_route_on_many_brokers_is_as_any_other(large: Large, standard: bool) -> None:
    having = {each: TopicConfig(topic_name=each) for each in ("common", "own")}
    body = TopicConfigAndMappingSerializeWrapper(topic_config_table=having)
    for each in range(300):
        header = route.RegisterBrokerRequestHeader(
            broker_name=f"b{each}", broker_addr=f"10.0.1.{each}:10911", cluster_name="c",
            ha_server_addr="", broker_id=each % 2,
        )  # fmt: skip
        large.ask(
            route.REGISTER_BROKER.code, header,
            RegisterBrokerBody(
                topic_config_serialize_wrapper=body, filter_server_list=[f"filter{each}"]
            ).encode(),
        )  # fmt: skip
    large.longest = 0
    wanted = large.names.table.route("common")
    assert wanted is not None
    asked = route.GetRouteInfoRequestHeader(topic="common", accept_standard_json_only=standard)
    large.version = MQVersion.V5_4_0 if standard else MQVersion.V4_9_3
    answer = large.ask(route.GET_ROUTEINFO_BY_TOPIC.code, asked)
    assert len(wanted.queue_datas) == 150
    assert answer.body_bytes == (wanted.encode_standard() if standard else wanted.encode())
    assert not isinstance(answer.body, bytes)


@pytest.mark.parametrize("code", sorted(LISTS))
def test_lists_are_made_in_several_turns(large: Large, code: int) -> None:
    large.register(3, count=20_000)
    large.longest = 0
    asked = topic.GetTopicsByClusterRequestHeader(cluster="c") if code == 224 else NoHeader()
    listed = TopicList.decode(large.ask(code, asked).body_bytes).topic_list
    assert len(listed) == {206: 20_000, 224: 20_000, 304: 2}.get(code, 0)
    assert large.longest < MOST_LINES, large.where


@pytest.fixture
def crowd(large: Large) -> Large:
    """With a topic that so many brokers of one cluster have, and another that some of them have."""
    for each in range(MANY):
        its = registration(
            name=f"b{each}", cluster="c", port=each, having=topics("common", f"own{each % 9}")
        )
        large.names.table.register(its, f"channel{each}", NOW_MS)
    large.names.table.take_events()
    large.longest = 0
    return large


COMMON = {
    205: route.WipeWritePermOfBrokerRequestHeader(broker_name="b7"),
    105: route.GetRouteInfoRequestHeader(topic="common"),
    106: NoHeader(),
    206: NoHeader(),
    216: topic.DeleteTopicFromNamesrvRequestHeader(topic="common", cluster_name="c"),
    224: topic.GetTopicsByClusterRequestHeader(cluster="c"),
    304: NoHeader(),
    311: NoHeader(),
    901: ha.GetBrokerMemberGroupRequestHeader(cluster_name="c", broker_name="b7"),
    104: route.UnRegisterBrokerRequestHeader(
        broker_name="b7", broker_addr="10.0.0.1:7", cluster_name="c", broker_id=0
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", COMMON, ids=lambda code: RequestCode(code).name)
def test_many_brokers_hold_up_nobody(crowd: Large, code: int) -> None:
    crowd.ask(code, COMMON[code])
    assert crowd.longest < MOST_LINES, crowd.where


@pytest.mark.parametrize("cluster", [None, "c"])
def test_a_topic_of_many_brokers_is_deleted_at_once_and_cleaned_up_in_turns(
    crowd: Large, cluster: str | None
) -> None:
    header = topic.DeleteTopicFromNamesrvRequestHeader(topic="common", cluster_name=cluster)
    crowd.ask(topic.DELETE_TOPIC_IN_NAMESRV.code, header)
    table = crowd.names.table
    assert table.route("common") is None
    steps = table.cleaning()
    while table.is_to_clean:
        crowd._count(lambda: next(steps, None))
    assert crowd.longest < MOST_LINES, crowd.where


def test_a_large_broker_leaves_at_once_and_is_cleaned_up_in_turns(large: Large) -> None:
    table = large.names.table
    large._count(lambda: table.unregister("c", "b", "10.0.0.1:10911"))
    assert not table.topics().topic_list
    assert large.longest < 100
    large.register(3, count=5)
    steps = table.cleaning()
    large.longest = 0
    while table.is_to_clean:
        large._count(lambda: next(steps, None))
    assert large.longest < 200
    assert len(table.topics().topic_list) == 5


MAPPINGS = {
    f"t{each}": TopicQueueMappingInfo(topic=f"t{each}", bname="b", curr_id_map={0: each})
    for each in range(4 * MANY)
}


@pytest.mark.parametrize("form", ["compressed", "old", "odd", "with mappings", "broken"])
def test_registrations_of_every_form_are_read_in_turns(large: Large, form: str) -> None:
    table = {f"t{each}": TopicConfig(topic_name=f"t{each}") for each in range(4 * MANY)}
    wrapper = TopicConfigAndMappingSerializeWrapper(
        topic_config_table=table,
        topic_queue_mapping_info_map=MAPPINGS if form in {"compressed", "with mappings"} else {},
        data_version=DataVersion(timestamp=1, counter=9),
    )
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper)
    data = body.encode()
    if form == "compressed":
        data = body.encode_compressed()
    elif form == "old":
        large.version, data = MQVersion.V3_0_11 - 1, wrapper.encode()
    elif form == "odd":
        data = data.replace(b'"topicName"', b"topicName")
    elif form == "broken":
        data = data[:-2]
    header = route.RegisterBrokerRequestHeader(
        broker_name="b", broker_addr="10.0.0.1:10911", cluster_name="c",
        ha_server_addr="10.0.0.1:10912", broker_id=0, compressed=form == "compressed",
    )  # fmt: skip
    large.longest = 0
    if form == "broken":
        with pytest.raises(AssertionError, match="HeaderError|JsonError"):
            large.ask(route.REGISTER_BROKER.code, header, data)
    else:
        large.ask(route.REGISTER_BROKER.code, header, data)
        its = large.names.table.data_version("c", "10.0.0.1:10911")
        assert its == DataVersion(timestamp=1, counter=9)
        assert len(large.names.table.topics().topic_list) == 4 * MANY
    assert large.longest < 2 * MOST_LINES, "half a line for each topic"


@pytest.mark.parametrize(
    ("call", "header"),
    [
        (route.PUT_KV_CONFIG, route.PutKVConfigRequestHeader(namespace="n", key="k", value="v")),
        (route.GET_KV_CONFIG, route.GetKVConfigRequestHeader(namespace="n", key="k1")),
        (route.DELETE_KV_CONFIG, route.DeleteKVConfigRequestHeader(namespace="n", key="k1")),
        (
            route.GET_KVLIST_BY_NAMESPACE,
            route.GetKVListByNamespaceRequestHeader(namespace="n"),
        ),
        (admin.GET_NAMESRV_CONFIG, NoHeader()),
    ],
    ids=lambda value: value.name if isinstance(value, Call) else "",
)
def test_the_most_key_values_are_so_much_work(
    large: Large, call: Call[Any, Any], header: Header
) -> None:
    large.names.kv._table = {"n": {f"k{each}": "v" for each in range(MAX_KEYS - 1)}}
    large.ask(call.code, header)
    assert large.longest < 8 * MAX_KEYS, "some 15 ms"


def test_every_request_that_is_served_is_looked_at(names: Names) -> None:
    looked_at = {103, 104, 105, 106, 205, 216, 217, 322, 327, 901, 904}
    assert set(names.registry.bindings) == looked_at | LISTS | OF_SETTINGS


def test_a_broker_that_leaves_costs_what_it_has(large: Large) -> None:
    """Many small brokers beside a large one: their end does not go through its topics."""
    table = large.names.table
    header = route.RegisterBrokerRequestHeader(
        broker_name="small", broker_addr="10.0.0.2:10911", cluster_name="c",
        ha_server_addr="", broker_id=0,
    )  # fmt: skip
    body = TopicConfigAndMappingSerializeWrapper(
        topic_config_table={each: TopicConfig(topic_name=each) for each in ("t1", "own")}
    )
    large.ask(
        route.REGISTER_BROKER.code, header,
        RegisterBrokerBody(topic_config_serialize_wrapper=body).encode(),
    )  # fmt: skip
    assert table.route("own") is not None
    assert lines_of(lambda: table.unregister("c", "small", "10.0.0.2:10911")) < 100
    assert table.route("own") is None
    assert table.route("t1") is not None


def test_a_registration_that_its_broker_does_not_wait_for_is_not_taken_for_whole(
    names: Names,
) -> None:
    table, seen = names.table, []
    large = Large(names)
    count = large._count

    def counted(call: Callable[[], object]) -> None:
        count(call)
        seen.append(table.data_version("c", "10.0.0.1:10911"))

    large._count = counted  # type: ignore[method-assign]
    large.register(1)
    done = DataVersion(timestamp=1, counter=1)
    assert seen[-1] == done
    assert done not in seen[:-1]
    assert any(version is not None for version in seen[:-1])
