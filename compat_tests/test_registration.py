# SPDX-License-Identifier: Apache-2.0
"""Our name servers and brokers together with the original's, judged by official Java clients.

Official brokers of both releases register with the name server under test, and the broker under
test registers with official name servers of both releases.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, JavaError, message
from compat_tests.peers import Broker, NameServer, Origin, Original, running
from compat_tests.scene import Scene, poll


@pytest.fixture(scope="module", params=RELEASES)
def official_broker(
    request: pytest.FixtureRequest, engine: Engine, origin: Origin, work_folder: Path
) -> Iterator[Broker]:
    """An official broker at a name server of the origin under test."""
    release: str = request.param
    names = NameServer(origin, work_folder / f"namesrv-for-{release}")
    official = Original(release, engine)
    broker = Broker(official, work_folder / f"official-{release}", names, "broker-official", {})
    with running(names, broker):
        yield broker


@pytest.fixture(scope="module", params=RELEASES)
def broker_elsewhere(
    request: pytest.FixtureRequest, engine: Engine, origin: Origin, work_folder: Path
) -> Iterator[Broker]:
    """A broker of the origin under test at an official name server."""
    release: str = request.param
    names = NameServer(Original(release, engine), work_folder / f"official-namesrv-{release}")
    broker = Broker(origin, work_folder / f"broker-at-{release}", names, "broker-ours", {})
    with running(names, broker):
        yield broker


def scene_at(jvm: ClientJvm, broker: Broker) -> Scene:
    broker.ensure_running()
    return Scene(jvm, broker)


def produce_and_consume(scene: Scene) -> None:
    """An auto-created topic and one that the admin makes; each message comes once."""
    created = scene.unique("created")
    producer = scene.producer()
    producer.send([message(created, "first")])
    scene.wait_for_route(created)
    for topic in (created, scene.topic(queues=2)):
        consumer = scene.push_consumer(topic, scene.unique("group"))
        producer.send([message(topic, f"m{n}", tags="t") for n in range(20)])
        expected = sorted([f"m{n}" for n in range(20)] + (["first"] if topic == created else []))
        consumer.wait_for(len(expected))
        assert sorted(consumer.bodies()) == expected
        assert scene.admin().topic_route(topic) == {scene.broker.name: {"0": scene.broker.address}}


def test_an_official_broker_at_our_name_server(jvm: ClientJvm, official_broker: Broker) -> None:
    scene = scene_at(jvm, official_broker)
    produce_and_consume(scene)
    scene.close()


def test_our_broker_at_an_official_name_server(jvm: ClientJvm, broker_elsewhere: Broker) -> None:
    scene = scene_at(jvm, broker_elsewhere)
    produce_and_consume(scene)
    scene.close()


def test_a_route_goes_with_an_official_broker(
    first_jvm: ClientJvm, official_broker: Broker
) -> None:
    """Its connection breaks: the name server forgets it, and knows it again when it is back."""
    assert_route_goes_and_comes(scene_at(first_jvm, official_broker))


def test_a_route_goes_with_our_broker(first_jvm: ClientJvm, broker_elsewhere: Broker) -> None:
    assert_route_goes_and_comes(scene_at(first_jvm, broker_elsewhere))


def assert_route_goes_and_comes(scene: Scene) -> None:
    topic = scene.topic()
    scene.broker.kill()

    def gone() -> bool:
        try:
            scene.admin().topic_route(topic)
        except JavaError as error:
            return error.code == 17
        return False

    poll(gone, "the name server has forgotten the broker", 60)
    scene.broker.start()
    scene.wait_for_route(topic)
    scene.producer().send([message(topic, "m")])
    assert len(scene.read(topic, 1)) == 1
