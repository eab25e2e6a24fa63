# SPDX-License-Identifier: Apache-2.0
"""SQL92 filters of the official Java consumers, and bitmaps and filters that move with a store."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, JavaError, Json, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours, running
from compat_tests.scene import Scene, poll

SETTINGS = {"enablePropertyFilter": "true"}
BITMAPS = {**SETTINGS, "enableConsumeQueueExt": "true", "enableCalcFilterBitMap": "true"}
NOT_SUPPORTED = "The broker does not support consumer to filter message by SQL92"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def filtering(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """A broker that filters by expressions, with a name server of its own."""
    names = NameServer(origin, work_folder / "filter-namesrv")
    server = Broker(origin, work_folder / "filter-broker", names, "broker-filter", SETTINGS)
    with running(names, server):
        yield server


@pytest.fixture
def filter_scene(jvm: ClientJvm, filtering: Broker) -> Iterator[Scene]:
    scene = Scene(jvm, filtering)
    yield scene
    scene.close()


def numbered(topic: str, number: int, **properties: str) -> Json:
    """A message with a = number, and b = x but for every third."""
    values = {"a": str(number), "b": "x" if number % 3 else "it's", **properties}
    return message(topic, f"m{number}", properties=values)


def bodies(*numbers: int) -> list[str]:
    return sorted(f"m{number}" for number in numbers)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a > 5 AND b = 'x'", (7, 8, 10, 11)),
        ("a BETWEEN 3 AND 4 OR b = 'it''s'", (0, 3, 4, 6, 9)),
        ("NOT (a >= 2.5) and b in ('x', 'y')", (1, 2)),
        ("b IS NOT NULL and a not between 1 and 11 -- the first\n", (0,)),
        ("TAGS = 't' AND a < 4", (0, 1, 2, 3)),
    ],
)
@pytest.mark.parametrize("orderly", [False, True])
def test_a_push_consumer_gets_what_its_expression_wants(
    filter_scene: Scene, sql: str, expected: tuple[int, ...], orderly: bool
) -> None:
    topic = filter_scene.topic(queues=2)
    consumer = filter_scene.push_consumer(
        topic, filter_scene.unique("group"), sql=sql, orderly=orderly
    )
    messages = [{**numbered(topic, number), "tags": "t"} for number in range(12)]
    filter_scene.producer().send(messages)

    consumer.wait_for(len(expected), WAIT_S)
    assert sorted(consumer.bodies()) == bodies(*expected)


def test_messages_that_are_there_already_are_filtered_too(filter_scene: Scene) -> None:
    topic = filter_scene.topic(queues=2)
    filter_scene.producer().send([numbered(topic, number) for number in range(1000)])

    consumer = filter_scene.push_consumer(topic, filter_scene.unique("group"), sql="a >= 997")

    consumer.wait_for(3, WAIT_S)
    assert sorted(consumer.bodies()) == bodies(997, 998, 999)


@pytest.mark.both_releases
def test_words_of_5x(filter_scene: Scene, origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 takes CONTAINS for a name, and so for the end of the expression")
    topic, group = filter_scene.topic(queues=1), filter_scene.unique("group")
    sql = "b CONTAINS 't''' AND NOT (a STARTSWITH '1')"
    consumer = filter_scene.push_consumer(topic, group, sql=sql)
    filter_scene.producer().send([numbered(topic, number) for number in range(14)])

    consumer.wait_for(4, WAIT_S)
    assert sorted(consumer.bodies()) == bodies(0, 3, 6, 9)


@pytest.mark.both_releases
def test_waiting_consumers_get_a_message_at_once(filter_scene: Scene) -> None:
    topic = filter_scene.topic(queues=1)
    consumer = filter_scene.push_consumer(topic, filter_scene.unique("group"), sql="a = 7")
    producer = filter_scene.producer()
    producer.send([numbered(topic, 7)])
    consumer.wait_for(1, WAIT_S)
    for number in (1, 2, 3):  # nothing for it: it waits on
        producer.send([numbered(topic, number)])
        time.sleep(0.3)

    sent = time.time()
    producer.send([numbered(topic, 7)])
    consumer.wait_for(2, WAIT_S)

    assert consumer.events()[1]["at_ms"] / 1000 - sent < 10  # well below the 15 s of a pull
    assert consumer.bodies() == ["m7", "m7"]


def test_retried_messages_come_back(filter_scene: Scene) -> None:
    topic = filter_scene.topic(queues=1)
    group = filter_scene.unique("group")
    consumer = filter_scene.push_consumer(topic, group, sql="a = 2", times_later=1)
    filter_scene.producer().send([numbered(topic, number) for number in range(4)])

    received = consumer.wait_for(2, WAIT_S)
    assert [each["reconsume_times"] for each in received] == [0, 1]
    assert consumer.bodies() == ["m2", "m2"]


def test_another_expression_while_the_group_runs(filter_scene: Scene) -> None:
    topic = filter_scene.topic(queues=1)
    consumer = filter_scene.push_consumer(topic, filter_scene.unique("group"), sql="a < 2")
    producer = filter_scene.producer()
    producer.send([numbered(topic, number) for number in range(4)])
    consumer.wait_for(2, WAIT_S)

    consumer.subscribe_again(topic, "a > 6")
    time.sleep(1)  # a pull with the old expression may still wait
    producer.send([numbered(topic, number) for number in range(9)])

    def has_new() -> bool:
        return {"m7", "m8"} <= set(consumer.bodies())

    poll(has_new, "what the new expression wants", WAIT_S)
    assert "m4" not in consumer.bodies()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("a >", 'Encountered "<EOF>" at line 1, column 3'),
        ("a > 'x'", "cannot be compared"),
        ("a = 5 #", "Lexical error at line 1, column"),
        ("5", "5"),
    ],
)
def test_an_expression_that_is_none(filter_scene: Scene, sql: str, said: str) -> None:
    topic, group = filter_scene.topic(), filter_scene.unique("group")
    with pytest.raises(JavaError) as refused:
        filter_scene.push_consumer(topic, group, sql=sql)
    assert refused.value.code == 23
    assert said in refused.value.text


def test_a_broker_that_does_not_filter_says_so(scene: Scene) -> None:
    topic, group = scene.topic(), scene.unique("group")
    with pytest.raises(JavaError) as refused:
        scene.push_consumer(topic, group, sql="a > 5")
    assert refused.value.code == 1
    assert NOT_SUPPORTED in refused.value.text
    with pytest.raises(JavaError) as refused:
        scene.pull_consumer(group).pull(scene.queue(topic, 0), 0, sql="a > 5")
    assert refused.value.code == 1
    assert NOT_SUPPORTED in refused.value.text


@pytest.mark.both_releases
def test_a_lite_pull_consumer(filter_scene: Scene, origin: Origin) -> None:
    if origin.behaves_as == "4.9.7" and filter_scene.jvm.release == "5.4.0":
        pytest.skip("4.9.7 does not know LITE_PULL_MESSAGE, which this client sends")
    topic = filter_scene.topic(queues=2)
    consumer = filter_scene.lite_consumer(
        filter_scene.unique("group"), topic=topic, sql="a > 3 AND b = 'x'"
    )
    filter_scene.producer().send([numbered(topic, number) for number in range(10)])

    polled = consumer.poll_until(4, WAIT_S)
    assert sorted(_bodies(polled)) == bodies(4, 5, 7, 8)


def test_a_pull_consumer(filter_scene: Scene, origin: Origin) -> None:
    topic = filter_scene.topic(queues=1)
    queue = filter_scene.queue(topic, 0)
    filter_scene.producer().send([numbered(topic, number) for number in range(10)], queue=queue)
    filter_scene.read(topic, 10)
    consumer = filter_scene.pull_consumer(filter_scene.unique("group"))

    found = consumer.pull(queue, 0, sql="a = 4 or a = 6")
    assert found["status"] == "FOUND"
    assert _bodies(found["messages"]) == ["m4", "m6"]
    assert found["next_offset"] == 10
    none = consumer.pull(queue, 0, sql="a = 40")
    assert (none["status"], none["next_offset"]) == ("NO_MATCHED_MSG", 10)
    if not isinstance(origin, Ours):  # means to refuse it, and gives everything
        assert len(consumer.pull(queue, 0, sql="a >")["messages"]) == 10
        return
    with pytest.raises(JavaError) as refused:
        consumer.pull(queue, 0, sql="a >")
    assert refused.value.code == 23
    assert "parse the consumer's subscription failed" in refused.value.text


@pytest.mark.parametrize("release", RELEASES)
def test_bitmaps_and_filters_of_the_other_are_used(
    origin: Origin, engine: Engine, release: str, jvms: dict[str, ClientJvm], test_folder: Path
) -> None:
    """A store goes from the broker under test to an original one, and back.

    The group reads all messages each time, those of the round before by the bitmaps of the other.
    """
    folder = test_folder / f"bitmaps-{origin.name}-{release}"
    names = NameServer(origin, folder / "namesrv")
    broker = Broker(origin, folder, names, "broker-bitmap", BITMAPS)
    other = broker.under(Original(release, engine))
    names.start()
    topic = group = ""
    sent: list[int] = []
    try:
        for server in (broker, other, broker):
            server.start()
            scene = Scene(jvms[release], server)
            topic = topic or scene.topic(queues=1)
            group = group or scene.unique("group")
            scene.wait_for_route(topic)
            consumer = scene.push_consumer(topic, group, sql="a > 3 AND b = 'x'")
            poll(lambda: len(consumer.assignment()) == 1, "it has its queue", WAIT_S)  # noqa: B023
            new = range(len(sent), len(sent) + 12)
            scene.producer().send([numbered(topic, number) for number in new])
            sent += new
            wanted = bodies(*(number for number in sent if number > 3 and number % 3))
            consumer.wait_for(len(wanted), WAIT_S)
            assert sorted(consumer.bodies()) == wanted
            scene.stopped(consumer)
            scene.close()
            server.stop()
            _forget_offsets(broker)
            data = _filter_data(broker, topic, group)
            assert data["expression"] == "a > 3 AND b = 'x'"
            assert data["bloomFilterData"]["bitNum"] == 112
            assert data["dead"] is True
    finally:
        broker.kill()
        other.kill()
        names.close()


def _forget_offsets(broker: Broker) -> None:
    for file in (broker.store / "config").glob("consumerOffset.json*"):
        file.unlink()


def _filter_data(broker: Broker, topic: str, group: str) -> Json:
    filters = json.loads((broker.store / "config" / "consumerFilter.json").read_text())
    return dict(filters["filterDataByTopic"][topic]["groupFilterData"][group])


def _bodies(messages: list[Json]) -> list[str]:
    return [text(each) for each in messages]
