# SPDX-License-Identifier: Apache-2.0
"""Our producers while servers go away and come back, and while producers are killed.

Every message whose send was answered is there afterwards; the producers go on by themselves, and
are neither busy meanwhile nor do they grow.
"""

import itertools
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests.java_client import text
from compat_tests.peers import Broker, Origin, Ours
from compat_tests.scene import Scene, poll
from txrocketmq.client import (
    MQClientError,
    Producer,
    RemotingError,
    TransactionProducer,
    TransactionStatus,
    new_message,
)

pytestmark = pytest.mark.timeout(900)

AWAY_S: Final = 30.0
RECOVERED_S: Final = 120.0
ANSWERED_S: Final = 60.0
MAX_CPU_SHARE: Final = 0.5
"""Of a core, while there is no server; senders that do not wait would take all of it."""
MAX_GROWTH_KIB: Final = 100 * 1024
GRACE: Final = {"enableShutdownGracefully": "true", "shutdownWaitTimeSeconds": "2"}


class Load:
    """Messages all the time, each in another way; `acknowledged` are those that were answered."""

    def __init__(self, producer: Any, topic: str) -> None:
        self.acknowledged: dict[str, list[str]] = {"one": [], "many": [], "batch": []}
        self.failed: list[Exception] = []
        self._producer = producer
        self._topic = topic
        self._over = threading.Event()
        ways: list[Callable[[list[str]], list[str]]] = [self._one, self._many, self._batch]
        self._threads = [
            threading.Thread(target=self._send, args=(name, way))
            for name, way in zip(self.acknowledged, ways, strict=True)
        ]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def counts(self) -> list[int]:
        return [len(each) for each in self.acknowledged.values()]

    def _send(self, name: str, way: Callable[[list[str]], list[str]]) -> None:
        for number in itertools.count():
            if self._over.wait(0.01):
                return
            bodies = [f"{name}-{number}-{each}" for each in range(5)]
            try:
                self.acknowledged[name] += way(bodies)
            except (MQClientError, RemotingError) as error:
                self.failed.append(error)

    def _one(self, bodies: list[str]) -> list[str]:
        self._producer.send(new_message(self._topic, bodies[0]))
        return bodies[:1]

    def _many(self, bodies: list[str]) -> list[str]:
        sends = [
            (body, self._producer.send_async(new_message(self._topic, body))) for body in bodies
        ]
        errors = [send.exception(ANSWERED_S) for _, send in sends]
        self.failed += [error for error in errors if isinstance(error, Exception)]
        return [body for (body, _), error in zip(sends, errors, strict=True) if error is None]

    def _batch(self, bodies: list[str]) -> list[str]:
        self._producer.send_batch([new_message(self._topic, body) for body in bodies])
        return bodies


def test_what_was_acknowledged_is_there_whatever_became_of_the_servers(
    first_jvm: Any, own_broker: Broker
) -> None:
    scene = Scene(first_jvm, own_broker)
    topic, chance = scene.topic(queues=6), random.Random(20_261_123)
    with Producer(scene.unique("restarts"), namesrv_addr=scene.namesrv) as producer:
        load = Load(producer, topic)
        try:
            for step in ("broker", "names", "broker killed", "all"):
                time.sleep(chance.uniform(1, 3))
                if step == "names":
                    own_broker.name_server.kill()
                    time.sleep(2)
                    own_broker.name_server.start()
                elif step == "all":
                    away(own_broker)
                else:
                    own_broker.kill() if step.endswith("killed") else own_broker.stop()
                    time.sleep(2)
                    own_broker.start()
                before = load.counts()

                def goes_on(before: list[int] = before) -> bool:
                    pairs = zip(load.counts(), before, strict=True)
                    return all(now > then + 10 for now, then in pairs)

                poll(goes_on, f"all sends succeed again after: {step}", RECOVERED_S)
        finally:
            load.stop()
    wanted = set[str]().union(*load.acknowledged.values())
    assert len(wanted) > 100
    stored = {text(each) for each in scene.read(topic, len(wanted), 60)}
    assert wanted - stored == set()
    scene.close()


def away(own_broker: Broker) -> None:
    """All servers are away for half a minute, in which the producer does next to nothing."""
    own_broker.kill()
    own_broker.name_server.kill()
    used_s, most_kib = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    time.sleep(AWAY_S)
    assert time.process_time() - used_s < MAX_CPU_SHARE * AWAY_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most_kib < MAX_GROWTH_KIB
    own_broker.name_server.start()
    own_broker.start()


def test_no_send_fails_while_one_of_two_brokers_stops_in_order(
    first_jvm: Any, origin: Origin, own_broker: Broker, test_folder: Path
) -> None:
    """What it has begun is answered, all else is sent away: nothing is stored twice either.

    No answer is tried again for its code: the producer never sees a GO_AWAY.
    """
    folder, names = test_folder / "graceful-broker", own_broker.name_server
    leaving = Broker(origin, folder, names, "broker-leaving", GRACE)
    with closing(leaving):
        leaving.start()
        scene = Scene(first_jvm, own_broker)
        topic = scene.topic(queues=2)
        scene.admin().create_topic(leaving.address, topic, 2, 6)
        poll(
            lambda: leaving.name in scene.admin().topic_route(topic), "both brokers have the topic"
        )
        settings: Any = {"namesrv_addr": scene.namesrv, "retry_response_codes": frozenset()}
        with Producer(scene.unique("restarts"), **settings) as producer:
            load = Load(producer, topic)
            try:
                time.sleep(1)
                leaving.stop()
                if isinstance(origin, Ours):
                    assert "please go away" in leaving.log_tail(100)
                time.sleep(0.5)
                leaving.start()
            finally:
                load.stop()
        assert load.failed == []
        wanted = [body for bodies in load.acknowledged.values() for body in bodies]
        stored = [text(each) for each in scene.read(topic, len(wanted), 60)]
        assert set(wanted) == set(stored)
        if "4.9" not in origin.name:  # whose servers do not send anybody away
            assert len(wanted) == len(stored)
        scene.close()


KILLED: Final = """
import os, signal, sys
from txrocketmq.client import TransactionProducer, new_message

namesrv, group, topic = sys.argv[1:]

def die(message, argument):
    os.kill(os.getpid(), signal.SIGKILL)

with TransactionProducer(group, lambda message: None, namesrv_addr=namesrv) as producer:
    producer.send_in_transaction(new_message(topic, "half"), die)
"""


@pytest.mark.parametrize("status", [TransactionStatus.COMMIT, TransactionStatus.ROLLBACK])
def test_another_of_the_group_decides_for_one_that_was_killed(
    first_jvm: Any, own_broker: Broker, status: TransactionStatus
) -> None:
    """It is killed in its local transaction, after the half message was stored."""
    scene = Scene(first_jvm, own_broker)
    topic, group = scene.topic(queues=1), scene.unique("killed")
    asked: list[bytes] = []

    def check(message: Any) -> TransactionStatus:
        asked.append(message.body)
        return status

    command = [sys.executable, "-c", KILLED, scene.namesrv, group, topic]
    killed = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -9, killed.stderr
    with TransactionProducer(group, check, namesrv_addr=scene.namesrv) as producer:
        poll(lambda: b"half" in asked, "the other producer is asked", 120)
        producer.send(new_message(topic, "plain"))
        is_committed = status is TransactionStatus.COMMIT
        found = {text(each) for each in scene.read(topic, 1 + is_committed, 60)}
    assert found == ({"half", "plain"} if is_committed else {"plain"})
    scene.close()
