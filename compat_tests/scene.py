# SPDX-License-Identifier: Apache-2.0
"""The topics, groups and clients of one test: uniquely named, and stopped at its end."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from compat_tests.java_client import (
    Admin,
    Client,
    ClientJvm,
    JavaError,
    Json,
    LitePullConsumer,
    Producer,
    PullConsumer,
    PushConsumer,
)
from compat_tests.peers import Broker

_NUMBERS = itertools.count(1)

C = TypeVar("C", bound=Client)
T = TypeVar("T")
P = ParamSpec("P")


class Scene:
    """Clients in one JVM, and topics at one broker.

    `tls` says whether the clients encrypt; if it is None, the JVM's system properties do.
    """

    def __init__(self, jvm: ClientJvm, broker: Broker, *, tls: bool | None = None) -> None:
        self.jvm = jvm
        self.broker = broker
        self.namesrv = broker.name_server.address
        self._tls = tls
        self._clients: list[Client] = []

    def unique(self, word: str) -> str:
        """Returns a name that nothing else has."""
        return f"{word}-{self.jvm.release.replace('.', '_')}-{next(_NUMBERS)}"

    def admin(self) -> Admin:
        """The JVM's admin client for this name server, which later tests use, too."""
        return self._shared("admin", Admin)

    def reader(self) -> PullConsumer:
        """The JVM's pull consumer for this name server, which later tests use, too."""
        return self._shared("reader", PullConsumer)

    def topic(self, word: str = "topic", queues: int = 4, perm: int = 6) -> str:
        """Creates a topic; returns its name when the name server knows it."""
        topic = self.unique(word)
        self.admin().create_topic(self.broker.address, topic, queues, perm)
        self.wait_for_route(topic)
        return topic

    def wait_for_route(self, topic: str) -> None:
        def known() -> bool:
            try:
                return self.broker.name in self.admin().topic_route(topic)
            except JavaError:
                return False

        poll(known, f"the name server knows {topic}")

    def mqadmin(self, line: str) -> str:
        """Returns what a command of the official mqadmin prints."""
        said = self.jvm.call("mqadmin", line=[*line.split(), "-n", self.namesrv], seconds=60)
        return f"{said['out']}{said['err']}"

    def mqadmin_here(self, line: str) -> str:
        """Returns what a command of the official mqadmin prints about this broker."""
        return self.mqadmin(f"{line} -b {self.broker.address}")

    def producer(self, **settings: Any) -> Producer:
        return self._started(Producer, "producer", settings)

    def push_consumer(self, topic: str, group: str, **settings: Any) -> PushConsumer:
        return self._started(PushConsumer, "consumer", {"topic": topic, "group": group, **settings})

    def pull_consumer(self, group: str) -> PullConsumer:
        return self._started(PullConsumer, "puller", {"group": group})

    def lite_consumer(self, group: str, **settings: Any) -> LitePullConsumer:
        return self._started(LitePullConsumer, "lite", {"group": group, **settings})

    def read(self, topic: str, count: int, timeout_s: float = 20.0) -> list[Json]:
        """Returns a topic's messages, by queue and offset, once there are that many or more."""
        reader = self.reader()
        found: list[Json] = []

        def complete() -> bool:
            found.clear()
            for queue in reader.queues(topic):
                found.extend(_read_queue(reader, queue))
            return len(found) >= count

        poll(complete, f"{count} messages in {topic}", timeout_s)
        return found

    def queue(self, topic: str, queue_id: int) -> Json:
        """Returns a queue of this scene's broker."""
        return {"topic": topic, "broker": self.broker.name, "queue_id": queue_id}

    def stopped(self, client: Client) -> None:
        """Stops a client before the test ends."""
        self._clients.remove(client)
        client.stop()

    def close(self) -> None:
        """Tells all clients to stop; some take seconds for it, which no test waits for."""
        for client in self._clients:
            client.jvm.submit("stop", name=client.name)

    def _started(self, kind: Callable[..., C], word: str, settings: Json) -> C:
        settings = {"tls": self._tls, **settings}
        return self._keep(kind(self.jvm, self.unique(word), self.namesrv, **settings))

    def _keep(self, client: C) -> C:
        self._clients.append(client)
        return client

    def _shared(self, word: str, kind: Callable[..., C]) -> C:
        how = {None: "", False: "-plain", True: "-tls"}[self._tls]
        return self.jvm.shared(f"{word}@{self.namesrv}{how}", kind, self.namesrv, tls=self._tls)


@contextmanager
def turn_of(
    broker: Broker,
    jvm: ClientJvm,
    kind: Callable[Concatenate[Scene, P], T],
    *arguments: P.args,
    **named: P.kwargs,
) -> Iterator[T]:
    """Runs a broker on a store that several origins use in turn, with a scene to look at it.

    The test may stop or kill the broker within the block; otherwise it is closed at the end.
    """
    broker.start()
    scene = Scene(jvm, broker)
    try:
        yield kind(scene, *arguments, **named)
    finally:
        scene.close()
        broker.close()


def poll(ready: Callable[[], bool], what: str, timeout_s: float = 15.0) -> None:
    """Polls until ``ready`` is true. AssertionError when time is up."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


def _read_queue(reader: PullConsumer, queue: Json) -> list[Json]:
    found: list[Json] = []
    offset = reader.min_offset(queue)
    while True:
        pulled = reader.pull(queue, offset)
        if pulled["status"] not in ("FOUND", "NO_MATCHED_MSG"):
            return found
        found += pulled.get("messages", [])
        offset = pulled["next_offset"]
