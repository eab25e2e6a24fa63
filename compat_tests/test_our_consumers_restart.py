# SPDX-License-Identifier: Apache-2.0
"""Our consumers lose nothing while consumers are killed and servers go away and come back.

Every message whose send was answered must be consumed by somebody. Meanwhile no consumer may be
busy without a server to talk to, nor grow.
"""

import contextlib
import os
import random
import threading
import time
from pathlib import Path

import pytest

from compat_tests.java_client import ClientJvm, JavaError, Producer, message
from compat_tests.our_consumer import OurConsumer
from compat_tests.peers import Broker
from compat_tests.scene import Scene, poll

pytestmark = pytest.mark.timeout(1200)

AWAY_S = 30.0
RECOVERED_S = 240.0
MAX_CPU_SHARE = 0.5
"""Of a core, while there is no server; a loop without pauses would take all of it."""
MAX_GROWTH_BYTES = 100 * 1024 * 1024


class Load:
    """Messages all the time; `acknowledged` are those whose send was answered."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.acknowledged: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(producer, topic))
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _send(self, producer: Producer, topic: str) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            with contextlib.suppress(JavaError):
                producer.send([message(topic, f"m{number}")])
                self.acknowledged.append(f"m{number}")
            time.sleep(0.005)


def cpu_s(consumer: OurConsumer) -> float:
    fields = Path(f"/proc/{consumer.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(consumer: OurConsumer) -> int:
    pages = int(Path(f"/proc/{consumer.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("kind", ["push", "orderly"])
def test_nothing_acknowledged_is_lost(first_jvm: ClientJvm, own_broker: Broker, kind: str) -> None:
    scene = Scene(first_jvm, own_broker)
    topic, group = scene.topic(queues=6), scene.unique("group")
    chance = random.Random(20_261_122)
    made = [OurConsumer(scene, kind, topic, group) for _ in range(3)]
    alive = list(made)
    load = Load(scene.producer(), topic)
    try:
        for step in ("consumer", "broker", "consumer", "names", "broker killed", "all"):
            time.sleep(chance.uniform(1, 3))
            if step == "consumer":
                victim = alive.pop(chance.randrange(len(alive)))
                victim.kill()
                alive.append(OurConsumer(scene, kind, topic, group))
                made.append(alive[-1])
            elif step == "names":
                own_broker.name_server.kill()
                time.sleep(2)
                own_broker.name_server.start()
            elif step == "all":
                away(own_broker, alive)
            else:
                own_broker.kill() if step.endswith("killed") else own_broker.stop()
                time.sleep(2)
                own_broker.start()
        before = len(load.acknowledged)
        poll(lambda: len(load.acknowledged) > before + 50, "sends succeed again", RECOVERED_S)
        load.stop()

        def missing() -> set[str]:
            consumed = {body for consumer in made for body in consumer.bodies()}
            return set(load.acknowledged) - consumed

        poll(lambda: not missing(), "all that was acknowledged was consumed", RECOVERED_S)
        assert len(load.acknowledged) > 100
        for consumer in alive:
            consumer.stop()
    finally:
        load.stop()
        for consumer in made:
            consumer.kill()
        scene.close()


def away(own_broker: Broker, alive: list[OurConsumer]) -> None:
    """All servers are away for half a minute, in which the consumers do next to nothing."""
    own_broker.kill()
    own_broker.name_server.kill()
    begun = [(cpu_s(each), resident_bytes(each)) for each in alive]
    time.sleep(AWAY_S)
    for consumer, (used_s, bytes_before) in zip(alive, begun, strict=True):
        assert cpu_s(consumer) - used_s < MAX_CPU_SHARE * AWAY_S
        assert resident_bytes(consumer) - bytes_before < MAX_GROWTH_BYTES
    own_broker.name_server.start()
    own_broker.start()
