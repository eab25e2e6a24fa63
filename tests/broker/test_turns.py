# SPDX-License-Identifier: Apache-2.0
"""No request holds up the others: what each runs in one turn of the reactor does not grow.

Every request that a broker serves is asked here of one with a thousand and more of everything:
topics, groups, clients, queues, offsets, messages with one key. What is measured is not time, but
lines of Python that run in one turn, while a slice of a walk is two steps: whatever runs a line for
each of a thousand things is found. Requests that may carry much are asked at their largest in
`test_largest_requests.py`, which also fails for a request that is served and named nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock

from tests.broker.conftest import STORE_HOST
from tests.counted import lines_of
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker import service
from txrocketmq.broker.all_parts import all_parts
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.parts import KnownAs, Parts
from txrocketmq.broker.pop.records import MergeKey
from txrocketmq.broker.pulls.long_polling import LongPolling
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.upkeep import flush
from txrocketmq.broker.tables.clients import Client
from txrocketmq.broker.work.walks import SLICE_S, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
)
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import CreateTopicListRequestBody
from txrocketmq.remoting.settings.config_file import Configuration

MANY = 1_500
"""How many there are of each."""
MOST_LINES = 1_250
"""How many lines of Python may run in one turn."""
MOST_BYTES = 96 * 1024
"""How long one piece of an answer may be: what is encoded or joined at once."""
STEPS = 2
"""Steps in a slice of a walk."""
IN_TWENTY_YEARS_MS = NOW_MS + 20 * 365 * 86_400_000

MOST_LINES_OF_LOOKS = 16_000
"""How many lines may run in one turn that looks at messages or queues: some 1 ms."""
MOST_LINES_OF_EXPRESSIONS = 90_000
"""How many lines may run in one turn that evaluates or compiles expressions: some 4 ms."""
TERMS = " OR ".join(f"a > {number}" for number in range(9_000, 9_500))
"""An expression that no message matches, and that has much to do with each."""
PULL = {
    "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32",
    "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0",
}  # fmt: skip
POP = {
    "consumerGroup": "G", "topic": "W", "queueId": "-1", "maxMsgNums": "32",
    "invisibleTime": "60000", "pollTime": "10000", "bornTime": str(NOW_MS), "initMode": "0",
    "order": "false",
}  # fmt: skip
LOOKS: dict[str, tuple[int, dict[str, str]]] = {
    "a pull by a long expression": (
        11, {**PULL, "subscription": TERMS, "expressionType": "SQL92"},
    ),
    "a pull by a short one": (11, {**PULL, "subscription": "a > 9000", "expressionType": "SQL92"}),
    "a lite pull by a tag": (361, {**PULL, "sysFlag": "20", "subscription": "tag"}),
    "a pull of everything": (11, {**PULL, "subscription": "*", "maxMsgNums": "1500"}),
    "a pop of many queues": (200050, POP),
    "a pop by a long expression": (
        200050, {**POP, "topic": "T", "expType": "SQL92", "exp": TERMS},
    ),
    "a peek into many queues": (200052, POP),
    "a notification of many queues": (200054, POP),
}  # fmt: skip
"""Requests that look for messages, by what they are; the codes of these are not in FIELDS."""
OF_LOOKS = {34, 46, *(code for code, _ in LOOKS.values())}
TOPIC, GROUP = {"topic": "T"}, {"group": "G"}
NEW_TOPIC = TopicConfig(topic_name="new", read_queue_nums=4, write_queue_nums=4)
FIELDS: dict[int, dict[str, str]] = {
    12: {
        "topic": "T", "key": "hot", "maxNum": "64", "beginTimestamp": "0",
        "endTimestamp": str(2 * NOW_MS),
    },
    14: {"consumerGroup": "G", "topic": "T", "queueId": "0"},
    15: {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "1"},
    17: {
        "topic": "new", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "order": "false",
    },
    18: {}, 21: {}, 28: {}, 43: {}, 45: {}, 200: {}, 201: {}, 225: {}, 305: {},
    306: {}, 316: {}, 328: {}, 329: {}, 401: {}, 402: {}, 905: {}, 906: {}, 907: {},
    908: {"masterFlushOffset": "0"},
    29: {"topic": "T", "queueId": "0", "timestamp": str(NOW_MS)},
    30: {"topic": "T", "queueId": "0"},
    31: {"topic": "T", "queueId": "0"},
    32: {"topic": "T", "queueId": "0"},
    33: {"offset": "0"},
    38: {"consumerGroup": "crowd"},
    60: {}, 61: {},
    200055: {"consumerGroup": "G", "topic": "T", "queueId": "0"},
    202: {"topic": "W"},
    203: {"consumerGroup": "crowd"},
    204: {"producerGroup": "crowd"},
    207: {"groupName": "G", "cleanOffset": "true"},
    208: {"consumerGroup": "G"},
    215: TOPIC,
    222: {"topic": "W", "group": "G", "timestamp": "0", "isForce": "true"},
    300: TOPIC,
    303: {"topic": "W", "group": "G"},
    308: {"topic": "T", "compareGroup": "G"},
    314: {"srcGroup": "G", "destGroup": "H"},
    315: {"statsName": "TOPIC_PUT_NUMS", "statsKey": "t0"},
    317: {"isOrder": "false"},
    321: {"topic": "T", "queueId": "0", "index": "0", "count": "10000"},
    343: GROUP,
    345: {"topic": "T", "group": "G"},
    351: TOPIC,
    352: GROUP,
    353: {"topic": "T", "group": "G", "readable": "false"},
    1008: {"masterAddress": "10.0.0.1:10911", "masterEpoch": "2", "masterBrokerId": "2"},
}  # fmt: skip
"""The fields with which a request is asked."""
BODIES = {
    18: CreateTopicListRequestBody(topic_config_list=[NEW_TOPIC]).encode(),
    200: b'{"groupName":"new"}',
    225: b'{"groupConfigList":[{"groupName":"new"}]}',
    401: SetMessageRequestModeRequestBody(topic="T", consumer_group="G", mode="PULL").encode(),
}


class Scene:
    """A large broker, whose turns are the test's."""

    def __init__(self, folder: Path, many: int = MANY) -> None:
        self._many = many
        self.later: list[Callable[[], None]] = []
        self.pieces: Any = b""
        self.answer: Any = None
        self._now_s = 0.0
        store_config = StoreConfig(
            store_path_root_dir=str(folder),
            mapped_file_size_commit_log=1_048_576,
            mapped_file_size_consume_queue=20 * 2 * MANY,
            max_hash_slot_num=100,
            max_index_num=4 * MANY,
        )
        self.parts = Parts(
            configuration=Configuration((BrokerConfig(), store_config), {}),
            clock=lambda: NOW_MS,
            walks=Walks(self.later.append, self._timer),
            call_soon=self.later.append,
            wake_soon=lambda: self.later.append(self.parts.polling.run_woken),
            known_as=KnownAs("127.0.0.1:10911", STORE_HOST),
        )
        self.parts.store.load(NOW_MS)
        self.parts.topics.saving.in_thread = lambda *_: None
        self.parts.groups.saving.in_thread = lambda *_: None
        self.parts.modes.saving.in_thread = lambda *_: None
        self._fill()
        self.registry = Registry(*all_processors(self.parts))

    def put(self, message: PutMessage) -> int:
        """Stores a message; returns the end of its queue."""
        self.parts.store.put([message], NOW_MS)
        return self.parts.store.max_offset(message.topic, message.queue_id)

    def _timer(self) -> float:
        self._now_s += SLICE_S / STEPS
        return self._now_s

    def _fill(self) -> None:
        parts = self.parts
        parts.topics._topics["T"] = TopicConfig(
            topic_name="T", read_queue_nums=1, write_queue_nums=1
        )
        parts.topics._topics["W"] = TopicConfig(
            topic_name="W", read_queue_nums=self._many, write_queue_nums=self._many
        )
        parts.groups.find("G")
        for number in range(self._many):
            topic, group, peer = f"t{number}", f"g{number}", FakePeer(number)
            parts.topics._topics[topic] = TopicConfig(topic_name=topic, write_queue_nums=1)
            parts.groups.find(group)
            parts.offsets.commit("G", topic, 0, 1)
            parts.offsets.commit(group, "T", 0, 1)
            parts.offsets.commit("G", "W", number % 8, 1)
            client = Client(peer, f"c{number}", "JAVA", 407, NOW_MS)
            for its in (group, "crowd"):
                parts.producers.register(its, client)
                parts.consumers.register(
                    client, its, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET",
                    [SubscriptionData("T", sub_version=1)],
                )  # fmt: skip
            parts.locks.lock(group, f"c{number}", [MessageQueue("T", "b", 0)], 0)
            parts.locks.lock("crowd", f"c{number}", [MessageQueue("W", "b", number)], 0)
            parts.stats.put(topic, 1, 1)
            parts.stats.got(group, "T", 1, 1)
            parts.modes.set(SetMessageRequestModeRequestBody(topic=topic, consumer_group=group))
        messages = [
            InnerMessage(
                "T", 0, b"", NOW_MS, STORE_HOST, STORE_HOST, {"KEYS": "hot", "a": str(number)}
            ).to_put()
            for number in range(self._many)
        ]
        parts.store.put(messages, NOW_MS)
        parts.store.tick(NOW_MS)  # writes the index

    def turns(
        self, code: int, fields: Mapping[str, str] | None = None, body: bytes = b""
    ) -> list[int]:
        """Serves a request; how many lines ran in each turn."""
        binding = self.registry.bindings[code]
        if fields is None:
            fields, body = FIELDS[code], BODIES.get(code, b"")
        header = binding.call.request.decode(fields)
        command = RemotingCommand(code, fields, body)
        request = Request(header, command, FakePeer(), IN_TWENTY_YEARS_MS, 0)
        answers: list[Any] = []
        handler = binding.handler
        assert handler is not None
        turns = [lines_of(lambda: answers.append(handler(request))), *self.run()]
        (answer,) = answers
        if isinstance(answer, PendingReply):
            answer.then(answers.append)
        self.answer = reply = answers[-1]
        assert isinstance(reply, (Reply, PendingReply, ResponseError))
        self.pieces = reply.body if isinstance(reply, Reply) else b""
        return turns

    def run(self) -> list[int]:
        """Runs what is left for later turns; how many lines ran in each."""
        turns = []
        while self.later:
            turns.append(lines_of(self.later.pop(0)))
        return turns

    def longest_piece(self) -> int:
        """How many bytes of the last answer were encoded or joined at once."""
        body = self.pieces
        pieces = (body,) if isinstance(body, (bytes, memoryview)) else body
        return max(map(len, pieces), default=0)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.parts.store.stop(NOW_MS)


