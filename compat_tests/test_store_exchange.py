# SPDX-License-Identifier: Apache-2.0
"""One store, opened in turn by the broker under test and by official brokers.

Whatever one has written, after an orderly stop as after a kill, the other serves unchanged and
goes on from there: messages, offsets of consumer groups, and the index of keys.
"""

import time
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, JavaError, Json, message
from compat_tests.peers import Broker, NameServer, Origin, Original
from compat_tests.scene import Scene, poll, turn_of

ADDED_BY_CLIENTS = {"MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME"}


class Stage:
    """One turn: some origin's broker on the store, with what the turns before have left."""

    def __init__(self, scene: Scene, topic: str, stored: list[Json]) -> None:
        self.scene = scene
        self.topic = topic
        self.stored = stored

    def check(self) -> None:
        """All that was stored before is there as it was."""
        found = [_lasting(item) for item in self.scene.read(self.topic, len(self.stored))]
        assert found == self.stored

    def write(self, word: str) -> None:
        """More messages of every kind, in all queues."""
        producer = self.scene.producer()
        producer.send(
            [
                message(self.topic, f"{word}{n}", tags=f"t{n % 3}", keys=f"{word}-{n} all")
                for n in range(16)
            ]
        )
        properties = {"größe": "漢字 \U0001f680", "word": word}
        producer.send([message(self.topic, word, flag=77, properties=properties)])
        producer.send([message(self.topic, word.encode() * 20_000)])  # compressed
        producer.send_batch([message(self.topic, f"{word} batch {n}") for n in range(8)])
        before = len(self.stored)
        self.stored = [_lasting(item) for item in self.scene.read(self.topic, before + 26)]
        assert len(self.stored) == before + 26

    def consume(self, group: str, expected: int) -> None:
        """The group gets what came since its last turn, and its offsets are kept."""
        consumer = self.scene.push_consumer(self.topic, group)
        consumer.wait_for(expected)
        time.sleep(1)  # after the listener has had it, the last message counts as consumed
        assert len(consumer.events()) == expected
        self.scene.stopped(consumer)

    def check_keys(self, words: list[str]) -> None:
        """Each turn's messages are found by their keys; the index may be a moment behind."""
        for word in words:
            poll(lambda: bool(self._found(f"{word}-7")), f"{word}-7 is in the index")  # noqa: B023
            assert self._found(f"{word}-7") == [f"{word}-7 all"]

    def _found(self, key: str) -> list[str]:
        """All keys of each message that a key finds."""
        try:
            return [item["keys"] for item in self.scene.admin().messages_by_key(self.topic, key)]
        except JavaError:
            return []


def _lasting(received: Json) -> Json:
    """A message without what its reader adds."""
    kept = {name: received[name] for name in received if name not in ("properties", "broker")}
    kept["properties"] = {
        name: value
        for name, value in received["properties"].items()
        if name not in ADDED_BY_CLIENTS
    }
    return kept


@pytest.mark.parametrize("release", RELEASES)
def test_the_store_goes_from_hand_to_hand(
    origin: Origin, engine: Engine, test_folder: Path, first_jvm: ClientJvm, release: str
) -> None:
    names = NameServer(origin, test_folder / f"exchange-namesrv-{release}")
    settings = {"mappedFileSizeCommitLog": str(1024 * 1024)}
    ours = Broker(origin, test_folder / f"exchange-{release}", names, "broker-x", settings)
    official = ours.under(Original(release, engine))
    topic, group = f"exchange-{release.replace('.', '_')}", f"group-{release.replace('.', '_')}"
    names.start()
    try:
        with turn_of(ours, first_jvm, Stage, topic, []) as turn:
            turn.scene.admin().create_topic(ours.address, topic, 4)
            turn.scene.wait_for_route(topic)
            turn.write("first")
            turn.consume(group, 26)
            ours.stop()
        with turn_of(official, first_jvm, Stage, topic, turn.stored) as turn:
            turn.check()
            turn.write("second")
            turn.consume(group, 26)
            turn.check_keys(["first", "second"])
            official.stop()
        with turn_of(ours, first_jvm, Stage, topic, turn.stored) as turn:
            turn.check()
            turn.write("third")
            turn.consume(group, 26)
            turn.check_keys(["first", "second", "third"])
            ours.kill()
        with turn_of(official, first_jvm, Stage, topic, turn.stored) as turn:
            turn.check()
            turn.write("fourth")
            turn.check_keys(["third", "fourth"])
            official.kill()
        with turn_of(ours, first_jvm, Stage, topic, turn.stored) as turn:
            turn.check()
            turn.check_keys(["first", "second", "third", "fourth"])
    finally:
        names.close()
