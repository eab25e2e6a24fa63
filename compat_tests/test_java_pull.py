# SPDX-License-Identifier: Apache-2.0
"""The official Java pull consumers, classic and lite: offsets, statuses, waiting, seeking."""

import time

import pytest

from compat_tests.java_client import message, text
from compat_tests.peers import ORIGINALS_OF_5, Origin
from compat_tests.scene import Scene, poll

GET_TOPIC_CONFIG = 351
LITE_PULL_MESSAGE = 361


def needs(code: int, scene: Scene) -> None:
    """The 5.4.0 client uses codes that a 4.9.7 broker does not serve."""
    if scene.jvm.release == "5.4.0" and scene.broker.origin.behaves_as == "4.9.7":
        pytest.skip(f"the 5.4.0 client asks for code {code} here, which 4.9.7 brokers lack")


def bodies(pulled: dict[str, list[dict[str, object]]]) -> list[str]:
    return [text(item) for item in pulled["messages"]]


def test_pull_from_any_offset(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    queue, consumer = scene.queue(topic, 0), scene.pull_consumer(scene.unique("group"))
    scene.producer().send([message(topic, f"m{n}", tags=f"t{n % 2}") for n in range(5)])
    scene.read(topic, 5)

    part = consumer.pull(queue, 1, most=2)
    assert (part["status"], bodies(part), part["next_offset"]) == ("FOUND", ["m1", "m2"], 3)
    assert (part["min_offset"], part["max_offset"]) == (0, 5)
    odd = consumer.pull(queue, 0, expression="t1")
    assert (odd["status"], bodies(odd), odd["next_offset"]) == ("FOUND", ["m1", "m3"], 5)


@pytest.mark.both_releases
def test_pull_with_nothing_to_find(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    queue, consumer = scene.queue(topic, 0), scene.pull_consumer(scene.unique("group"))

    def outcome(offset: int, expression: str = "*") -> tuple[str, int]:
        pulled = consumer.pull(queue, offset, expression=expression)
        return pulled["status"], pulled["next_offset"]

    assert outcome(0) == ("NO_NEW_MSG", 0)
    assert outcome(5) == ("OFFSET_ILLEGAL", 0)
    scene.producer().send([message(topic, f"m{n}", tags="t") for n in range(5)])
    scene.read(topic, 5)
    assert outcome(5) == ("NO_NEW_MSG", 5)
    assert outcome(6) == ("OFFSET_ILLEGAL", 5)
    assert outcome(100) == ("OFFSET_ILLEGAL", 5)
    assert outcome(0, "other") == ("NO_MATCHED_MSG", 5)


def test_a_blocking_pull_waits_for_a_message(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    consumer = scene.pull_consumer(scene.unique("group"))
    producer = scene.producer()
    waiting = scene.jvm.submit(
        "pull",
        name=consumer.name,
        queue=scene.queue(topic, 0),
        expression="*",
        offset=0,
        max=32,
        block=True,
    )
    time.sleep(0.5)
    assert not waiting.done()
    producer.send([message(topic, "at last")])
    pulled = waiting.result(4)
    assert (pulled["status"], bodies(pulled)) == ("FOUND", ["at last"])
    assert pulled["took_ms"] >= 400


def test_offsets_of_a_queue(scene: Scene, origin: Origin) -> None:
    topic = scene.topic(queues=1)
    queue, consumer = scene.queue(topic, 0), scene.reader()
    assert (consumer.min_offset(queue), consumer.max_offset(queue)) == (0, 0)
    assert consumer.earliest_store_time(queue) == -1
    assert consumer.search_offset(queue, 5) == 0

    producer = scene.producer()
    for number in range(5):
        producer.send([message(topic, f"m{number}")])
        time.sleep(0.005)  # a store time of its own for each
    times = [item["store_timestamp"] for item in scene.read(topic, 5)]
    assert (consumer.min_offset(queue), consumer.max_offset(queue)) == (0, 5)
    assert consumer.earliest_store_time(queue) == times[0]
    assert consumer.search_offset(queue, 0) == 0
    assert [consumer.search_offset(queue, time_ms) for time_ms in times] == [0, 1, 2, 3, 4]
    # 4.9.7 takes the nearest message, 5.4.0 the first that is not older.
    between = {"4.9.7": 2, "5.4.0": 3}[origin.behaves_as]
    assert consumer.search_offset(queue, times[2] + 1) == between
    beyond = {"4.9.7": 4, "5.4.0": 5}[origin.behaves_as]
    assert consumer.search_offset(queue, times[4] + 100_000) == beyond


def test_offsets_of_a_group(scene: Scene, origin: Origin) -> None:
    topic = scene.topic(queues=1)
    queue = scene.queue(topic, 0)
    consumer, other = (scene.pull_consumer(scene.unique("group")) for _ in range(2))
    # A queue that never had a message: 0 from 4.9.7 and from ours, so that no new group loses
    # what is sent between its subscription and its first pull; none from 5.4.0.
    assert consumer.fetch_offset(queue) == (-1 if origin.name in ORIGINALS_OF_5 else 0)
    scene.producer().send([message(topic, f"m{n}") for n in range(5)])
    scene.read(topic, 5)
    # The group is new, but so is the queue: its first message is in memory, so it begins there.
    assert consumer.fetch_offset(queue) == 0

    consumer.pull(queue, 0)  # before its first pull or heartbeat a group does not exist for 5.4.0
    consumer.store_offset(queue, 3)
    poll(lambda: consumer.fetch_offset(queue) == 3, "the broker has the offset")
    assert other.fetch_offset(queue) == 0


def test_admin_sees_the_offsets(scene: Scene) -> None:
    needs(GET_TOPIC_CONFIG, scene)
    topic = scene.topic(queues=3)
    scene.producer().send([message(topic, f"m{n}") for n in range(9)])
    scene.read(topic, 9)
    stats = scene.admin().topic_stats(topic)
    assert [(queue["queue_id"], queue["min_offset"], queue["max_offset"]) for queue in stats] == [
        (0, 0, 3),
        (1, 0, 3),
        (2, 0, 3),
    ]


@pytest.mark.both_releases
def test_lite_consumer_subscribes(scene: Scene) -> None:
    needs(LITE_PULL_MESSAGE, scene)
    topic, group = scene.topic(queues=4), scene.unique("group")
    producer = scene.producer()
    sent = [message(topic, f"m{n}", tags="a" if n % 3 else "b") for n in range(30)]
    producer.send(sent)
    consumer = scene.lite_consumer(group, topic=topic, expression="a", auto_commit=True)
    received = consumer.poll_until(20)
    assert {queue["queue_id"] for queue in consumer.assignment()} == {0, 1, 2, 3}
    assert sorted(text(item) for item in received) == sorted(f"m{n}" for n in range(30) if n % 3)

    producer.send([message(topic, "later", tags="a")])
    assert [text(item) for item in consumer.poll_until(1)] == ["later"]


@pytest.mark.both_releases
def test_lite_consumer_assigns_seeks_and_commits(scene: Scene) -> None:
    needs(LITE_PULL_MESSAGE, scene)
    topic, group = scene.topic(queues=2), scene.unique("group")
    producer = scene.producer()
    queue, unassigned = scene.queue(topic, 0), scene.queue(topic, 1)
    producer.send([message(topic, f"m{n}") for n in range(10)], queue=queue)
    producer.send([message(topic, "not mine")], queue=unassigned)
    consumer = scene.lite_consumer(group, queues=[queue])
    assert [text(item) for item in consumer.poll_until(10)] == [f"m{n}" for n in range(10)]

    consumer.seek(queue, 7)
    assert [text(item) for item in consumer.poll_until(3)] == ["m7", "m8", "m9"]
    consumer.seek(queue, "begin")
    assert text(consumer.poll_until(10)[0]) == "m0"
    consumer.seek(queue, "end")
    producer.send([message(topic, "new")], queue=queue)
    assert [text(item) for item in consumer.poll_until(1)] == ["new"]

    consumer.poll(0.1)
    consumer.commit()
    poll(lambda: consumer.committed(queue) == 11, "the offset is committed")
    scene.stopped(consumer)
    producer.send([message(topic, "after")], queue=queue)
    successor = scene.lite_consumer(group, queues=[queue])
    assert [text(item) for item in successor.poll_until(1)] == ["after"]


def test_lite_consumer_finds_offsets_by_time(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    queue = scene.queue(topic, 0)
    producer = scene.producer()
    for number in range(3):
        producer.send([message(topic, f"m{number}")])
        time.sleep(0.005)
    times = [item["store_timestamp"] for item in scene.read(topic, 3)]
    consumer = scene.lite_consumer(scene.unique("group"), queues=[queue])
    assert [consumer.offset_for_timestamp(queue, time_ms) for time_ms in times] == [0, 1, 2]
