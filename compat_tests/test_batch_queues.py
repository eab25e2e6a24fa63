# SPDX-License-Identifier: Apache-2.0
"""Topics with queues of batches (BatchCQ): official clients, and stores that change brokers."""

import json
import time
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original
from compat_tests.scene import Scene, poll, turn_of
from compat_tests.store_rows import rows

SETTINGS = {
    "mappedFileSizeCommitLog": str(1024 * 1024),
    "mapperFileSizeBatchConsumeQueue": str(46 * 5),
}
SIZES = [5, 1, 3, 1]
"""How many messages each record has that one `write` makes."""
TOTAL = sum(SIZES)


class Turn:
    """One turn of a broker on the store; all messages are in queue 0."""

    def __init__(self, scene: Scene, topic: str) -> None:
        self.scene = scene
        self.queue = scene.queue(topic, 0)
        self.topic = topic
        self.reader = scene.pull_consumer("readers")

    def create(self) -> None:
        line = f"updateTopic -b {self.scene.broker.address} -t {self.topic} -r 1 -w 1"
        self.scene.mqadmin(f"{line} -a +queue.type=BatchCQ")
        self.scene.wait_for_route(self.topic)

    def write(self, word: str) -> list[int]:
        """Batches, and messages alone; the queue offsets that the answers tell."""
        producer = self.scene.producer()
        offsets: list[int] = []
        number = 0
        for size in SIZES:
            made = []
            for _ in range(size):
                made.append(
                    message(self.topic, f"{word}{number}", tags="t", keys=f"{word}{number}")
                )
                number += 1
            sent = producer.send_batch(made) if size > 1 else producer.send(made)[0]
            assert sent["status"] == "SEND_OK"
            assert "," not in sent["msg_id"], "a batch is one record, with one key"
            offsets.append(sent["queue_offset"])
            time.sleep(0.02)
        return offsets

    def wait(self, count: int) -> None:
        """Until the queue has so many messages."""
        poll(lambda: self.reader.max_offset(self.queue) == count, "all units")

    def check(self, words: list[str]) -> None:
        """Every message is there, from wherever in the queue one begins."""
        bodies = [f"{word}{n}" for word in words for n in range(TOTAL)]
        starts = [sum((SIZES * len(words))[:at]) for at in range(len(SIZES) * len(words))]
        ends = [*starts[1:], len(bodies)]
        self.wait(len(bodies))
        assert self.reader.min_offset(self.queue) == 0
        for offset in range(len(bodies)):
            begun = max(start for start in starts if start <= offset)
            for most in (1, 4, 32):
                pulled = self.reader.pull(self.queue, offset, most=most)
                assert pulled["status"] == "FOUND"
                after = min(end for end in ends if end > offset)
                for end in ends:
                    if after < end <= begun + most:
                        after = end
                files = [at for at in starts[5::5] if at > begun]
                after = min([after, *files])  # a pull ends with a file of the queue
                assert pulled["next_offset"] == after
                found = [(each["queue_offset"], text(each)) for each in pulled["messages"]]
                assert found == [*enumerate(bodies)][begun:after]
        pulled = self.reader.pull(self.queue, len(bodies))
        assert pulled["status"] in ("NO_NEW_MSG", "OFFSET_ILLEGAL")

    def check_times(self) -> None:
        """What a search by time finds."""
        first = self.reader.pull(self.queue, 0)["messages"]
        times = {each["queue_offset"]: each["store_timestamp"] for each in first}
        search = self.reader.search_offset
        assert search(self.queue, 1) == 0
        assert search(self.queue, times[5]) == 5
        assert search(self.queue, times[5] - 1) == 5
        assert search(self.queue, times[5] + 1) == 6
        last = self.reader.max_offset(self.queue) - 1
        assert search(self.queue, int(time.time() * 1000) + 100_000) == last

    def check_tags(self) -> None:
        """A batch has no tag, whatever its messages have: only messages alone are found."""
        found: list[int] = []
        offset = 0
        while True:
            pulled = self.reader.pull(self.queue, offset, expression="t")
            if pulled["status"] not in ("FOUND", "NO_MATCHED_MSG"):
                break
            found += [each["queue_offset"] for each in pulled.get("messages", [])]
            offset = pulled["next_offset"]
        assert found[:2] == [5, 9]

    def consume(self, group: str, expected: list[str]) -> None:
        """A push consumer of the group gets these."""
        consumer = self.scene.push_consumer(self.topic, group)
        consumer.wait_for(len(expected))
        time.sleep(1)
        assert sorted(consumer.bodies()) == sorted(expected)
        self.scene.stopped(consumer)


