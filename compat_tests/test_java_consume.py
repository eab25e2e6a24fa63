# SPDX-License-Identifier: Apache-2.0
"""The official Java push consumer: filters, changing groups, broadcasting, where to begin."""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compat_tests.java_client import ClientJvm, Producer, PushConsumer, message, text
from compat_tests.peers import Origin
from compat_tests.scene import Scene, poll

REBALANCED_S = 12.0
"""Bound for a group to share its queues anew: well below the 20 s at which clients do it unasked,
so that only a notification of the broker meets it."""


@pytest.mark.both_releases
def test_everything_is_delivered_once(scene: Scene) -> None:
    topic = scene.topic(queues=4)
    sent = {f"m{n}" for n in range(200)}
    scene.producer().send([message(topic, name) for name in sent])
    consumer = scene.push_consumer(topic, scene.unique("group"))

    consumer.wait_for(200)
    assert sorted(consumer.bodies()) == sorted(sent)
    assert {item["topic"] for item in consumer.messages()} == {topic}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*", {"a", "b", "c", "none"}),
        ("a", {"a"}),
        ("a || c", {"a", "c"}),
        # "Aa" and "BB" have one hash: the broker lets both pass, the client only one.
        ("Aa", {"Aa"}),
        ("none-such || b", {"b"}),
    ],
)
def test_tag_filter(scene: Scene, expression: str, expected: set[str]) -> None:
    topic = scene.topic(queues=2)
    tags = ["a", "b", "c"] + (["Aa", "BB"] if expression == "Aa" else [])
    sent = [message(topic, tag, tags=tag) for tag in tags for _ in range(3)]
    scene.producer().send([*sent, message(topic, "none")])
    consumer = scene.push_consumer(topic, scene.unique("group"), expression=expression)
    scene.producer().send([message(topic, tag, tags=tag) for tag in reversed(tags)])

    times = {name: 1 if name == "none" else 4 for name in expected}
    consumer.wait_for(sum(times.values()))
    end = scene.unique("end")
    if expression == "*":
        scene.producer().send([message(topic, end)])
        consumer.wait_for(sum(times.values()) + 1)
        times[end] = 1
    assert {name: consumer.bodies().count(name) for name in set(consumer.bodies())} == times


def test_filtered_messages_do_not_block_the_queue(scene: Scene) -> None:
    """A long run of messages of other tags is passed over, and its end is found at once."""
    topic = scene.topic(queues=1)
    producer = scene.producer()
    for _ in range(10):
        producer.send_batch([message(topic, "x", tags="other") for _ in range(100)])
    producer.send([message(topic, "wanted", tags="mine")])
    consumer = scene.push_consumer(topic, scene.unique("group"), expression="mine")

    consumer.wait_for(1, timeout_s=10)
    assert consumer.bodies() == ["wanted"]
    scene.producer().send([message(topic, "x", tags="other"), message(topic, "2", tags="mine")])
    consumer.wait_for(2, timeout_s=10)
    assert consumer.bodies() == ["wanted", "2"]


@contextmanager
def steady_stream(producer: Producer, topic: str) -> Iterator[list[str]]:
    """Messages all the time, each in the list once its send has been answered."""
    sent: list[str] = []
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.01):
            bodies = [f"s{len(sent) + n}" for n in range(4)]
            producer.send([message(topic, name) for name in bodies])
            sent.extend(bodies)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join()


def queue_ids(consumer: PushConsumer) -> set[int]:
    return {queue["queue_id"] for queue in consumer.assignment()}


