# SPDX-License-Identifier: Apache-2.0
"""Message trace of official clients: what producers and consumers write, and how it is read."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.java_client import ClientJvm, Json, message, text
from compat_tests.our_consumer import OurConsumer
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene, poll
from txrocketmq.client import ConsumeFrom, LitePullConsumer, PopConsumer

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
_TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def trace_broker(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """A broker that makes the trace topic itself: no topic comes of a send."""
    names = NameServer(origin, work_folder / "trace-namesrv")
    settings = {"traceTopicEnable": "true", "autoCreateTopicEnable": "false"}
    broker = Broker(origin, work_folder / "trace", names, "broker-tr", settings)
    with running(names, broker):
        yield broker


@pytest.fixture
def trace_scene(jvm: ClientJvm, trace_broker: Broker) -> Iterator[Scene]:
    scene = Scene(jvm, trace_broker)
    yield scene
    scene.close()


def traces(scene: Scene, key: str) -> list[Json]:
    """The messages of the trace topic that are found by a key."""
    try:
        return scene.admin().messages_by_key(TRACE_TOPIC, key)
    except Exception:  # noqa: BLE001 - there is none yet
        return []


@pytest.mark.both_releases
def test_traces_are_written_and_found(trace_scene: Scene) -> None:
    scene = trace_scene
    topic, group = scene.topic(queues=1), scene.unique("group")
    key = scene.unique("key")
    producer = scene.producer(trace=True)
    consumer = scene.push_consumer(topic, group, trace=True)
    (sent,) = producer.send([message(topic, "traced", tags="t", keys=key)])
    (received,) = consumer.wait_for(1)
    assert text(received) == "traced"

    def kinds(found: list[Json]) -> set[str]:
        """Which kinds of lines there are: each ends with 0x02, its fields with 0x01."""
        lines = "".join(map(text, found)).split("\x02")
        return {line.split("\x01")[0] for line in lines if line}

    everything = {"Pub", "SubBefore", "SubAfter"}
    if scene.jvm.release == "5.4.0" and scene.broker.origin.behaves_as == "4.9.7":
        # Which does not store the region, and without it this client traces no consuming.
        assert "MSG_REGION" not in received["properties"]
        everything = {"Pub"}
    by_id = sent["msg_id"]
    poll(lambda: kinds(traces(scene, by_id)) >= everything, "traces by the id", _TIMEOUT_S)
    poll(lambda: kinds(traces(scene, key)) >= everything, "traces by the key", _TIMEOUT_S)
    assert kinds(traces(scene, by_id)) == everything

    def told() -> dict[str, tuple[str, str]]:
        """What mqadmin prints: Pub and Sub, each with its group and its status."""
        said = scene.mqadmin(f"queryMsgTraceById -i {by_id}")
        rows = [line.split() for line in said.splitlines()]
        return {row[0]: (row[1], row[-1]) for row in rows if row and row[0] in ("Pub", "Sub")}

    expected = {"Pub": (f"producers-{producer.name}", "success"), "Sub": (group, "success")}
    if "SubAfter" not in everything:
        del expected["Sub"]
    assert told() == expected


def pushed(scene: Scene, topic: str, group: str) -> None:
    consumer = OurConsumer(scene, "push", topic, group, config={"enable_trace": True})
    consumer.wait_for(1)
    consumer.stop()


def polled(scene: Scene, topic: str, group: str) -> None:
    settings: Any = {"consume_from": ConsumeFrom.FIRST_OFFSET, "enable_trace": True}
    with LitePullConsumer(group, {topic: "*"}, namesrv_addr=scene.namesrv, **settings) as consumer:
        assert next(consumer).topic == topic


def popped(scene: Scene, topic: str, group: str) -> None:
    settings: Any = {"namesrv_addr": scene.namesrv, "enable_trace": True}
    with PopConsumer(group, {topic: "*"}, **settings) as consumer:
        found: list[Any] = []

        def some() -> bool:
            found.extend(consumer.receive(wait_ms=5_000))
            return bool(found)

        poll(some, "a message", _TIMEOUT_S)
        consumer.ack(found)


@pytest.mark.parametrize("consume", [pushed, polled, popped])
def test_traces_of_our_consumers_are_found(
    trace_scene: Scene, origin: Origin, consume: Callable[[Scene, str, str], None]
) -> None:
    """By mqadmin and by the official client, in the form that these write."""
    if consume is popped and origin.behaves_as == "4.9.7":
        pytest.skip("brokers of 4.9.7 do not pop")
    scene = trace_scene
    topic, group = scene.topic(queues=1), scene.unique("group")
    (sent,) = scene.producer(trace=True).send([message(topic, "traced")])
    consume(scene, topic, group)
    by_id = sent["msg_id"]

    def lines(kind: str) -> list[list[str]]:
        records = "".join(map(text, traces(scene, by_id))).split("\x02")
        return [line.split("\x01") for line in records if line.startswith(kind)]

    poll(lambda: bool(lines("SubBefore") and lines("SubAfter")), "the traces", _TIMEOUT_S)
    (before,), (after,) = lines("SubBefore"), lines("SubAfter")
    assert (len(before), before[3], before[5]) == (8, group, by_id)
    assert (len(after), after[1:3], after[4]) == (9, [before[4], by_id], "true")
    said = scene.mqadmin(f"queryMsgTraceById -i {by_id}")
    (row,) = [line.split() for line in said.splitlines() if line.startswith("Sub")]
    assert (row[1], row[-1]) == (group, "success")


def test_the_trace_topic_is_made_at_the_start(trace_scene: Scene) -> None:
    scene = trace_scene
    scene.wait_for_route(TRACE_TOPIC)
    (queue,) = scene.reader().queues(TRACE_TOPIC)
    assert queue == scene.queue(TRACE_TOPIC, 0)
