# SPDX-License-Identifier: Apache-2.0
"""Priorities (5.4): the queue of a message, the order of pops, stores that change brokers."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, Json, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours, running
from compat_tests.pops import BACK_S, Popped, text_of
from compat_tests.scene import Scene, poll

RELEASE: Final = "5.4.0"
QUEUES: Final = 4
PRIORITY: Final = "_SYS_MSG_PRIORITY_"
SETTINGS: Final = {"popFromRetryProbability": "100"}
"""Which does not count where pops go by priority."""
POPS: Final = 24
"""So many pops do not begin with the same queue by chance."""


@pytest.fixture(autouse=True)
def only_5x(origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9 knows no priorities")


@pytest.fixture(scope="module")
def priority_broker(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    names = NameServer(origin, work_folder / "priority-namesrv")
    server = Broker(origin, work_folder / "priority", names, "broker-y", SETTINGS)
    with running(names, server):
        yield server


@pytest.fixture
def scene(jvms: dict[str, ClientJvm], priority_broker: Broker) -> Iterator[Scene]:
    scene = Scene(jvms[RELEASE], priority_broker)
    yield scene
    scene.close()


def create(scene: Scene, topic: str, message_type: str = "PRIORITY") -> None:
    update = f"updateTopic -t {topic} -r {QUEUES} -w {QUEUES} -a +message.type={message_type}"
    assert "success" in scene.mqadmin_here(update)
    scene.wait_for_route(topic)


def topic_of(scene: Scene, message_type: str = "PRIORITY") -> str:
    topic = scene.unique("priorities")
    create(scene, topic, message_type)
    return topic


def of_priority(topic: str, body: str, priority: object, **more: Any) -> Json:
    """As setPriority makes it; the client refuses none but numbers below 0."""
    own = {PRIORITY: str(priority), **more.pop("own", {})}
    return message(topic, body, own=own, **more)


def send(scene: Scene, topic: str, priorities: Sequence[int], word: str = "") -> None:
    sent = [of_priority(topic, f"{word}{each}", each) for each in priorities]
    scene.producer().send(sent)


@pytest.mark.parametrize("message_type", ["PRIORITY", "NORMAL"])
def test_a_priority_is_a_queue(scene: Scene, message_type: str) -> None:
    """The last one, if it is too high; in topics of any type."""
    topic = topic_of(scene, message_type)
    producer, queue = scene.producer(), scene.queue(topic, 1)
    expected = {"0": 0, "1": 1, "3": 3, "4": 3, "2147483647": 3, "+2": 2}
    expected |= {"-1": 1, "2147483648": 1, "high": 1}
    for priority, queue_id in expected.items():
        (sent,) = producer.send([of_priority(topic, f"p{priority}", priority)], queue=queue)
        assert sent["queue"]["queue_id"] == queue_id, priority
    delay = {"delay_level": 1}
    (sent,) = producer.send([of_priority(topic, "delayed", 3, **delay)], queue=queue)
    assert sent["queue"]["queue_id"] == 1
    ordered = of_priority(topic, "ordered", 3, own={"__SHARDINGKEY": "key"})
    (sent,) = producer.send([ordered], queue=queue)
    assert sent["queue"]["queue_id"] == 1
    batch = [of_priority(topic, f"batch{n}", 3) for n in range(2)]
    sent = producer.send_batch(batch, queue=queue)
    assert sent["queue"]["queue_id"] == 1
    found = {text(each): each for each in scene.read(topic, len(expected) + 4)}
    for priority, queue_id in expected.items():
        stored = found[f"p{priority}"]
        assert stored["queue_id"] == queue_id
        assert stored["properties"][PRIORITY] == priority
    for body in ("delayed", "ordered"):
        assert (found[body]["queue_id"], PRIORITY in found[body]["properties"]) == (1, False)
    assert found["batch0"]["properties"][PRIORITY] == "3"


def test_pops_go_by_priority(scene: Scene) -> None:
    topic = topic_of(scene)
    popped = Popped(scene.broker, topic, scene.unique("group"))
    for turn in range(POPS):
        send(scene, topic, (0, 2, 9, 1), f"{turn}-")
        if turn % 2:
            alone = [text_of(each) for _ in range(4) for each in popped.ask(maxMsgNums=1)]
        else:
            alone = [text_of(each) for each in popped.ask()]
        assert alone == [f"{turn}-{each}" for each in (9, 2, 1, 0)]


def test_what_comes_back_is_last(scene: Scene) -> None:
    topic = topic_of(scene)
    popped = Popped(scene.broker, topic, scene.unique("group"))
    send(scene, topic, (3,), "again-")
    assert len(popped.ask(invisibleTime=3_000)) == 1
    retry = f"%RETRY%{popped.group}_{topic}"
    poll(lambda: bool(_stored(scene, retry)), "it is back", BACK_S)
    time.sleep(1)
    send(scene, topic, (0, 1), "new-")
    assert [text_of(each) for each in popped.ask()] == ["new-1", "new-0", "again-3"]


def _stored(scene: Scene, topic: str) -> str:
    said = scene.mqadmin(f"topicStatus -t {topic}")
    rows = [line.split() for line in said.splitlines() if line.startswith(scene.broker.name)]
    return "".join(row[3] for row in rows if row[3] != "0")


@pytest.mark.parametrize(
    ("message_type", "factor", "order"),
    [("NORMAL", 100, "false"), ("PRIORITY", 0, "false"), ("PRIORITY", 100, "true")],
)
def test_other_pops_do_not(scene: Scene, message_type: str, factor: int, order: str) -> None:
    """Of topics of other types, of groups without it, and in order: every queue is the first."""
    topic, group = topic_of(scene, message_type), scene.unique("group")
    update = f"updateSubGroup -g {group} --attributes +priority.factor={factor}"
    assert "success" in scene.mqadmin_here(update)
    popped = Popped(scene.broker, topic, group)
    first: set[str] = set()
    for _ in range(3 * POPS):
        send(scene, topic, (0, 1, 2, 3))
        found = popped.ask(order=order)
        first.add(text_of(found[0]))
        for record in found:
            queue_id = int.from_bytes(record[12:16], "big")
            offset = int.from_bytes(record[20:28], "big")
            words = popped.handles[offset].split(" ")
            handle = " ".join([str(offset), *words[1:6], str(queue_id), str(offset)])
            assert popped.ack(offset, queueId=queue_id, extraInfo=handle)["code"] in (0, 13)
        if len(first) > 1:
            break
    assert len(first) > 1


def test_the_lowest_may_come_first(scene: Scene) -> None:
    topic = topic_of(scene)
    popped = Popped(scene.broker, topic, scene.unique("group"))
    try:
        assert "success" in scene.mqadmin_here("updateBrokerConfig -k priorityOrderAsc -v false")
        send(scene, topic, (2, 0, 3, 1))
        assert [text_of(each) for each in popped.ask()] == ["0", "1", "2", "3"]
    finally:
        scene.mqadmin_here("updateBrokerConfig -k priorityOrderAsc -v true")


def test_the_client_pops_them(scene: Scene) -> None:
    """And those that fail come back."""
    topic, group = topic_of(scene), scene.unique("group")
    assert "success" in scene.mqadmin_here(f"updateSubGroup -g {group}")
    assert "success" in scene.mqadmin_here(f"setConsumeMode -t {topic} -g {group} -m POP -q 0")
    send(scene, topic, range(8))
    consumer = scene.push_consumer(topic, group, pop=True, pop_invisible_ms=10_000, times_later=1)
    received = consumer.wait_for(16, BACK_S)
    assert sorted(text(each) for each in received) == sorted(str(n) for n in range(8) for _ in "12")
    assert {each["properties"][PRIORITY] for each in received} == {str(n) for n in range(8)}


@pytest.mark.timeout(400)
def test_stores_with_priorities_go_from_hand_to_hand(
    origin: Origin, engine: Engine, test_folder: Path, jvms: dict[str, ClientJvm]
) -> None:
    if not isinstance(origin, Ours):
        pytest.skip("one of both sides is ours")
    names = NameServer(origin, test_folder / "priority-names")
    ours = Broker(origin, test_folder / "priority-exchange", names, "broker-z", SETTINGS)
    official = ours.under(Original(RELEASE, engine))
    topic = "priorities-exchanged"
    names.start()
    try:
        for turn, (broker, left) in enumerate([(ours, ""), (official, "0-"), (ours, "1-")]):
            broker.start()
            scene = Scene(jvms[RELEASE], broker)
            if not turn:
                create(scene, topic)
            scene.wait_for_route(topic)
            popped = Popped(broker, topic, "handed")
            if left:
                found = [text_of(each) for each in popped.ask(invisibleTime=600_000)]
                assert found == [f"{left}{each}" for each in (3, 2, 1, 0)]
            send(scene, topic, (1, 3, 0, 2), f"{turn}-")
            time.sleep(12)  # the original keeps offsets every 5 s
            scene.close()
            broker.stop()
    finally:
        ours.close()
        official.close()
        names.close()
