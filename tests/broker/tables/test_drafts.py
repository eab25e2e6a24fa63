# SPDX-License-Identifier: Apache-2.0
"""What is refused leaves nothing: no topic, no group, no queue, no folder, no file, no mapping."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.conftest import Parts
from tests.disk import MemoryFiles
from tests.examples import examples
from tests.fakes import FakePeer
from txrocketmq.broker import parts as module
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.store.disk.descriptors import mappings
from txrocketmq.broker.tables.drafts import Drafts
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.frame.frame import FrameDecoder

MOST_BODY_BYTES = 4_000
NUMBERS = itertools.count()
GOOD = (
    ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)  # fmt: skip
NAMES = ("{new}", "{new}", "T", "%RETRY%{new}", "%DLQ%{new}", "%LMQ%{new}", "a/b", " ", "x" * 128)
"""Topics that requests name; those with {new} were never named before."""
BODIES = (b"body", b"body", b"", bytes(MOST_BODY_BYTES + 1))
PROPERTIES = (
    "", "DELAY\x013\x02", "DELAY\x01none\x02", "TIMER_DELAY_SEC\x01999999999\x02",
    "TIMER_DELIVER_MS\x01x\x02", "TRAN_MSG\x01true\x02PGROUP\x01p\x02",
    "UNIQ_KEY\x01U\x02KEYS\x01k\x02", "K\x01" + "v" * 33_000 + "\x02",
    "INNER_MULTI_DISPATCH\x01%LMQ%{new}a,%LMQ%{new}b\x02",
    "INNER_MULTI_DISPATCH\x01%LMQ%{new}a,{new}\x02",
)  # fmt: skip
SENDS = {310: "SEND_MESSAGE_V2", 10: "SEND_MESSAGE", 320: "SEND_BATCH_MESSAGE", 325: "reply"}
TOPICS = st.sampled_from(NAMES)
GROUPS = st.sampled_from(("g{new}", "g{new}", "g", "a b", ""))
QUEUES = st.sampled_from(("0", "0", "1", "99", "-1"))
EXPRESSIONS = st.sampled_from((("*", "TAG"), ("a", "TAG"), ("a > 1", "SQL92"), ("a >", "SQL92")))
Drawn = tuple[int, dict[str, str], bytes]


@st.composite
def sends(draw: Callable[..., Any]) -> Drawn:
    """A message of any kind, with which much may be wrong."""
    fields = {
        "producerGroup": "p", "topic": draw(TOPICS), "queueId": draw(QUEUES), "sysFlag": "0",
        "defaultTopic": draw(st.sampled_from(("TBW102", "TBW102", "none"))),
        "defaultTopicQueueNums": "4", "bornTimestamp": "1", "flag": "0",
        "properties": draw(st.sampled_from(PROPERTIES)),
        "reconsumeTimes": draw(st.sampled_from(("0", "17"))),
    }  # fmt: skip
    code = draw(st.sampled_from(sorted(SENDS)))
    letters = ("a", "b", "f", "c", "d", "e", "g", "h", "i", "j")
    if code in (310, 320):
        names = (
            "producerGroup", "topic", "sysFlag", "defaultTopic", "defaultTopicQueueNums",
            "queueId", "bornTimestamp", "flag", "properties", "reconsumeTimes",
        )  # fmt: skip
        order = dict(zip(names, ("a", "b", "f", "c", "d", "e", "g", "h", "i", "j"), strict=True))
        assert sorted(order.values()) == sorted(letters)
        fields = {order[name]: value for name, value in fields.items()}
    return code, fields, draw(st.sampled_from(BODIES))


@st.composite
def reads(draw: Callable[..., Any]) -> Drawn:
    """A pull, a pop, a peek, a notification, or a request that sends a message back."""
    text, kind = draw(EXPRESSIONS)
    common = {"consumerGroup": draw(GROUPS), "topic": draw(TOPICS), "queueId": draw(QUEUES)}
    pull = {
        **common, "queueOffset": "0", "maxMsgNums": "32", "commitOffset": "0", "subVersion": "0",
        "sysFlag": draw(st.sampled_from(("0", "4"))), "suspendTimeoutMillis": "0",
        "subscription": text, "expressionType": kind,
    }  # fmt: skip
    pop = {
        **common, "maxMsgNums": draw(st.sampled_from(("1", "33"))), "bornTime": "0",
        "invisibleTime": draw(st.sampled_from(("60000", "99999999999"))), "pollTime": "0",
        "initMode": "0", "order": "false", "exp": text, "expType": kind,
    }  # fmt: skip
    back = {
        "group": common["consumerGroup"], "offset": draw(st.sampled_from(("0", "7"))),
        "delayLevel": draw(st.sampled_from(("0", "-1", "3"))), "originMsgId": "x",
    }  # fmt: skip
    directly = {"consumerGroup": common["consumerGroup"], "clientId": "c", "msgId": "x"}
    asked: list[tuple[int, dict[str, str]]] = [
        (11, pull), (361, pull), (200050, pop), (200052, pop), (200054, pop), (36, back),
        (309, directly),
    ]  # fmt: skip
    code, fields = draw(st.sampled_from(asked))
    return code, fields, b""


class Broker:
    """A broker on a disk in memory, whose state can be compared."""

    def __init__(self, parts: Parts, disk: MemoryFiles) -> None:
        self.parts, self.disk = parts, disk
        self._dispatcher = Dispatcher(
            Registry(*all_processors(parts)), parts.clock, parts.clock, lambda *_: None
        )

    def serve(self, drawn: list[Drawn]) -> dict[int, int]:
        """Serves requests that came together; returns the codes of the answers by number."""
        peer = FakePeer()
        commands = [
            RemotingCommand(code, fields, body, opaque=number, version=493)
            for number, (code, fields, body) in enumerate(drawn)
        ]
        self._dispatcher.serve(peer, commands)
        answers = FrameDecoder().receive(b"".join(map(bytes, peer.written)))
        return {answer.opaque: answer.code for answer in answers}

    def state(self) -> dict[str, Any]:
        """All that a request might leave."""
        store = self.parts.store
        return {
            "topics": self.parts.topics.all(),
            "version": self.parts.topics.data_version,
            "groups": self.parts.groups.all(),
            "queues": {topic: sorted(store.queue_ids(topic)) for topic in store.topics()},
            "files": set(self.disk.maps),
            "folders": set(self.disk.directories),
            "mappings": mappings.count,
        }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    disk = MemoryFiles()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "OsFiles", lambda: disk)
        parts = Parts(
            tmp_path_factory.mktemp("drafts"),
            store_settings={
                "max_message_size": MOST_BODY_BYTES, "enable_lmq": True,
                "enable_multi_dispatch": True, "mapped_file_size_commit_log": 1 << 20,
            },
        )  # fmt: skip
    parts.topic("T")
    parts.put("T", 0)
    yield Broker(parts, disk)
    parts.store.stop(parts.now_ms)


def named(drawn: Drawn, number: int) -> Drawn:
    code, fields, body = drawn
    return code, {key: value.replace("{new}", f"N{number}") for key, value in fields.items()}, body


@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=st.one_of(sends(), sends(), reads()), has_room=st.booleans())
def test_a_refused_request_leaves_everything_as_it_was(
    broker: Broker, drawn: Drawn, *, has_room: bool
) -> None:
    before = broker.state()
    broker.disk.room_bytes = None if has_room else 0
    codes = broker.serve([named(drawn, next(NUMBERS))])
    broker.disk.room_bytes = None
    if codes and codes[0] not in GOOD and codes[0] != ResponseCode.POLLING_TIMEOUT:
        after = broker.state()
        if drawn[0] == 325:  # a reply is stored, though the one who asked is not there
            del before["topics"], after["topics"]
            return
        assert after == before


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(sends(), min_size=2, max_size=6), has_room=st.booleans())
def test_of_messages_that_come_together_each_gets_its_topic(
    broker: Broker, drawn: list[Drawn], *, has_room: bool
) -> None:
    """What is new is what messages need that were stored, also if others need it, too."""
    number = next(NUMBERS)
    drawn = [named(each, number) for each in drawn if each[0] != 325]
    before = set(broker.parts.topics.all())
    broker.disk.room_bytes = None if has_room else 0
    codes = broker.serve(drawn)
    broker.disk.room_bytes = None
    topics = set(broker.parts.topics.all())
    needed = {
        each[1].get("topic") or each[1]["b"]
        for at, each in enumerate(drawn)
        if codes[at] == ResponseCode.SUCCESS
    }
    dead = {f"%DLQ%{name.removeprefix('%RETRY%')}" for name in needed if name[:7] == "%RETRY%"}
    assert {name for name in needed if not name.startswith("%LMQ%")} <= topics
    assert topics - before <= needed | dead


def test_drafts_are_made_if_one_of_the_messages_is_stored() -> None:
    made: list[str] = []
    drafts = Drafts()
    for first, number, names in ((0, 2, "ab"), (2, 1, "bc"), (3, 1, "d")):
        drafts.begin()
        for name in names:
            drafts.want("topic", name, lambda name=name: made.append(name))  # type: ignore[misc]
        drafts.end(first, number)
    drafts.begin()
    drafts.want("topic", "e", lambda: made.append("e"))
    drafts.make({1, 2})
    assert made == ["a", "b", "d"], "c was needed by a refused message, e by none"
    drafts.make(())
    assert made == ["a", "b", "d"]
