# SPDX-License-Identifier: Apache-2.0
"""Light queues (LMQ): official clients, and stores with light queues that change brokers."""

from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, Json, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original
from compat_tests.scene import Scene, poll, turn_of
from compat_tests.store_rows import log_alone, rows

SETTINGS = {
    "enableLmq": "true",
    "enableMultiDispatch": "true",
    "mappedFileSizeCommitLog": str(1024 * 1024),
    "mappedFileSizeConsumeQueue": "2000",
}
FIRST, SECOND = "%LMQ%first", "%LMQ%second"
GROUP = "%LMQ%group"


class Turn:
    """One turn of a broker on the store; what light queues had before is read, and goes on."""

    def __init__(self, scene: Scene, topic: str) -> None:
        self.scene = scene
        self.topic = topic
        self.reader = scene.pull_consumer(GROUP)

    def write(self, word: str) -> None:
        """Messages for both light queues, for one, and for none."""
        producer = self.scene.producer()
        for n in range(6):
            for names in (f"{FIRST},{SECOND}", SECOND):
                properties = {"INNER_MULTI_DISPATCH": names}
                producer.send([message(self.topic, f"{word}{n}", tags="t", properties=properties)])
            producer.send([message(self.topic, f"{word}{n} alone", properties={"word": word})])

    def read(self, name: str, offset: int = 0) -> list[str]:
        """The bodies in a light queue from an offset on."""
        queue = self.queue(name)
        bodies: list[str] = []
        while True:
            pulled = self.reader.pull(queue, offset)
            if pulled["status"] != "FOUND":
                return bodies
            bodies += [text(each) for each in pulled["messages"]]
            offset = pulled["next_offset"]

    def wait(self, words: list[str]) -> None:
        """Until the light queues have what these turns have written."""
        count = 12 * len(words)
        # So that the client knows the broker.
        self.reader.max_offset(self.scene.queue(self.topic, 0))
        poll(lambda: self.reader.max_offset(self.queue(SECOND)) >= count, "all units")

    def check(self, words: list[str]) -> None:
        """Both light queues have what these turns have written, in its order."""
        first = [f"{word}{n}" for word in words for n in range(6)]
        second = [body for body in first for _ in range(2)]
        self.wait(words)
        assert self.read(FIRST) == first
        assert self.read(SECOND) == second
        assert self.reader.max_offset(self.queue(FIRST)) == len(first)
        assert self.reader.min_offset(self.queue(FIRST)) == 0

    def commit(self, offset: int) -> None:
        """The group, which is called like a light queue, has consumed so far."""
        self.reader.store_offset(self.queue(FIRST), offset)
        # The client does not wait for an answer, and the original has more than one thread.
        poll(lambda: self.committed() == offset, "the offset")

    def committed(self) -> int:
        """Where the group is."""
        return self.reader.fetch_offset(self.queue(FIRST))

    def queue(self, name: str) -> Json:
        """A light queue, which no name server knows: it is where its messages are."""
        return {**self.scene.queue(self.topic, 0), "topic": name, "queue_id": 0}


def check_store(broker: Broker, words: list[str], folder: Path) -> None:
    """What the Spark source reads of the light queues, by their units, and by the log alone."""
    first = [f"{word}{n}" for word in words for n in range(6)]
    second = [body for body in first for _ in range(2)]
    expected = [
        (name, 0, offset, body.encode())
        for name, bodies in ((FIRST, first), (SECOND, second))
        for offset, body in enumerate(bodies)
    ]
    for store in (broker.store, log_alone(broker.store, folder / "".join(words))):
        found = rows(store, "topic,queueId,queueOffset,body", topic=f"{FIRST},{SECOND}")
        assert found == expected


@pytest.mark.timeout(400)  # official brokers take up to 20 s to stop
@pytest.mark.parametrize("release", RELEASES)
def test_light_queues_go_from_hand_to_hand(
    origin: Origin, engine: Engine, test_folder: Path, first_jvm: ClientJvm, release: str
) -> None:
    names = NameServer(origin, test_folder / f"light-namesrv-{release}")
    ours = Broker(origin, test_folder / f"light-{release}", names, "broker-x", SETTINGS)
    official = ours.under(Original(release, engine))
    topic = f"light-{release.replace('.', '_')}"
    logs = test_folder / f"light-logs-{release}"
    logs.mkdir()
    names.start()
    try:
        with turn_of(ours, first_jvm, Turn, topic) as turn:
            turn.scene.admin().create_topic(ours.address, topic, 2)
            turn.scene.wait_for_route(topic)
            turn.write("a")
            turn.check(["a"])
            turn.commit(5)
            ours.stop()
            check_store(ours, ["a"], logs)
        with turn_of(official, first_jvm, Turn, topic) as turn:
            turn.check(["a"])
            assert turn.committed() == 5
            turn.write("b")
            turn.check(["a", "b"])
            turn.commit(9)
            official.stop()
            check_store(official, ["a", "b"], logs)
        with turn_of(ours, first_jvm, Turn, topic) as turn:
            turn.check(["a", "b"])
            assert turn.committed() == 9
            turn.write("c")
            ours.kill()
        with turn_of(official, first_jvm, Turn, topic) as turn:
            turn.check(["a", "b", "c"])
            turn.write("d")
            turn.wait(["a", "b", "c", "d"])
            official.kill()
        with turn_of(ours, first_jvm, Turn, topic) as turn:
            turn.check(["a", "b", "c", "d"])
            check_store(ours, ["a", "b", "c", "d"], logs)
    finally:
        names.close()
