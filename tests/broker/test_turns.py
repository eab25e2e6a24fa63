# SPDX-License-Identifier: Apache-2.0
"""No request holds up the others: what each runs in one turn of the reactor does not grow.

Every request that a broker serves is asked here of one with a thousand and more of everything:
topics, groups, clients, queues, offsets, messages with one key. What is measured is not time, but
lines of Python that run in one turn, while a slice of a walk is two steps: whatever runs a line for
each of a thousand things is found. A request that is served and not named here fails the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock

from tests.broker.conftest import STORE_HOST
from tests.counted import lines_of
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker import service
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.clients import Client
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.long_polling import LongPolling
from txrocketmq.broker.parts import KnownAs, Parts
from txrocketmq.broker.service import Broker
from txrocketmq.broker.store import flush
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.walks import SLICE_S, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.config_file import Configuration
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import CreateTopicListRequestBody
from txrocketmq.remoting.transport.clock import Clock

MANY = 1_500
"""How many there are of each."""
MOST_LINES = 1_250
"""How many lines of Python may run in one turn."""
MOST_BYTES = 96 * 1024
"""How long one piece of an answer may be: what is encoded or joined at once."""
STEPS = 2
"""Steps in a slice of a walk."""
IN_TWENTY_YEARS_MS = NOW_MS + 20 * 365 * 86_400_000

OF_MESSAGES = {
    10, 11, 36, 37, 310, 320, 323, 324, 325, 361, 370,
    200050, 200051, 200052, 200053, 200054, 200056, 200151,
}  # fmt: skip
"""Sends, ends of transactions, replies, pulls, pops and acks, which have bounds of their own."""
OF_ONE_CLIENT = {34, 35, 41, 42, 46, 223, 307, 309, 400}
"""Their work is as long as what one client sends."""

OF_SETTINGS = {25, 26, 5001}
"""Their work is as long as there are settings."""

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
    306: {}, 316: {}, 328: {}, 329: {}, 401: {}, 402: {}, 907: {}, 908: {"masterFlushOffset": "0"},
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
            known_as=KnownAs("127.0.0.1:10911", STORE_HOST),
        )
        self.parts.store.load(NOW_MS)
        self.parts.topics.saving.in_thread = lambda *_: None
        self.parts.groups.saving.in_thread = lambda *_: None
        self.parts.modes.saving.in_thread = lambda *_: None
        self._fill()
        self.registry = Registry(*all_processors(self.parts))

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
            InnerMessage("T", 0, b"", NOW_MS, STORE_HOST, STORE_HOST, {"KEYS": "hot"}).to_put()
            for _ in range(self._many)
        ]
        parts.store.put(messages, NOW_MS)
        parts.store.tick(NOW_MS)  # writes the index

    def turns(self, code: int) -> list[int]:
        """Serves a request; how many lines ran in each turn."""
        binding = self.registry.bindings[code]
        header = binding.call.request.decode(FIELDS[code])
        command = RemotingCommand(code, FIELDS[code], BODIES.get(code, b""))
        request = Request(header, command, FakePeer(), IN_TWENTY_YEARS_MS, 0)
        answers: list[Any] = []
        handler = binding.handler
        assert handler is not None
        turns = [lines_of(lambda: answers.append(handler(request)))]
        while self.later:
            turns.append(lines_of(self.later.pop(0)))
        (answer,) = answers
        if isinstance(answer, PendingReply):
            answer.then(answers.append)
        reply = answers[-1]
        assert isinstance(reply, (Reply, PendingReply, ResponseError))
        self.pieces = reply.body if isinstance(reply, Reply) else b""
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


def test_every_request_that_is_served_is_looked_at(scene: Scene) -> None:
    bounded_otherwise = OF_MESSAGES | OF_ONE_CLIENT | OF_SETTINGS
    assert set(scene.registry.bindings) == FIELDS.keys() | bounded_otherwise
    assert not FIELDS.keys() & bounded_otherwise


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
    broker._flush = lambda: flushed(parts)  # type: ignore[method-assign]
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
    call_later = reactor.callLater

    def counted(delay_s: float, call: Any, *args: Any, **named: Any) -> Any:
        task = getattr(call, "__self__", None)
        name = getattr(getattr(task, "_call", call), "__qualname__", str(call))

        def run() -> None:
            lines = lines_of(lambda: call(*args, **named))
            longest[name] = max(longest.get(name, 0), lines)

        return call_later(delay_s, run)

    monkeypatch.setattr(reactor, "callLater", counted)
    broker._journal.listen()
    broker._join()
    for _ in range(150):
        reactor.advance(1)
        while scene.later:
            soon = scene.later.pop(0)
            name = soon.__qualname__
            longest[name] = max(longest.get(name, 0), lines_of(soon))
    assert not parts.consumers.groups(), "they have all expired"
    assert {"Upkeep.expire", "Broker._count", "Walks._go_on"} <= longest.keys()
    late = {name: lines for name, lines in longest.items() if lines > MOST_LINES}
    assert not late, late
