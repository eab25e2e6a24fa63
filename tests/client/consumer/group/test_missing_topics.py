# SPDX-License-Identifier: Apache-2.0
"""Topics that are not there yet: who waits for them, how often they are asked for, what is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from twisted.logger import ILogObserver, globalLogPublisher

from tests.client.fakes import BROKER_A, NAME_SERVER, Scene, a_route, result_of
from txrocketmq.client.base.errors import NoNameServer
from txrocketmq.client.consumer.group.missing_topics import ASK_MS, MissingTopics
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is logged, as text."""
    texts: list[str] = []

    def note(event: Any) -> None:
        texts.append(f"{event['log_level'].name}: " + event["log_format"].format(**event))

    observer = cast(ILogObserver, note)
    globalLogPublisher.addObserver(observer)
    yield texts
    globalLogPublisher.removeObserver(observer)


def asked(scene: Scene) -> int:
    return len(scene.connections.questions(GET_ROUTEINFO_BY_TOPIC))


def test_a_missing_topic_is_told_once_and_asked_for_once_a_second(
    scene: Scene, said: list[str]
) -> None:
    missing = MissingTopics(scene.client, "g")
    for _ in range(3):
        assert result_of(missing.queues_of("T")) is None
    assert missing
    assert asked(scene) == 1
    scene.time.advance(ASK_MS / 1000)
    assert result_of(missing.queues_of("T")) is None
    assert asked(scene) == 2
    (warning,) = said
    assert warning == (
        "warn: a consumer of group g waits for a topic that does not exist yet: topic T has no"
        f" route: no broker registered at {NAME_SERVER} has it"
    )


def test_brokers_of_a_topic_that_has_come_hear_of_the_consumer(
    scene: Scene, said: list[str]
) -> None:
    scene.connections.on(BROKER_A, heartbeat.HEART_BEAT, Reply())
    missing = MissingTopics(scene.client, "g")
    result_of(missing.look_for(["T"]))
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.client.register_producer("g")
    scene.time.advance(ASK_MS / 1000)
    queues = result_of(missing.queues_of("T"))
    assert queues is not None
    assert len(queues) == 1
    assert len(scene.connections.questions(heartbeat.HEART_BEAT)) == 1
    assert said[1:] == ["info: topic T exists now"]
    result_of(missing.queues_of("T"))
    assert len(said) == 2
    assert not missing


def test_it_asks_on_until_the_topic_comes_or_nobody_wants_it(scene: Scene) -> None:
    heard: list[str] = []
    missing = MissingTopics(scene.client, "g")
    result_of(missing.look_for(["T", "U"]))
    for topic in "TU":
        scene.client.watch(topic, lambda topic=topic: heard.append(topic))  # type: ignore[misc]
    for _ in range(2):
        missing.ask_on(["T"])
    scene.time.advance(ASK_MS / 1000)
    assert asked(scene) == 3
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.time.advance(ASK_MS / 1000)
    assert heard == ["T"]
    assert result_of(missing.queues_of("T"))
    scene.time.advance(2 * ASK_MS / 1000)
    assert asked(scene) == 4
    missing.stop()
    assert scene.time.getDelayedCalls() == []


def test_name_servers_that_are_away_are_asked_again(scene: Scene) -> None:
    missing = MissingTopics(scene.client, "g")
    result_of(missing.look_for(["T"]))
    scene.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, ConnectError("refused"))
    missing.ask_on(["T"])
    scene.time.advance(ASK_MS / 1000)
    scene.time.advance(ASK_MS / 1000)
    assert asked(scene) == 3
    missing.stop()
    with pytest.raises(NoNameServer):
        result_of(MissingTopics(scene.client, "g").queues_of("T"))
