# SPDX-License-Identifier: Apache-2.0
"""The official Java orderly consumer: order by key, and who holds the lock of a queue."""

import json
import time
from collections import defaultdict

import pytest

from compat_tests import probe
from compat_tests.java_client import Json, PushConsumer, message, text
from compat_tests.scene import Scene, poll

LOCK_BATCH_MQ = 41
UNLOCK_BATCH_MQ = 42
# A consumer that still has messages of a queue at hand when it loses it unlocks it only 20 s later
# (RebalancePushImpl.unlockDelay), and one that was refused a lock asks again after up to 20 s.
HANDED_OVER_S = 60.0


def locked(consumer: PushConsumer) -> set[int]:
    return {queue["queue_id"] for queue in consumer.assignment() if queue["locked"]}


def assert_in_order(events: list[Json]) -> None:
    """Per queue and per key nothing comes before what was sent earlier, repetitions left out."""
    last: dict[int, int] = defaultdict(lambda: -1)
    steps: dict[str, list[int]] = defaultdict(list)
    for event in events:
        received = event["message"]
        queue = received["queue_id"]
        if received["queue_offset"] > last[queue]:
            assert received["queue_offset"] == last[queue] + 1, f"a gap in queue {queue}"
            last[queue] = received["queue_offset"]
            key, _, step = text(received).partition("/")
            steps[key].append(int(step))
    for key, seen in steps.items():
        assert seen == sorted(seen), key


def try_lock(scene: Scene, group: str, client_id: str, topic: str, queue_id: int) -> bool:
    """Ask the broker for the lock as a client of this id would."""
    queue = {"topic": topic, "brokerName": scene.broker.name, "queueId": queue_id}
    body = json.dumps({"consumerGroup": group, "clientId": client_id, "mqSet": [queue]})
    header, answer = probe.request(scene.broker.port, LOCK_BATCH_MQ, body=body.encode())
    assert header["code"] == 0, header
    granted = json.loads(answer)["lockOKMQSet"]
    assert granted in ([], [queue]), granted
    return bool(granted)


def halved(first: PushConsumer, second: PushConsumer) -> bool:
    """Whether each has locked two of four queues; if not yet, the second is told to ask again.

    It may have asked just before the first let go, and a 4.9.7 consumer then waits for 20 s.
    """
    left, right = locked(first), locked(second)
    if len(left) == len(right) == 2 and not left & right:
        return True
    time.sleep(0.3)
    second.rebalance()
    return False


def test_each_key_is_consumed_in_order(scene: Scene) -> None:
    topic = scene.topic(queues=4)
    keys = [f"k{n}" for n in range(10)]
    producer = scene.producer()
    consumer = scene.push_consumer(topic, scene.unique("group"), orderly=True)
    producer.send(
        [message(topic, f"{key}/{step}", shard=key) for step in range(20) for key in keys]
    )

    consumer.wait_for(200)
    assert len(set(consumer.bodies())) == 200
    assert_in_order(consumer.events())
    by_key = [body for body in consumer.bodies() if body.startswith("k3/")]
    assert by_key == [f"k3/{step}" for step in range(20)]


@pytest.mark.both_releases
def test_order_holds_while_a_group_changes(scene: Scene) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    keys = [f"k{n}" for n in range(12)]
    producer = scene.producer()

    def send(steps: range) -> None:
        producer.send(
            [message(topic, f"{key}/{step}", shard=key) for step in steps for key in keys]
        )

    first = scene.push_consumer(topic, group, orderly=True)
    poll(lambda: locked(first) == {0, 1, 2, 3}, "the first has locked all queues")
    send(range(10))
    second = scene.push_consumer(topic, group, orderly=True)
    send(range(10, 20))
    poll(lambda: halved(first, second), "each has locked two queues", HANDED_OVER_S)
    send(range(20, 30))
    second.wait_for(1)
    scene.stopped(first)
    send(range(30, 40))
    poll(lambda: locked(second) == {0, 1, 2, 3}, "the second has locked all queues", HANDED_OVER_S)
    send(range(40, 50))

    def bodies() -> set[str]:
        return {*first.bodies(), *second.bodies()}

    scene.jvm.wait_for(lambda: len(bodies()) == 600, "all messages at one of the two")
    for consumer in (first, second):
        assert_in_order_within(consumer)
    assert_in_order(_merged(first, second))


def assert_in_order_within(consumer: PushConsumer) -> None:
    """While one consumer has a queue, it never goes back in it."""
    last: dict[int, int] = defaultdict(lambda: -1)
    for received in consumer.messages():
        assert received["queue_offset"] > last[received["queue_id"]]
        last[received["queue_id"]] = received["queue_offset"]


def _merged(*consumers: PushConsumer) -> list[Json]:
    """All events in time; those of one millisecond, whose true order is unknown, by offset."""
    events = [event for consumer in consumers for event in consumer.events()]
    return sorted(events, key=lambda event: (event["at_ms"], event["message"]["queue_offset"]))


def test_a_queue_is_locked_by_one_client(scene: Scene) -> None:
    topic, group = scene.topic(queues=2), scene.unique("group")
    holder = scene.push_consumer(topic, group, orderly=True)
    poll(lambda: locked(holder) == {0, 1}, "the consumer has locked both queues")

    assert try_lock(scene, group, holder.client_id, topic, 0)
    assert not try_lock(scene, group, "10.0.0.1@other", topic, 0)
    assert try_lock(scene, scene.unique("group"), "10.0.0.1@other", topic, 0)  # per group

    scene.stopped(holder)
    poll(lambda: try_lock(scene, group, "10.0.0.1@other", topic, 0), "the lock is free")
    assert not try_lock(scene, group, "10.0.0.1@third", topic, 0)
    assert try_lock(scene, group, "10.0.0.1@third", topic, 1)


def test_a_consumer_waits_for_a_lock_that_another_client_holds(scene: Scene) -> None:
    topic, group = scene.topic(queues=1), scene.unique("group")
    assert try_lock(scene, group, "10.0.0.1@other", topic, 0)
    scene.producer().send([message(topic, "k/0")])
    consumer = scene.push_consumer(topic, group, orderly=True)
    time.sleep(1)
    consumer.rebalance()
    time.sleep(0.5)
    assert consumer.events() == []

    queue = {"topic": topic, "brokerName": scene.broker.name, "queueId": 0}
    body = {"consumerGroup": group, "clientId": "10.0.0.1@other", "mqSet": [queue]}
    header, _ = probe.request(scene.broker.port, UNLOCK_BATCH_MQ, body=json.dumps(body).encode())
    assert header["code"] == 0
    consumer.rebalance()  # a 4.9.7 consumer would ask again after 20 s
    consumer.wait_for(1, timeout_s=15)
    assert consumer.bodies() == ["k/0"]
