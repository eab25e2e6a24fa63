# SPDX-License-Identifier: Apache-2.0
"""The official Java clients in other modes: binary headers, VIP port, both releases at once."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, message, text
from compat_tests.peers import Broker
from compat_tests.scene import Scene, poll


@pytest.fixture(params=RELEASES)
def binary_scene(
    request: pytest.FixtureRequest, engine: Engine, work_folder: Path, broker: Broker
) -> Iterator[Scene]:
    """Clients that write command headers in RocketMQ's binary form instead of JSON."""
    release: str = request.param
    options = ["-Drocketmq.serialize.type=ROCKETMQ"]
    jvm = ClientJvm(release, engine, work_folder / f"java-binary-{release}", options)
    yield Scene(jvm, broker)
    jvm.kill()


def test_binary_headers(binary_scene: Scene) -> None:
    scene = binary_scene
    topic = scene.topic(queues=2)
    producer = scene.producer()
    consumer = scene.push_consumer(topic, scene.unique("group"), expression="a || b")
    orderly = scene.push_consumer(topic, scene.unique("group"), orderly=True)
    properties = {"größe": "漢字"}
    sent = [
        message(topic, f"m{n}", tags="abc"[n % 3], keys=f"k{n}", properties=properties)
        for n in range(12)
    ]
    results = producer.send(sent) + producer.send([message(topic, "async")], mode="async")
    producer.send([message(topic, "oneway", tags="a")], mode="oneway")
    producer.send_batch([message(topic, f"batch{n}", tags="b") for n in range(3)])

    assert {result["status"] for result in results} == {"SEND_OK"}
    expected = {*(f"m{n}" for n in range(12) if n % 3 < 2), "oneway", "batch0", "batch1", "batch2"}
    consumer.wait_for(len(expected))
    assert set(consumer.bodies()) == expected
    orderly.wait_for(17)
    by_body = {text(item): item for item in orderly.messages()}
    assert by_body["m4"]["keys"] == "k4"
    assert by_body["m4"]["properties"]["größe"] == "漢字"


def test_the_vip_port(scene: Scene) -> None:
    """Two below the main port: for all that clients send but pulls."""
    topic = scene.topic(queues=2)
    producer = scene.producer(vip=True)
    producer.send([message(topic, f"m{n}") for n in range(10)])
    consumer = scene.push_consumer(topic, scene.unique("group"), vip=True)
    consumer.wait_for(10)
    assert sorted(consumer.bodies()) == sorted(f"m{n}" for n in range(10))


def test_one_group_of_both_releases(jvms: dict[str, ClientJvm], broker: Broker) -> None:
    """They share the queues out alike, and the older reads what the newer has compressed."""
    scenes = [Scene(jvm, broker) for jvm in jvms.values()]
    topic, group = scenes[0].topic(queues=4), scenes[0].unique("group")
    consumers = [scene.push_consumer(topic, group) for scene in scenes]

    def shared_out() -> bool:
        parts = [{queue["queue_id"] for queue in consumer.assignment()} for consumer in consumers]
        return [len(part) for part in parts] == [2, 2] and not parts[0] & parts[1]

    poll(shared_out, "each has two queues")
    sent = []
    for compression in ("ZLIB", "LZ4", "ZSTD"):
        bodies = [f"{compression} {n} ".encode() + b"x" * 10_000 for n in range(8)]
        scenes[1].producer(compression=compression).send([message(topic, data) for data in bodies])
        sent += [hashlib.sha256(data).hexdigest() for data in bodies]
    for consumer in consumers:
        consumer.wait_for(12)
    received = [item["body_sha256"] for each in consumers for item in each.messages()]
    assert sorted(received) == sorted(sent)
    for scene in scenes:
        scene.close()