def check_store(broker: Broker, topic: str, words: list[str]) -> None:
    """What the Spark source reads of the store: each message, however it is found."""
    bodies = [f"{word}{n}" for word in words for n in range(TOTAL)]
    expected = [(topic, 0, offset, text.encode(), "t") for offset, text in enumerate(bodies)]
    columns = "topic,queueId,queueOffset,body,tags"
    for options in (
        {"topic": topic},
        {"topicPattern": topic},
        {"topic": topic, "verify": "store"},
        {"topic": topic, "subExpression": "t"},
        {"assign": json.dumps({topic: [0]}), "minPartitions": "5"},
    ):
        assert rows(broker.store, columns, **options) == expected
    sizes = [size for (size,) in rows(broker.store, "storeSize", topic=topic)]
    wanted = "minOffset,maxOffset,messages,bytes"
    ((least, most, count, size),) = rows(broker.store, wanted, topic=topic, table="queues")
    assert (least, most, count, size) == (0, len(bodies), len(bodies), sum(sizes))


@pytest.mark.timeout(400)
def test_batches_are_stored_and_read(
    origin: Origin, test_folder: Path, jvms: dict[str, ClientJvm]
) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9 has no such queues")
    names = NameServer(origin, test_folder / "batch-namesrv")
    broker = Broker(origin, test_folder / "batch", names, "broker-b", SETTINGS)
    names.start()
    try:
        with turn_of(broker, jvms["5.4.0"], Turn, "batched") as turn:
            turn.create()
            assert turn.write("a") == [0, 5, 6, 9]
            assert turn.write("b") == [10, 15, 16, 19]
            turn.check(["a", "b"])
            turn.check_times()
            turn.check_tags()
            turn.consume("group", [f"{word}{n}" for word in "ab" for n in range(TOTAL)])
            queried = turn.scene.admin().messages_by_key("batched", "a5")
            assert [text(each) for each in queried] == ["a5"]
    finally:
        names.close()


@pytest.mark.timeout(400)
def test_stores_with_batches_go_from_hand_to_hand(
    origin: Origin, engine: Engine, test_folder: Path, jvms: dict[str, ClientJvm]
) -> None:
    names = NameServer(origin, test_folder / "batch-names")
    ours = Broker(origin, test_folder / "batch-exchange", names, "broker-c", SETTINGS)
    official = ours.under(Original("5.4.0", engine))
    jvm, topic = jvms["5.4.0"], "exchanged"
    names.start()
    try:
        with turn_of(ours, jvm, Turn, topic) as turn:
            turn.create()
            turn.write("a")
            turn.check(["a"])
            turn.consume("group", [f"a{n}" for n in range(TOTAL)])
            ours.stop()
            check_store(ours, topic, ["a"])
        with turn_of(official, jvm, Turn, topic) as turn:
            turn.check(["a"])
            assert turn.write("b") == [10, 15, 16, 19]
            turn.check(["a", "b"])
            turn.consume("group", [f"b{n}" for n in range(TOTAL)])
            check_store(official, topic, ["a", "b"])
            official.stop()
            check_store(official, topic, ["a", "b"])
        with turn_of(ours, jvm, Turn, topic) as turn:
            turn.check(["a", "b"])
            turn.write("c")
            turn.check(["a", "b", "c"])
            ours.kill()
        with turn_of(official, jvm, Turn, topic) as turn:
            turn.check(["a", "b", "c"])
            turn.write("d")
            turn.wait(4 * TOTAL)
            official.kill()
        with turn_of(ours, jvm, Turn, topic) as turn:
            turn.check(["a", "b", "c", "d"])
            check_store(ours, topic, ["a", "b", "c", "d"])
            turn.check_times()
    finally:
        names.close()
