# SPDX-License-Identifier: Apache-2.0
"""Timer messages of the official 5.x producer: delivered in time, withdrawn, moved with a store."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, JavaError, Json, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.scene import Scene, poll

RELEASE: Final = "5.4.0"
SETTINGS: Final = {"recallMessageEnable": "true"}
ON_THE_WAY: Final = {"TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_OUT_MS"}


@pytest.fixture(scope="module")
def timer_broker(origin: Origin, name_server: NameServer, work_folder: Path) -> Iterator[Broker]:
    if origin.behaves_as == "4.9.7" and not isinstance(origin, Ours):
        pytest.skip("4.9.7 has no timer messages")
    broker = Broker(origin, work_folder / "timers", name_server, "broker-w", SETTINGS)
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def scene(jvms: dict[str, ClientJvm], timer_broker: Broker) -> Iterator[Scene]:
    scene = Scene(jvms[RELEASE], timer_broker)
    yield scene
    scene.close()


def bodies(messages: list[Json]) -> list[str]:
    return sorted(text(item) for item in messages)


def test_delivered_at_their_time(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    producer = scene.producer()
    now_ms = int(time.time() * 1000)
    properties = {"größe": "漢字"}
    more = {"tags": "a", "keys": "k", "flag": 7, "properties": properties}
    results = producer.send(
        [
            message(topic, "seconds", delay_sec=6, **more),
            message(topic, "milliseconds", delay_ms=6_500, **more),
            message(topic, "time", deliver_ms=now_ms + 7_000, **more),
            message(topic, "past", deliver_ms=now_ms - 10_000, **more),
            message(topic, "negative", delay_sec=-5, **more),
        ]
    )
    assert [each["status"] for each in results] == ["SEND_OK"] * 5
    assert [bool(each["recall_handle"]) for each in results] == [True] * 3 + [False] * 2
    handle = base64.urlsafe_b64decode(results[0]["recall_handle"]).decode().split(" ")
    assert (handle[0], handle[1], handle[2]) == ("v1", topic, scene.broker.name)
    assert handle[4] == results[0]["msg_id"]
    assert int(handle[3]) % 1000 == 1
    assert bodies(scene.read(topic, 2)) == ["negative", "past"]
    received = scene.read(topic, 5, 60)
    assert bodies(received) == ["milliseconds", "negative", "past", "seconds", "time"]
    by_body = {text(item): item for item in received}
    for at, word in enumerate(["seconds", "milliseconds", "time"]):
        item = by_body[word]
        assert item["store_timestamp"] >= now_ms + 6_000
        assert (item["tags"], item["keys"], item["flag"]) == ("a", "k", 7)
        assert item["properties"]["größe"] == "漢字"
        assert item["msg_id"] == results[at]["msg_id"]
        assert item["queue_id"] == results[at]["queue"]["queue_id"]
        assert item["properties"].keys() >= ON_THE_WAY
        assert int(item["properties"]["TIMER_OUT_MS"]) == int(
            base64.urlsafe_b64decode(results[at]["recall_handle"]).decode().split(" ")[3]
        ) - 1  # fmt: skip
        assert (item["properties"]["REAL_TOPIC"], item["properties"]["REAL_QID"]) == (
            topic, str(item["queue_id"]),
        )  # fmt: skip
    assert not by_body["past"]["properties"].keys() & ON_THE_WAY


def test_a_push_consumer_gets_what_is_due(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    consumer = scene.push_consumer(topic, scene.unique("group"), expression="a")
    producer = scene.producer()
    producer.send([message(topic, f"m{n}", delay_ms=4_000 + 300 * n, tags="a") for n in range(10)])
    assert bodies(consumer.wait_for(10)) == [f"m{n}" for n in range(10)]


def test_taken_back(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    producer = scene.producer()
    results = producer.send([message(topic, f"m{n}", delay_sec=8) for n in range(6)])
    for at in (0, 3):
        assert producer.recall(topic, results[at]["recall_handle"]) == results[at]["msg_id"]
    deleting = {"TIMER_DEL_UNIQKEY": results[5]["msg_id"]}
    out_ms = int(base64.urlsafe_b64decode(results[5]["recall_handle"]).decode().split(" ")[3])
    producer.send([message(topic, "0", deliver_ms=out_ms, own=deleting)])
    producer.send([message(topic, "last", delay_sec=12)])
    poll(lambda: "last" in bodies(scene.read(topic, 0)), "the last has come", 60)
    assert bodies(scene.read(topic, 4)) == ["last", "m1", "m2", "m4"]


def test_what_is_refused(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    producer = scene.producer()
    for more in ({"delay_sec": 259_201}, {"deliver_ms": 4_102_444_800_000}):
        with pytest.raises(
            JavaError, match="timer message illegal, the delay time should not"
        ) as e:
            producer.send([message(topic, "far", **more)])
        assert e.value.code == 13
    with pytest.raises(JavaError) as e:
        producer.send([message(topic, "none", own={"TIMER_DELAY_SEC": "soon"})])
    assert e.value.code == 13
    with pytest.raises(JavaError) as e:
        producer.send([message(topic, "late", own={"TIMER_DEL_UNIQKEY": "x"}, delay_sec=-1)])
    assert e.value.code == 13
    assert scene.read(topic, 0) == []


def handle_of(*items: str) -> str:
    return base64.urlsafe_b64encode(" ".join(items).encode()).decode()


def test_handles_that_are_none(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    producer = scene.producer()
    now_ms, name = int(time.time() * 1000), scene.broker.name
    for handle, code, remark in (
        (handle_of("v1", "other", name, str(now_ms + 5_000), "K"), 604, "topic not match"),
        (handle_of("v1", topic, name, str(now_ms - 1), "K"), 604, "timestamp invalid"),
        (handle_of("v1", topic, name, "soon", "K"), 604, "timestamp invalid"),
        (handle_of("v1", topic, name, str(now_ms + 259_300_000), "K"), 604, "timestamp invalid"),
    ):
        with pytest.raises(JavaError, match=remark) as e:
            producer.recall(topic, handle)
        assert e.value.code == code


class Handed:
    """A store that goes from one origin to another with timer messages that wait."""

    def __init__(self, broker: Broker, jvm: ClientJvm, topic: str) -> None:
        self.broker, self.topic = broker, topic
        self.scene = Scene(jvm, broker)

    def begin(self) -> None:
        """Some are delivered, others wait; one is taken back."""
        scene = self.scene
        scene.admin().create_topic(self.broker.address, self.topic, 2)
        scene.wait_for_route(self.topic)
        producer = scene.producer()
        waits = [message(self.topic, f"wait{n}", delay_sec=45 + n % 7) for n in range(50)]
        results = producer.send(waits)
        producer.send([message(self.topic, f"now{n}", delay_sec=2) for n in range(5)])
        producer.recall(self.topic, results[49]["recall_handle"])
        scene.read(self.topic, 5, 60)
        time.sleep(2.5)  # the progress of an original is written each second
        scene.close()

    def go_on(self) -> None:
        expected = sorted([f"wait{n}" for n in range(49)] + [f"now{n}" for n in range(5)])
        found = self.scene.read(self.topic, len(expected), 120)
        assert sorted({text(item) for item in found}) == expected
        again = self.scene.producer()
        again.send([message(self.topic, "next", delay_sec=2)])
        self.scene.read(self.topic, len(found) + 1, 60)
        assert len(found) == len(expected)
        self.scene.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.whole_matrix), "kill"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_what_waits_goes_from_hand_to_hand(
    origin: Origin,
    engine: Engine,
    test_folder: Path,
    jvms: dict[str, ClientJvm],
    first: str,
    end: str,
) -> None:
    """What one has left in its wheel the other delivers."""
    if not isinstance(origin, Ours):
        pytest.skip("one of both sides is ours")
    folder = test_folder / f"timers-handed-{first}-{end}"
    names = NameServer(origin, folder / "namesrv")
    ours = Broker(origin, folder, names, "broker-h", SETTINGS)
    official = ours.under(Original(RELEASE, engine))
    one, other = (ours, official) if first == "ours" else (official, ours)
    topic = f"timers-handed-{first}-{end}"
    names.start()
    try:
        one.start()
        Handed(one, jvms[RELEASE], topic).begin()
        getattr(one, end)()
        one.close()
        other.start()
        Handed(other, jvms[RELEASE], topic).go_on()
        other.stop()
    finally:
        ours.close()
        official.close()
        names.close()