def shared_out(consumers: list[PushConsumer], queues: int) -> bool:
    """Each queue has one consumer, and each consumer has its fair share."""
    parts = [queue_ids(consumer) for consumer in consumers]
    total = sum(len(part) for part in parts)
    fair = all(len(part) == queues // len(consumers) for part in parts)
    return fair and total == queues and set().union(*parts) == set(range(queues))


@pytest.mark.both_releases
def test_consumers_join_and_leave_without_loss(scene: Scene) -> None:
    topic, group = scene.topic(queues=8), scene.unique("group")
    first = scene.push_consumer(topic, group)
    poll(lambda: shared_out([first], 8), "the first has all queues")
    with steady_stream(scene.producer(), topic) as sent:
        second = scene.push_consumer(topic, group)
        poll(lambda: shared_out([first, second], 8), "queues are shared", REBALANCED_S)
        from_both = len(second.events()) + 20
        second.wait_for(from_both)
        scene.stopped(first)
        poll(lambda: shared_out([second], 8), "the second has all queues", REBALANCED_S)
        second.wait_for(len(second.events()) + 20)

    def complete() -> bool:
        return set(sent) <= set(first.bodies()) | set(second.bodies())

    scene.jvm.wait_for(complete, f"all {len(sent)} messages at one of the two")
    received = first.bodies() + second.bodies()
    assert set(received) == set(sent)
    # A queue that changes hands may bring again what was in work at that moment, no more.
    assert len(received) - len(set(received)) <= 64


def test_a_killed_consumers_queues_are_taken_over(
    scene: Scene, second_jvm: ClientJvm, origin: Origin
) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    survivor = scene.push_consumer(topic, group)
    other = Scene(second_jvm, scene.broker)
    doomed = other.push_consumer(topic, group)
    poll(lambda: shared_out([survivor, doomed], 4), "queues are shared", REBALANCED_S)
    producer = scene.producer()
    producer.send([message(topic, f"before{n}") for n in range(16)])
    scene.jvm.wait_for(
        lambda: len(survivor.events()) + len(doomed.events()) >= 16, "all that was sent before"
    )
    second_jvm.kill()
    poll(lambda: shared_out([survivor], 4), "the survivor has all queues", REBALANCED_S)
    producer.send([message(topic, f"after{n}") for n in range(16)])
    expected = {f"after{n}" for n in range(16)}
    scene.jvm.wait_for(lambda: expected <= set(survivor.bodies()), "all that was sent after")


def test_broadcasting_reaches_every_consumer(scene: Scene) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    consumers = [scene.push_consumer(topic, group, model="BROADCASTING") for _ in range(2)]
    for consumer in consumers:
        poll(lambda c=consumer: queue_ids(c) == {0, 1, 2, 3}, "each has all queues")  # type: ignore[misc]
    sent = sorted(f"m{n}" for n in range(50))
    scene.producer().send([message(topic, name) for name in sent])

    for consumer in consumers:
        consumer.wait_for(50)
        assert sorted(consumer.bodies()) == sent


def test_consume_from_first(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    producer = scene.producer()
    producer.send([message(topic, "old1"), message(topic, "old2")])
    settings = {"from": "CONSUME_FROM_FIRST_OFFSET"}
    consumer = scene.push_consumer(topic, scene.unique("group"), **settings)
    consumer.wait_for(2)
    producer.send([message(topic, "new")])
    consumer.wait_for(3)
    assert sorted(consumer.bodies()) == ["new", "old1", "old2"]


def test_two_groups_each_get_everything(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    consumers = [scene.push_consumer(topic, scene.unique("group")) for _ in range(2)]
    scene.producer().send([message(topic, f"m{n}") for n in range(20)])
    for consumer in consumers:
        consumer.wait_for(20)
        assert sorted(consumer.bodies()) == sorted(f"m{n}" for n in range(20))


@pytest.mark.both_releases
def test_offsets_survive_a_consumers_restart(scene: Scene) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    producer = scene.producer()
    producer.send([message(topic, f"a{n}") for n in range(40)])
    first = scene.push_consumer(topic, group)
    first.wait_for(40)
    scene.stopped(first)
    producer.send([message(topic, f"b{n}") for n in range(40)])

    second = scene.push_consumer(topic, group)
    second.wait_for(40)
    scene.producer().send([message(topic, "end")])
    second.wait_for(41)
    assert sorted(second.bodies()) == sorted([*(f"b{n}" for n in range(40)), "end"])


def test_an_idle_consumer_hears_of_a_message_at_once(scene: Scene) -> None:
    """Long polling: a parked pull is answered when a message comes, not when it times out."""
    topic = scene.topic(queues=4)
    consumer = scene.push_consumer(topic, scene.unique("group"))
    producer = scene.producer()
    for number in range(12):
        producer.send([message(topic, f"m{number}")])
        consumer.wait_for(number + 1, timeout_s=8)
        time.sleep(0.05)  # the consumer's next pull has to be parked again

    latencies_ms = [
        event["at_ms"] - event["message"]["born_timestamp"] for event in consumer.events()[2:]
    ]
    assert statistics.median(latencies_ms) < 50, latencies_ms
    assert max(latencies_ms) < 1000, latencies_ms


def test_a_parked_pull_wakes_only_for_its_tag(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    consumer = scene.push_consumer(topic, scene.unique("group"), expression="mine")
    producer = scene.producer()
    producer.send([message(topic, "first", tags="mine")])
    consumer.wait_for(1)
    producer.send([message(topic, "x", tags="other") for _ in range(5)])
    producer.send([message(topic, "second", tags="mine")])
    consumer.wait_for(2)
    event = consumer.events()[1]
    assert text(event["message"]) == "second"
    assert event["at_ms"] - event["message"]["born_timestamp"] < 1000
