# SPDX-License-Identifier: Apache-2.0
"""Transactions and requests of Apache's Go client."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.go_client import GoClient, GoUnavailable, build
from compat_tests.java_client import ClientJvm, message, text
from compat_tests.peers import Broker, NameServer, Origin
from compat_tests.scene import Scene
from compat_tests.test_java_request import asker_of, replier_of
from compat_tests.test_java_transaction import SETTINGS


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return build()
    except GoUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def go_broker(origin: Origin, name_server: NameServer, work_folder: Path) -> Iterator[Broker]:
    broker = Broker(origin, work_folder / "go-transactions", name_server, "broker-g", SETTINGS)
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def go_scene(first_jvm: ClientJvm, go_broker: Broker) -> Iterator[Scene]:
    scene = Scene(first_jvm, go_broker)
    yield scene
    scene.close()


@pytest.mark.timeout(500)  # the first time it is built
def test_go_ends_transactions(program: Path, go_scene: Scene) -> None:
    scene = go_scene
    topic, group = scene.topic(queues=2), scene.unique("go")
    messages = [
        {"body": "commit", "local": "commit"},
        {"body": "rollback", "local": "rollback"},
        {"body": "late commit", "local": "unknown", "check": "commit"},
        {"body": "late rollback", "local": "unknown", "check": "rollback"},
    ]
    run = GoClient(
        program, op="transact", namesrv=scene.namesrv, topic=topic, group=group,
        messages=messages, count=2,
    )  # fmt: skip
    events = run.events()
    assert [event["status"] for event in events if event["event"] == "sent"] == [0] * 4
    asked = {event["body"] for event in events if event["event"] == "check"}
    assert asked == {"late commit", "late rollback"}
    found = scene.read(topic, 2)
    assert sorted(text(item) for item in found) == ["commit", "late commit"]


@pytest.mark.timeout(500)
def test_go_asks_and_java_replies(program: Path, go_scene: Scene) -> None:
    topic, group = go_scene.topic(queues=1), go_scene.unique("go-asks")
    replier_of(go_scene, topic)
    run = GoClient(program, op="ask", namesrv=go_scene.namesrv, topic=topic, group=group, count=3)
    assert [event["body"] for event in run.events()] == ["re: go-0", "re: go-1", "re: go-2"]


@pytest.mark.timeout(500)
def test_java_asks_and_go_replies(program: Path, go_scene: Scene) -> None:
    topic, group = go_scene.topic(queues=1), go_scene.unique("go-replies")
    run = GoClient(
        program, op="answer", namesrv=go_scene.namesrv, topic=topic, group=group, count=2
    )
    asker = asker_of(go_scene)
    for word in ("one", "two"):
        assert text(asker.request(message(topic, word), timeout_s=40)) == f"re: {word}"
    assert [event["event"] for event in run.events()] == ["replied"] * 2