@pytest.mark.parametrize("code", FIELDS, ids=lambda code: RequestCode(code).name)
def test_a_request_never_runs_long_in_one_turn(
    scene: Scene, code: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Scene(tmp_path_factory.mktemp("small"), many=2)
    small.turns(code)  # codecs are derived when they are first used
    most = max(scene.turns(code))
    small.parts.store.stop(NOW_MS)
    assert most < MOST_LINES, f"{most} lines of Python in one turn"
    assert scene.longest_piece() < MOST_BYTES


def test_deleting_a_topic_costs_the_same_beside_many_others(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Scene(tmp_path_factory.mktemp("small"), many=2)
    costs = []
    for each in (small, scene):
        each.turns(215, {"topic": "t0"})  # what is learned is learned
        each.parts.pop.metrics.wrote(MergeKey("t1", "g1", 0, 0, 0, ""), "CK", "PUT_OK")
        costs.append(sum(each.turns(215, {"topic": "t1"})))
        assert each.parts.topics.get("t1") is None
    small.parts.store.stop(NOW_MS)
    few, many = costs
    assert many < few + 100


@pytest.fixture
def filtering(scene: Scene) -> Scene:
    """A scene in which SQL92 expressions are served and the parser is imported."""
    scene.parts.configuration.update({"enablePropertyFilter": "true"})
    scene.turns(*LOOKS["a pull by a short one"])
    return scene


@pytest.mark.parametrize("what", LOOKS)
def test_a_look_for_messages_never_runs_long_in_one_turn(
    filtering: Scene, what: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Scene(tmp_path_factory.mktemp("small"), many=2)
    small.parts.configuration.update({"enablePropertyFilter": "true"})
    small.turns(*LOOKS[what])  # codecs are derived when they are first used
    small.parts.store.stop(NOW_MS)
    code, fields = LOOKS[what]
    most = max(filtering.turns(code, fields))
    is_filtered = "SQL92" in fields.values()
    limit = MOST_LINES_OF_EXPRESSIONS if is_filtered else MOST_LINES_OF_LOOKS
    assert most < limit, f"{most} lines of Python in one turn"


def test_a_pull_that_was_cut_goes_on_behind_what_it_has_looked_at(filtering: Scene) -> None:
    code, fields = LOOKS["a pull by a long expression"]
    offset = pulls = 0
    while offset < 100:
        filtering.turns(code, {**fields, "queueOffset": str(offset)})
        reply = filtering.answer
        assert isinstance(reply, Reply)
        assert reply.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert reply.header is not None
        assert reply.header.next_begin_offset > offset
        offset = reply.header.next_begin_offset
        pulls += 1
    assert pulls > 10


def test_no_heartbeat_runs_long_whatever_it_subscribes_to(filtering: Scene) -> None:
    wanted = [
        SubscriptionData(
            f"t{number}", f"{TERMS} OR b = {number}", sub_version=1, expression_type="SQL92"
        )
        if number < 5
        else SubscriptionData(f"t{number}", f"b = {number}", sub_version=1, expression_type="SQL92")
        for number in range(200)
    ]
    data = HeartbeatData(
        client_id="c",
        consumer_data_set=[ConsumerData(group_name="G", subscription_data_set=wanted)],
    )
    for _ in range(3):
        most = max(filtering.turns(34, {}, data.encode()))
        assert most < MOST_LINES_OF_EXPRESSIONS
    assert filtering.parts.filters.get("t0", "G") is not None
    check = CheckClientRequestBody(subscription_data=wanted[4])
    assert max(filtering.turns(46, {}, check.encode())) < MOST_LINES_OF_EXPRESSIONS


@pytest.mark.parametrize("is_equal", [True, False], ids=["equal filters", "different filters"])
def test_what_arrives_wakes_a_crowd_of_pulls_in_slices(filtering: Scene, is_equal: bool) -> None:
    """Each of them has much to do with a message, and none of them wants it."""
    code, fields = LOOKS["a pull by a long expression"]
    held = {**fields, "queueOffset": str(MANY), "sysFlag": "6", "suspendTimeoutMillis": "60000"}
    for number in range(60):
        its = held if is_equal else {**held, "subscription": f"{TERMS} OR b = {number % 10}"}
        filtering.turns(code, its)
    assert len(filtering.parts.polling) == 60
    message = InnerMessage("T", 0, b"", NOW_MS, STORE_HOST, STORE_HOST, {"a": "5"}).to_put()
    filtering.parts.polling.arrived("T", 0, filtering.put(message))
    turns = filtering.run()
    assert len(filtering.parts.polling) == 60
    assert max(turns) < MOST_LINES_OF_EXPRESSIONS
    assert (sum(turns) < 60 * 500) == is_equal, "equal filters judge a message once"


def test_what_arrives_wakes_pops_of_a_crowd_of_groups_in_slices(scene: Scene) -> None:
    for number in range(200):
        scene.turns(200050, {**POP, "consumerGroup": f"g{number}", "topic": "t0"})
    assert len(scene.parts.pop.polling) == 200
    message = InnerMessage("t0", 0, b"", NOW_MS, STORE_HOST, STORE_HOST, {}).to_put()
    top = scene.put(message)
    turns = [lines_of(lambda: scene.parts.pop.polling.arrived("t0", 0, top))]
    turns += scene.run()
    assert turns[0] < 20, "the send that wakes them does not wait"
    assert max(turns) < MOST_LINES_OF_LOOKS
    assert len(scene.parts.pop.polling) == 0


def test_a_loop_over_everything_is_found() -> None:
    assert lines_of(lambda: [str(each) for each in range(MOST_LINES)]) >= MOST_LINES


@pytest.mark.parametrize("code", [21, 43, 201, 202, 208, 317, 328], ids=str)
def test_what_goes_while_a_walk_pauses_does_not_disturb_it(scene: Scene, code: int) -> None:
    """Every table loses what it has between two turns."""
    binding = scene.registry.bindings[code]
    header = binding.call.request.decode(FIELDS[code])
    request = Request(header, RemotingCommand(code, FIELDS[code]), FakePeer(), NOW_MS, 0)
    assert binding.handler is not None
    answer = binding.handler(request)
    assert isinstance(answer, PendingReply)
    parts = scene.parts
    for _ in range(10):
        scene.later.pop(0)()
    parts.topics._topics.clear()
    parts.groups._groups.clear()
    for number in range(MANY):
        parts.offsets.remove("G", f"t{number}")
        parts.offsets.remove(f"g{number}", "T")
        parts.producers.unregister(f"g{number}", parts.producers.members(f"g{number}")[0].peer)
    parts.store.delete_topic("T")
    while scene.later:
        scene.later.pop(0)()
    outcomes: list[Any] = []
    answer.then(outcomes.append)
    assert isinstance(outcomes[0], Reply)


def flushed(parts: Parts) -> None:
    """Takes a job of the flush, which syncs nothing."""
    job = parts.store.flush.begin()
    if job is not None:
        parts.store.flush.finish(job)


def test_nothing_that_a_broker_does_by_itself_runs_long_in_one_turn(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a service repeats, for some minutes, over the parts of a large broker."""
    parts = scene.parts
    reactor: Any = MemoryReactorClock()
    reactor.advance(NOW_MS / 1000)
    monkeypatch.setattr(service, "Parts", lambda **_: parts)
    broker = Broker(parts.config, parts.store.config, Clock(reactor))
    parts.polling = LongPolling(parts.store, broker._wake_soon, scene._timer)
    parts.call_soon = parts.group_changes._call_soon = scene.later.append
    broker._threads.run = lambda *_: None  # type: ignore[method-assign]
    monkeypatch.setattr(parts.store_services, "sync", lambda: flushed(parts))
    for at in range(0, MANY, 500):
        parts.store.put(
            [
                InnerMessage("W", each, b"", NOW_MS, STORE_HOST, STORE_HOST, {}).to_put()
                for each in range(at, at + 500)
            ],
            NOW_MS,
        )
    for number in range(MANY):
        parts.pop.orders.popped(None, f"t{number}", "G", 0, NOW_MS, 60_000, [0])
        parts.routes._queues[f"t{number}"] = []
    saved: tuple[Any, ...] = parts.topics, parts.groups, parts.offsets, parts.modes, parts.filters
    for each in (*saved, parts.pop.orders):
        monkeypatch.setattr(each.saving, "begin", lambda: None)
    monkeypatch.setattr(flush, "_LOOKED_AT", MANY // 20)
    monkeypatch.setattr(flush, "_QUEUES_AT_ONCE", 8)
    longest: dict[str, int] = {}
    late: dict[str, tuple[int, list[tuple[str, int]]]] = {}
    call_later = reactor.callLater

    def note(name: str, call: Callable[[], object]) -> None:
        where: Counter[str] = Counter()
        lines = lines_of(call, where)
        if lines > max(MOST_LINES, longest.get(name, 0)):
            late[name] = lines, where.most_common(5)
        longest[name] = max(longest.get(name, 0), lines)

    def counted(delay_s: float, call: Any, *args: Any, **named: Any) -> Any:
        work = getattr(getattr(call, "__self__", None), "_call", call)
        name = getattr(work, "__qualname__", str(work))

        def run() -> None:
            note(name, lambda: call(*args, **named))

        return call_later(delay_s, run)

    monkeypatch.setattr(reactor, "callLater", counted)
    broker._lives_of(all_parts(parts, broker._journal)).begin()
    for _ in range(150):
        reactor.advance(1)
        while scene.later:
            soon = scene.later.pop(0)
            note(soon.__qualname__, soon)
    assert not parts.consumers.groups(), "they have all expired"
    assert {"Slices.begin", "Walks._go_on"} <= longest.keys()
    assert any("forgetting clients" in name for name in longest)
    assert not late, late
