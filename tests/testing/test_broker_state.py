# SPDX-License-Identifier: Apache-2.0
"""What is looked up in a broker, with its parts on a small store."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock

from tests.broker.conftest import Parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.testing import broker_state
from txrocketmq.testing.broker_state import BrokerState


class Scene:
    def __init__(self, folder: Path, config: BrokerConfig | None = None) -> None:
        self.parts = Parts(folder, config)
        self.routes: dict[str, int] = {}
        self.reactor = ReactorClock()
        service: Any = SimpleNamespace(
            broker=SimpleNamespace(parts=self.parts),
            name_server=SimpleNamespace(table=SimpleNamespace(route=self.route)),
        )
        self.state = BrokerState(service, Clock(self.reactor))

    def route(self, topic: str) -> Any:
        queues = self.routes.get(topic)
        if queues is None:
            return None
        return SimpleNamespace(queue_datas=[SimpleNamespace(write_queue_nums=queues)])


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.parts.store.stop(made.parts.now_ms)


def test_a_topic_is_made_when_the_name_server_has_it(scene: Scene) -> None:
    done: list[None] = []
    scene.state.create_topic("T", 2).addCallback(done.append)
    made = scene.parts.topics.get("T")
    assert made is not None
    assert (made.read_queue_nums, made.write_queue_nums) == (2, 2)
    scene.routes["T"] = 1  # an older one
    scene.reactor.advance(0.1)
    assert done == []
    scene.routes["T"] = 2
    scene.reactor.advance(0.1)
    assert done == [None]


def test_a_name_server_that_does_not_hear_of_it_is_told(scene: Scene) -> None:
    failed: list[str] = []
    scene.state.create_topic("T").addErrback(lambda why: failed.append(why.getErrorMessage()))
    scene.reactor.pump([0.1] * (broker_state.ROUTE_MS // 100 + 2))
    assert failed == ["the name server has no route of topic T"]


@pytest.mark.parametrize(
    ("topic", "queues", "why"),
    [
        ("a b", 4, "illegal characters"),
        ("", 4, "blank"),
        ("T", 0, "from 1 to 1024 queues, not 0"),
        ("T", 1025, "from 1 to 1024 queues, not 1025"),
    ],
)
def test_what_cannot_be_a_topic_is_told(scene: Scene, topic: str, queues: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        scene.state.create_topic(topic, queues)
    assert scene.state.topics() == []


def test_a_topic_has_the_type_that_was_given_last(scene: Scene) -> None:
    for given, its in [(None, None), ("FIFO", "FIFO"), (None, "FIFO"), ("DELAY", "DELAY")]:
        scene.state.create_topic("T", 2, given).addErrback(lambda _: None)
        made = scene.parts.topics.get("T")
        assert made is not None
        assert made.attributes.get("message.type") == its


@pytest.mark.parametrize("wrong", ["fifo", "MIXED", "", 5])
def test_a_type_that_is_none_is_told(scene: Scene, wrong: Any) -> None:
    with pytest.raises(ValueError, match="one of NORMAL, FIFO, DELAY, TRANSACTION, PRIORITY, not"):
        scene.state.create_topic("T", 2, wrong)
    assert scene.state.topics() == []


def test_a_missing_topic_is_made_only_where_sends_may(tmp_path: Path) -> None:
    for allowed in (True, False):
        config = BrokerConfig(auto_create_topic_enable=allowed)
        scene = Scene(tmp_path / str(allowed), config)
        assert (scene.state.ensure_topic("T") is None) is not allowed
        assert scene.state.topics() == (["T"] if allowed else [])
        scene.parts.store.stop(scene.parts.now_ms)


def test_a_topic_that_a_send_has_made_is_there_when_the_name_server_has_it(scene: Scene) -> None:
    scene.state.create_topic("T", 2).addErrback(lambda _: None)
    done: list[None] = []
    ensured = scene.state.ensure_topic("T")
    assert ensured is not None
    ensured.addCallback(done.append)
    scene.reactor.advance(0.1)
    assert done == []
    scene.routes["T"] = 2
    scene.reactor.advance(0.1)
    assert done == [None]


def test_topics_and_groups_are_those_of_clients(scene: Scene) -> None:
    assert (scene.state.topics(), scene.state.groups()) == ([], [])
    for name in ("U", "T", "%RETRY%g", "%DLQ%g"):
        scene.parts.topic(name)
    scene.parts.consumer("g", "c1", "T")
    scene.parts.groups.find("made")
    scene.parts.offsets.commit("committed", "T", 0, 1)
    scene.parts.offsets.commit("CID_RMQ_SYS_TRANS", "T", 0, 1)
    assert scene.state.topics() == ["%DLQ%g", "T", "U"]
    assert scene.state.groups() == ["committed", "g", "made"]


def test_lag_is_told_by_queue(scene: Scene) -> None:
    scene.parts.topic("T")
    for queue_id in (0, 0, 0, 2):
        scene.parts.put("T", queue_id)
    with pytest.raises(ValueError, match="group g consumes no topic yet; groups that do: none"):
        scene.state.lag("g")
    scene.parts.consumer("g", "c1", "T", "%RETRY%g")
    assert scene.state.lag("g") == {"%RETRY%g": [], "T": [[0, 0, 3], [2, 0, 1]]}
    scene.parts.offsets.commit("g", "T", 0, 2)
    scene.parts.offsets.commit("g", "U", 0, 2)
    scene.parts.put("%RETRY%g", 0)
    assert scene.state.lag("g") == {"%RETRY%g": [[0, 0, 1]], "T": [[0, 2, 3], [2, 0, 1]], "U": []}


def test_a_group_that_has_only_its_retry_topic_consumes_none_yet(scene: Scene) -> None:
    scene.parts.consumer("g", "c1", "%RETRY%g")
    with pytest.raises(ValueError, match="group g consumes no topic yet; groups that do: g"):
        scene.state.lag("g")


def test_messages_are_given_in_pages(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_state, "PAGE_MESSAGES", 2)
    scene.parts.topic("T")
    for body in (b"a", b"b", b"c"):
        scene.parts.put("T", 1, body=body)
    assert scene.state.queue_ids("T") == [1]
    found: list[bytes] = []
    offset, following = -1, 0
    while following != offset:
        offset = following
        page = scene.state.records("T", 1, offset)
        following = page["next"]
        messages = decode_messages(base64.b64decode(page["records"]))
        assert len(messages) <= 2
        found += [message.body for message in messages]
    assert found == [b"a", b"b", b"c"]
    assert scene.state.records("T", 0, 0) == {"records": "", "next": 0}


def test_a_topic_that_is_missing_is_told_with_those_that_are_there(scene: Scene) -> None:
    scene.parts.topic("T")
    with pytest.raises(ValueError, match="the broker has no topic U; it has: T"):
        scene.state.queue_ids("U")
