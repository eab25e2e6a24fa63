# SPDX-License-Identifier: Apache-2.0
"""A store that an original broker wrote with SQL92 filters and their bitmaps.

`python -m compat_tests.filter_store 5.4.0 store-5.4.0.tar.xz` makes one, as those in
tests/golden/filter were made. The README there says what is in them.
"""

import sys
import tarfile
import tempfile
import time
from pathlib import Path

from compat_tests.engine import open_java
from compat_tests.java_client import ClientJvm, Json, PushConsumer, message
from compat_tests.peers import Broker, NameServer, Original
from compat_tests.scene import Scene, poll

TOPIC = "Filtered"
SETTINGS = {
    "enablePropertyFilter": "true",
    "enableConsumeQueueExt": "true",
    "enableCalcFilterBitMap": "true",
    "mappedFileSizeCommitLog": "262144",
    "mappedFileSizeConsumeQueue": "2000",
    "mappedFileSizeConsumeQueueExt": "4096",
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
}
_KEPT = (
    "commitlog", "consumequeue/Filtered", "consumequeue_ext/Filtered", "checkpoint",
    "config/consumerFilter.json", "config/topics.json", "config/consumerOffset.json",
    "config/subscriptionGroup.json",
)  # fmt: skip


def main() -> None:
    """Writes the store as the module says."""
    release, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = open_java("local", folder, print)
        names = NameServer(Original(release, engine), folder / "namesrv")
        broker = Broker(Original(release, engine), folder / "broker", names, "broker-a", SETTINGS)
        names.start()
        try:
            broker.start()
            jvm = ClientJvm(release, engine, folder / "java")
            try:
                _fill(Scene(jvm, broker))
            finally:
                jvm.kill()
            time.sleep(2)  # gives the broker time to notice that its consumers are gone
            broker.stop()
        finally:
            broker.kill()
            names.kill()
        with tarfile.open(target, "w:xz") as archive:
            for path in _KEPT:
                archive.add(broker.store / path, path)


def _fill(scene: Scene) -> None:
    scene.admin().create_topic(scene.broker.address, TOPIC, 2, 6)
    scene.wait_for_route(TOPIC)
    _send(scene, range(10))
    more = scene.push_consumer(TOPIC, "g-more", sql="a > 15 AND b = 'x'")
    few = scene.push_consumer(TOPIC, "g-few", sql="a BETWEEN 3 AND 17")
    for consumer in (more, few):
        _wait_for_queues(consumer)
    time.sleep(2)  # messages from now on are stored after the filters were born
    _send(scene, range(10, 30))
    more.wait_for(10)
    few.wait_for(15)
    scene.stopped(few)
    time.sleep(1)
    _send(scene, range(30, 34))


def _wait_for_queues(consumer: PushConsumer) -> None:
    poll(lambda: len(consumer.assignment()) == 2, "it has both queues")


def _send(scene: Scene, numbers: range) -> None:
    producer = scene.producer()
    for number in numbers:
        producer.send([_message(number)], queue=scene.queue(TOPIC, number % 2))


def _message(number: int) -> Json:
    properties = {"a": str(number), "b": "x" if number % 3 else "y"}
    return message(TOPIC, f"m{number}", properties=properties)


if __name__ == "__main__":
    main()
