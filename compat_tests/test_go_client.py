# SPDX-License-Identifier: Apache-2.0
"""Apache's Go client (rocketmq-client-go/v2) produces and consumes, alone and with Java."""

from pathlib import Path

import pytest

from compat_tests.go_client import GoClient, GoUnavailable, build
from compat_tests.java_client import message, text
from compat_tests.peers import ORIGINALS_OF_5, Broker, NameServer, Origin, running
from compat_tests.scene import Scene


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return build()
    except GoUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.timeout(400)  # the first time it is built
def test_go_produces_and_consumes(program: Path, broker: Broker, scene: Scene) -> None:
    topic, namesrv = scene.topic(queues=4), broker.name_server.address
    sent = GoClient(program, op="produce", namesrv=namesrv, topic=topic, count=20).events()
    assert [event["status"] for event in sent] == [0] * 11
    assert [event["count"] for event in sent] == [1] * 10 + [10]

    consume = {"op": "consume", "topic": topic, "group": scene.unique("go"), "expression": "*"}
    received = GoClient(program, namesrv=namesrv, count=20, **consume).events()
    assert {event["body"] for event in received} == {f"go-{n}" for n in range(20)}
    for event in received:
        number = event["body"].removeprefix("go-")
        assert (event["tags"], event["keys"]) == ("go", f"key-{number}")
        assert event["properties"]["number"] == number
        assert event["properties"]["größe"] == "漢字"


def test_go_creates_a_topic_and_java_consumes(program: Path, broker: Broker, scene: Scene) -> None:
    topic, namesrv = scene.unique("created-by-go"), broker.name_server.address
    GoClient(program, op="produce", namesrv=namesrv, topic=topic, count=10).events()
    scene.wait_for_route(topic)
    received = scene.push_consumer(topic, scene.unique("group"), expression="go").wait_for(10)
    assert {text(item) for item in received} == {f"go-{n}" for n in range(10)}
    for item in received:
        assert item["keys"] == "key-" + item["properties"]["number"]


def test_go_finds_a_queue_of_a_topic_with_fewer_queues_than_it_believes(
    program: Path, broker: Broker, scene: Scene, origin: Origin
) -> None:
    """The client lets every topic be made with four queues, whatever it is told to believe."""
    if origin.name in ORIGINALS_OF_5:
        pytest.skip("5.4 says INVALID_PARAMETER, after which the client tries no other queue")
    topic, namesrv = scene.unique("fewer"), broker.name_server.address
    sent = GoClient(
        program, op="produce", namesrv=namesrv, topic=topic, count=20, queues=6
    ).events()
    assert [event["status"] for event in sent] == [0] * 11
    assert {event["queue_id"] for event in sent} <= set(range(4))


def test_java_produces_and_go_filters(program: Path, broker: Broker, scene: Scene) -> None:
    topic, namesrv = scene.topic(queues=2), broker.name_server.address
    sent = [message(topic, f"m{n}", tags="odd" if n % 2 else "even") for n in range(20)]
    large = message(topic, "x" * 10_000, tags="odd")  # compressed
    scene.producer().send([*sent, large])
    consume = {"op": "consume", "topic": topic, "group": scene.unique("go"), "expression": "odd"}
    received = GoClient(program, namesrv=namesrv, count=11, **consume).events()
    expected = {f"m{n}" for n in range(1, 20, 2)} | {"x" * 10_000}
    assert {event["body"] for event in received} == expected


def test_java_produces_and_go_filters_by_sql(
    program: Path, origin: Origin, scene: Scene, test_folder: Path
) -> None:
    names = NameServer(origin, test_folder / f"go-{scene.jvm.release}" / "namesrv")
    settings = {"enablePropertyFilter": "true"}
    folder = test_folder / f"go-{scene.jvm.release}" / "broker"
    server = Broker(origin, folder, names, "broker-go", settings)
    with running(names, server):
        filtering = Scene(scene.jvm, server)
        topic, namesrv = filtering.topic(queues=2), names.address
        sent = [message(topic, f"m{n}", properties={"a": str(n)}) for n in range(20)]
        filtering.producer().send(sent)
        consume = {"op": "consume", "topic": topic, "group": scene.unique("go")}
        consume |= {"expression": "a BETWEEN 5 AND 9", "type": "SQL92"}
        received = GoClient(program, namesrv=namesrv, count=5, **consume).events()
        assert {event["body"] for event in received} == {f"m{n}" for n in range(5, 10)}
        filtering.close()
