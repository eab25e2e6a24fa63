# SPDX-License-Identifier: Apache-2.0
"""A broker that stops, or is killed, and comes back, and one whose oldest files have expired."""

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compat_tests.java_client import ClientJvm, Json, message
from compat_tests.our_consumer import OurConsumer
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene, poll

FILE_BYTES = 1024 * 1024


@pytest.fixture(scope="module")
def mortal_broker(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """A broker with a name server of its own, for these tests to stop, with small files."""
    names = NameServer(origin, work_folder / "mortal-namesrv")
    settings = {"mappedFileSizeCommitLog": str(FILE_BYTES), "flushConsumerOffsetInterval": "200"}
    broker = Broker(origin, work_folder / "mortal-broker", names, "broker-mortal", settings)
    with running(names, broker):
        yield broker


@pytest.fixture
def mortal_scene(jvm: ClientJvm, mortal_broker: Broker) -> Iterator[Scene]:
    mortal_broker.ensure_running()
    scene = Scene(jvm, mortal_broker)
    yield scene
    scene.close()


def stored_offsets(broker: Broker, topic: str, group: str) -> int:
    """The sum of a group's offsets in the broker's file, whose inner keys are bare numbers."""
    file = broker.store / "config" / "consumerOffset.json"
    if not file.exists():
        return 0
    entry = re.search(rf'"{topic}@{group}"\s*:\s*{{([^}}]*)}}', file.read_text())
    return 0 if entry is None else sum(int(n) for n in re.findall(r":\s*(\d+)", entry.group(1)))


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_messages_and_offsets_survive(mortal_scene: Scene, end: str) -> None:
    scene, broker = mortal_scene, mortal_scene.broker
    topic, group = scene.topic(queues=2), scene.unique("group")
    producer = scene.producer()
    first = scene.push_consumer(topic, group)
    producer.send([message(topic, f"a{n}") for n in range(30)])
    first.wait_for(30)
    # The client counts a message as consumed a moment after its listener has returned. One that is
    # stopped within that moment commits less, so it is stopped when it has committed them all.
    poll(lambda: stored_offsets(broker, topic, group) == 30, "the broker has written the offsets")
    scene.stopped(first)
    producer.send([message(topic, f"b{n}") for n in range(10)])

    if end == "stop":
        broker.stop()
    else:
        broker.kill()
    broker.start()
    producer.send([message(topic, f"c{n}") for n in range(10)])

    second = scene.push_consumer(topic, group)
    late = [f"{letter}{n}" for letter in "bc" for n in range(10)]
    second.wait_for(20)
    assert sorted(second.bodies()) == sorted(late)
    stored = scene.read(topic, 50)
    places = [(item["queue_id"], item["queue_offset"]) for item in stored]
    assert places == [(queue, offset) for queue in (0, 1) for offset in range(25)]
    assert (broker.store / "abort").exists()


@pytest.mark.both_releases
def test_a_waiting_consumer_survives(mortal_scene: Scene) -> None:
    """Takes half a minute with the 4.9.7 client: it waits for the answer of its last pull."""
    scene, broker = mortal_scene, mortal_scene.broker
    topic = scene.topic(queues=2)
    producer = scene.producer()
    survivor = scene.push_consumer(topic, scene.unique("group"), heartbeat_ms=1000)
    producer.send([message(topic, f"a{n}") for n in range(10)])
    survivor.wait_for(10)
    broker.kill()
    broker.start()
    producer.send([message(topic, f"b{n}") for n in range(10)])
    survivor.wait_for(20, timeout_s=60)
    assert sorted(survivor.bodies()) == sorted(f"{letter}{n}" for letter in "ab" for n in range(10))


def test_a_stopped_broker_leaves_no_abort_file(mortal_scene: Scene) -> None:
    broker = mortal_scene.broker
    mortal_scene.producer().send([message(mortal_scene.topic(), "m")])
    broker.stop()
    assert not (broker.store / "abort").exists()
    assert broker.address.encode() not in broker.name_server.cluster_info()
    broker.start()


@dataclass(frozen=True)
class Aged:
    """A topic of one queue whose first messages are no longer there."""

    topic: str
    min_offset: int
    newer_since: datetime
    """When the last ten messages began."""


@pytest.fixture(scope="module")
def aged(mortal_broker: Broker, first_jvm: ClientJvm) -> Aged:
    mortal_broker.ensure_running()
    scene = Scene(first_jvm, mortal_broker)
    topic = scene.topic("aged", queues=1)
    chance = random.Random(5)
    producer = scene.producer(compress_over_bytes=100_000_000)

    def send(count: int) -> list[int]:
        sent = [message(topic, chance.randbytes(100_000)) for _ in range(count)]
        return [int(result["offset_msg_id"][16:], 16) for result in producer.send(sent)]

    places = send(20)
    time.sleep(0.5)  # a broker of 4.9.7 finds the message that is nearest to a time
    time.sleep(1 - time.time() % 1 + 0.01)  # clients give times in whole seconds
    now = datetime.now(UTC).replace(microsecond=0)
    places += send(10)
    scene.close()

    mortal_broker.stop()
    kept_from = places[12] // FILE_BYTES * FILE_BYTES
    for file in (mortal_broker.store / "commitlog").iterdir():
        if int(file.name) < kept_from:
            file.unlink()
    mortal_broker.start()
    return Aged(topic, next(n for n, place in enumerate(places) if place >= kept_from), now)


def test_the_oldest_messages_are_gone(mortal_scene: Scene, aged: Aged) -> None:
    queue, reader = mortal_scene.queue(aged.topic, 0), mortal_scene.reader()
    assert 0 < aged.min_offset <= 12
    assert reader.min_offset(queue) == aged.min_offset
    assert reader.max_offset(queue) >= 30
    too_early = reader.pull(queue, 0)
    assert (too_early["status"], too_early["next_offset"]) == ("OFFSET_ILLEGAL", aged.min_offset)
    found = reader.pull(queue, aged.min_offset)
    assert found["messages"][0]["queue_offset"] == aged.min_offset
    assert reader.search_offset(queue, 0) == aged.min_offset


@pytest.mark.both_releases
def test_consume_from_last(mortal_scene: Scene, aged: Aged) -> None:
    """A group that never was begins at the end, as this queue no longer has its beginning."""
    scene = mortal_scene
    reader, queue = scene.reader(), scene.queue(aged.topic, 0)
    reader.pull(queue, aged.min_offset)
    consumer = scene.push_consumer(
        aged.topic, scene.unique("group"), **{"from": "CONSUME_FROM_LAST_OFFSET"}
    )
    poll(lambda: len(consumer.assignment()) == 1, "the consumer has its queue")
    end = reader.max_offset(queue)
    scene.producer().send([message(aged.topic, "new")])
    consumer.wait_for(1)
    assert consumer.bodies() == ["new"]
    assert consumer.messages()[0]["queue_offset"] == end


def test_consume_from_timestamp(mortal_scene: Scene, aged: Aged) -> None:
    scene = mortal_scene
    settings = {
        "from": "CONSUME_FROM_TIMESTAMP",
        "timestamp": aged.newer_since.strftime("%Y%m%d%H%M%S"),
    }
    consumer = scene.push_consumer(aged.topic, scene.unique("group"), **settings)

    def offsets() -> set[int]:
        return {item["queue_offset"] for item in consumer.messages()}

    scene.jvm.wait_for(lambda: set(range(20, 30)) <= offsets(), "the last ten")
    assert min(offsets()) == 20


def test_consume_from_first(mortal_scene: Scene, aged: Aged) -> None:
    scene = mortal_scene
    consumer = scene.push_consumer(aged.topic, scene.unique("group"))
    # The 4.9.7 client starts at 0 and corrects that only after half a minute.
    consumer.wait_for(30 - aged.min_offset, timeout_s=75)
    first = min(item["queue_offset"] for item in consumer.messages())
    assert first == aged.min_offset
    assert all(item["body_bytes"] in (100_000, 3) for item in consumer.messages())


@pytest.mark.parametrize("where", ["FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"])
def test_our_consumers_begin_where_official_ones_do(
    mortal_scene: Scene, aged: Aged, where: str
) -> None:
    scene = mortal_scene
    reader, queue = scene.reader(), scene.queue(aged.topic, 0)
    config: Json = {"consume_from": where}
    if where == "TIMESTAMP":
        config["consume_timestamp_ms"] = int(aged.newer_since.timestamp() * 1000)
    consumer = OurConsumer(scene, "push", aged.topic, scene.unique("group"), config=config)
    try:
        poll(lambda: len(consumer.assignment()) == 1, "the consumer has its queue", 60)
        time.sleep(1)  # it may have to ask where to begin
        end = reader.max_offset(queue)
        scene.producer().send([message(aged.topic, "new")])
        begin = {"FIRST_OFFSET": aged.min_offset, "LAST_OFFSET": end, "TIMESTAMP": 20}[where]
        consumer.wait_for(end + 1 - begin)
        offsets = [each["queue_offset"] for each in consumer.messages()]
        assert sorted(offsets) == list(range(begin, end + 1))
    finally:
        consumer.kill()
