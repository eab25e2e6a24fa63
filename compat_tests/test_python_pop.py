# SPDX-License-Identifier: Apache-2.0
"""Our consumers that pop, alone and in one group with the official client of 5.4.0 that pops."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests.java_client import ClientJvm, message, text
from compat_tests.our_consumer import OurConsumer
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene, poll
from compat_tests.test_java_pop import (
    INVISIBLE_MS,
    RELEASE,
    consumer_of,
    group_that_pops,
)
from txrocketmq.client import (
    MessageExt,
    PopConsumer,
    PopNotSupported,
    Producer,
    new_message,
)

MESSAGES: Final = 200
REBALANCE_S: Final = 25
"""A client looks for its queues every 20 s unless the group changes."""


@pytest.fixture(scope="module")
def broker(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """A broker on which what was not acknowledged comes again with the next pop."""
    folder = work_folder / "python-pop"
    names = NameServer(origin, folder / "namesrv")
    settings = {} if origin.behaves_as == "4.9.7" else {"popFromRetryProbability": "0"}
    server = Broker(origin, folder, names, "broker-p", settings)
    with running(names, server):
        yield server


@pytest.fixture
def pops(jvms: dict[str, ClientJvm], broker: Broker) -> Iterator[Scene]:
    scene = Scene(jvms[RELEASE], broker)
    yield scene
    scene.close()


@pytest.fixture
def only_5x(origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 has no POP")


def bodies(messages: list[MessageExt]) -> list[str]:
    return sorted(each.body.decode() for each in messages)


def take_all(consumer: Any, count: int, seconds: float = 60.0) -> list[MessageExt]:
    """So many messages, none of them acknowledged."""
    taken: list[MessageExt] = []
    end = time.monotonic() + seconds
    while len(taken) < count and time.monotonic() < end:
        taken += consumer.receive(wait_ms=2_000)
    assert len(taken) == count, bodies(taken)
    return taken


def test_a_broker_of_4_9_7_is_told_by_a_type_of_its_own(pops: Scene, origin: Origin) -> None:
    if origin.behaves_as != "4.9.7":
        pytest.skip("it has POP")
    topic = pops.topic(queues=1)
    with (
        PopConsumer(pops.unique("group"), {topic: "*"}, namesrv_addr=pops.namesrv) as consumer,
        pytest.raises(PopNotSupported, match=r"came with 5\.0"),
    ):
        consumer.receive()


@pytest.mark.usefixtures("only_5x")
def test_what_is_acknowledged_stays_away_and_the_rest_comes_again(pops: Scene) -> None:
    topic = pops.topic(queues=4)
    group = pops.unique("group")
    with Producer(pops.unique("producer"), namesrv_addr=pops.namesrv) as producer:
        for number in range(12):
            producer.send(new_message(topic, f"m{number}", tags="ab"[number % 2]))
    settings: Any = {"namesrv_addr": pops.namesrv, "invisible_ms": INVISIBLE_MS}
    with PopConsumer(group, {topic: "a"}, **settings) as consumer:
        taken = take_all(consumer, 6)
        assert bodies(taken) == sorted(f"m{number}" for number in range(0, 12, 2))
        consumer.ack(taken[0])
        consumer.ack(taken[1:4])
        consumer.change_invisible_time(taken[4], 1_000)
        longer, kept = taken[5], taken[4].body
        consumer.change_invisible_time(longer, 60_000)
        (again,) = take_all(consumer, 1)
        assert (again.body, again.topic, again.reconsume_times) == (kept, topic, 1)
        consumer.ack(again)
        consumer.renew(longer)
        consumer.ack(longer)
        time.sleep(INVISIBLE_MS / 1000 + 3)
        assert consumer.receive(wait_ms=2_000) == []


@pytest.mark.usefixtures("only_5x")
def test_a_queue_that_is_popped_in_order_waits_for_its_acks(pops: Scene) -> None:
    topic = pops.topic(queues=1)
    group = pops.unique("group")
    with Producer(pops.unique("producer"), namesrv_addr=pops.namesrv) as producer:
        for number in range(6):
            producer.send(new_message(topic, f"m{number}"))
    settings: Any = {"namesrv_addr": pops.namesrv, "invisible_ms": INVISIBLE_MS}
    with PopConsumer(group, {topic: "*"}, orderly=True, **settings) as consumer:
        first = consumer.receive(2, wait_ms=5_000)
        assert bodies(first) == ["m0", "m1"]
        assert consumer.receive(2, wait_ms=1_000) == []
        for each in first:
            consumer.ack(each)
        second = consumer.receive(2, wait_ms=5_000)
        assert bodies(second) == ["m2", "m3"]
        again = consumer.receive(2, wait_ms=INVISIBLE_MS + 5_000)
        assert bodies(again) == ["m2", "m3"]
        assert all(each.reconsume_times >= 1 for each in again)


@pytest.mark.usefixtures("only_5x")
def test_java_and_python_share_a_group_and_nothing_comes_twice(pops: Scene) -> None:
    topic = pops.topic(queues=4)
    group = group_that_pops(pops, topic)
    java = consumer_of(pops, topic, group, times_later=0)
    producer = pops.producer()
    ours: list[MessageExt] = []
    with PopConsumer(group, {topic: "*"}, namesrv_addr=pops.namesrv) as consumer:
        # Until both have had some, so that it is a group of two.
        poll(lambda: _both(producer, topic, consumer, java, ours), "both consume", 60)
        producer.send([message(topic, f"m{number}") for number in range(MESSAGES)])

        def all_are_there() -> bool:
            taken = consumer.receive(8, wait_ms=200)
            consumer.ack(taken)
            ours.extend(taken)
            return len(_numbered(bodies(ours))) + len(_numbered(java.bodies())) >= MESSAGES

        poll(all_are_there, "each message is consumed by one of the two", 120)
        assert consumer.receive(wait_ms=3_000) == []
    everything = _numbered(bodies(ours)) + _numbered(java.bodies())
    assert sorted(everything) == sorted(f"m{number}" for number in range(MESSAGES))


@pytest.mark.usefixtures("only_5x")
@pytest.mark.timeout(400)
def test_push_consumers_of_both_pop_and_pull_as_the_administrator_says(pops: Scene) -> None:
    """None is lost while the group changes its mode, and what fails comes again."""
    topic = pops.topic(queues=4)
    group = group_that_pops(pops, topic)
    producer = pops.producer()
    java = consumer_of(pops, topic, group, times_later=0)
    config = {"client_rebalance": False, "pop_invisible_ms": INVISIBLE_MS}
    ours = OurConsumer(pops, "push", topic, group, config=config)
    failing = OurConsumer(pops, "push", topic, group, config=config, times_later=1)
    try:

        def all_consume() -> bool:
            producer.send([message(topic, "probe") for _ in range(8)])
            return all("probe" in each.bodies() for each in (java, ours, failing))

        poll(all_consume, "all three consume", 90)
        sent: list[str] = []
        for mode in ("POP", "PULL", "POP"):
            said = pops.mqadmin_here(f"setConsumeMode -t {topic} -g {group} -m {mode} -q 0")
            assert "success" in said, said
            ours.rebalance()
            failing.rebalance()
            news = [f"{mode}-{len(sent)}-{number}" for number in range(MESSAGES // 2)]
            producer.send([message(topic, each) for each in news])
            sent += news
            _wait_for(set(sent), java, ours, failing)
        time.sleep(REBALANCE_S)  # until the official client pops again
        news = [f"calm-{number}" for number in range(MESSAGES)]
        producer.send([message(topic, each) for each in news])
        _wait_for(set(news), java, ours, failing)
        consumed = [each for each in _successes(java, ours, failing) if each in news]
        assert sorted(consumed) == sorted(news)
        assert all(any(each in news for each in its.bodies()) for its in (java, ours, failing))
    finally:
        failing.stop()
        ours.stop()


def _successes(java: Any, ours: Any, failing: Any) -> list[str]:
    again = [text(each) for each in failing.messages() if each["reconsume_times"] > 0]
    return [*java.bodies(), *ours.bodies(), *again]


def _wait_for(wanted: set[str], *consumers: Any) -> None:
    poll(lambda: wanted <= set(_successes(*consumers)), "all messages are consumed", 150)


def _numbered(texts: list[str]) -> list[str]:
    return [each for each in texts if each != "probe"]


def _both(producer: Any, topic: str, consumer: Any, java: Any, ours: list[MessageExt]) -> bool:
    producer.send([message(topic, "probe") for _ in range(8)])
    taken = consumer.receive(wait_ms=200)
    consumer.ack(taken)
    ours.extend(taken)
    return bool(ours) and "probe" in java.bodies()
