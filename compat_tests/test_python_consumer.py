# SPDX-License-Identifier: Apache-2.0
"""Our push consumer, as `txrocketmq consume`, alone and in one group with the official Java one."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from compat_tests.java_client import message, text
from compat_tests.scene import Scene, poll

_ENDS_S = 30


class Consumer:
    """A process that consumes until `stop`; what it has printed is kept in a file."""

    def __init__(self, scene: Scene, folder: Any, topic: str, group: str) -> None:
        self._path = folder / f"{scene.unique('out')}.jsonl"
        self._log = self._path.with_suffix(".log")
        command = [sys.executable, "-m", "txrocketmq.cli", "consume", topic, "--group", group]
        options = ["--namesrv", scene.namesrv, "--from", "first", "--json"]
        with self._path.open("wb") as out, self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, *options], stdout=out, stderr=log)

    def events(self) -> list[dict[str, Any]]:
        """The messages so far; a line that is not whole yet does not count."""
        lines = self._path.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def bodies(self) -> list[str]:
        return [event["body"] for event in self.events()]

    def named(self) -> list[str]:
        """Its warnings of members that subscribe to something else."""
        words = "subscribe to different things"
        return [line for line in self._log.read_text().splitlines() if words in line]

    def stop(self) -> None:
        """Ends it in order; it has committed then."""
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(_ENDS_S) == 0


def test_python_goes_on_where_java_stopped_and_the_reverse(scene: Scene, tmp_path: Any) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    producer = scene.producer()

    def send(name: str) -> set[str]:
        bodies = [f"{name}{n}" for n in range(20)]
        producer.send([message(topic, body) for body in bodies])
        return set(bodies)

    first = send("a")
    java = scene.push_consumer(topic, group)
    assert {text(item) for item in java.wait_for(20)} == first
    scene.stopped(java)

    second = send("b")
    python = Consumer(scene, tmp_path, topic, group)
    poll(lambda: second <= set(python.bodies()), "Python has consumed all that is new", 60)
    python.stop()
    # What Java's listener had at the moment of its end may come again, and nothing else.
    again = set(python.bodies()) - second
    assert again <= first
    assert len(again) < len(first)

    third = send("c")
    last = scene.push_consumer(topic, group)
    assert {text(item) for item in last.wait_for(20)} == third


@pytest.mark.both_releases
def test_python_and_java_share_the_queues_of_a_group(scene: Scene, tmp_path: Any) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    producer = scene.producer()
    java = scene.push_consumer(topic, group)
    poll(lambda: len(java.assignment()) == 4, "Java has all queues", 60)
    python = Consumer(scene, tmp_path, topic, group)
    try:
        poll(lambda: len(java.assignment()) == 2, "Java has given up two queues", 60)

        def both_consume() -> bool:
            producer.send([message(topic, "probe") for _ in range(4)])
            return "probe" in python.bodies() and "probe" in java.bodies()

        poll(both_consume, "both consume", 60)
        producer.send([message(topic, f"m{n}") for n in range(100)])
        wanted = {f"m{n}" for n in range(100)}

        def all_are_there() -> bool:
            return wanted <= {*java.bodies(), *python.bodies()}

        poll(all_are_there, "each message is consumed by one of the two", 60)
        own = {event["queueId"] for event in python.events() if event["body"] in wanted}
        others = {item["queue_id"] for item in java.messages() if text(item) in wanted}
        assert (len(own), len(others), own & others) == (2, 2, set())
    finally:
        python.stop()


@pytest.mark.both_releases
def test_a_java_member_with_another_topic_is_named(scene: Scene, tmp_path: Any) -> None:
    topic, other, group = scene.topic(), scene.topic(), scene.unique("group")
    java = scene.push_consumer(other, group, expression="a || b")
    python = Consumer(scene, tmp_path, topic, group)
    try:
        poll(lambda: bool(python.named()), "Python has named the other member", 60)
        (said,) = python.named()
        assert (
            f" WARN client.consumer.group.same_subscriptions: members of the group {group} " in said
        )
        assert f" to {topic} (*), but {java.client_id} to {other} (a || b); give " in said
    finally:
        python.stop()


@pytest.mark.both_releases
def test_nothing_is_said_of_a_java_member_with_the_same_topic(scene: Scene, tmp_path: Any) -> None:
    topic, group = scene.topic(queues=4), scene.unique("group")
    java = scene.push_consumer(topic, group)
    python = Consumer(scene, tmp_path, topic, group)
    try:
        poll(lambda: len(java.assignment()) == 2, "Java has given up two queues", 60)
        time.sleep(8)  # members are asked five seconds after a change
        assert python.named() == []
    finally:
        python.stop()
