# SPDX-License-Identifier: Apache-2.0
"""A slave of a master in one process: connections whose bytes a test carries across."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from twisted.logger import capturedLogs, formatEvent

from tests.broker.conftest import Parts
from tests.fakes import NOW_MS
from txrocketmq.broker.replication.master import Replica
from txrocketmq.broker.replication.slave import Link, Slave
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.message_store import MessageStore

HA_ADDRESS = "10.0.0.9:10912"
ADDRESS = "10.0.0.9:10911"


class End:
    """One end of a wire; what it is given to send goes to the other one."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_closed = False

    def send(self, data: bytes) -> None:
        self.sent += data

    def wake(self) -> None:
        """As a master's end: there may be something to be sent."""

    def close(self) -> None:
        self.is_closed = True


class Wire:
    """A connection of a slave's link to a master, if that takes it."""

    def __init__(self, master: Parts | None, link: Link) -> None:
        self.link = link
        self.near, self.far = End(), End()
        self.replica: Replica | None = None
        if master is not None:
            self.replica = master.master.begin("10.0.0.1", 5, self.far)
            link.connected(self.near)

    @property
    def is_closed(self) -> bool:
        return self.near.is_closed or self.far.is_closed

    def carry(self, most: int = 1 << 30, cut: int = 1 << 30) -> int:
        """Carries reports to the master, and at most so many bytes back, in pieces of at most `cut`
        bytes; returns how many.
        """
        replica = self.replica
        assert replica is not None
        self.report()
        taken = b"".join(replica.pieces())[:most]
        replica.sent(len(taken))
        for at in range(0, len(taken), cut):
            if not self.is_closed:
                self.link.received(taken[at : at + cut])
        self.report()
        return len(taken)

    def report(self) -> None:
        assert self.replica is not None
        reports, self.near.sent = self.near.sent, b""
        if reports and not self.is_closed:
            self.replica.received(reports)

    def break_off(self) -> None:
        """Ends the connection, as the network does."""
        if self.replica is not None:
            self.replica.ended("broken")
        self.link.ended("broken")


class Scene:
    """A master and a slave of it, whose clock and turns are in the test's hands."""

    def __init__(self, folder: Path, role: str = "ASYNC_MASTER", **settings: Any) -> None:
        self.folder = folder
        self.master: Parts | None = Parts(folder / "master", store_settings={"broker_role": role})
        self.settings = {"broker_role": "SLAVE", "ha_master_address": HA_ADDRESS, **settings}
        self.asked: list[str] = []
        self.wires: list[Wire] = []
        self.turns: list[Callable[[], None]] = []
        self.syncs = 0
        self.rejoin: Any = None
        self.open()

    def open(self) -> None:
        """Opens the slave's store, and begins to follow."""
        self.parts = Parts(self.folder / "slave", store_settings=self.settings)
        store = self.parts.store
        self.slave = Slave(store, self._sync, lambda: self.parts.now_ms, self.turns.append)
        self.slave.rejoin = self.rejoin
        self.life = self.slave.life([])
        for hears in self.life.hears:
            hears.begin()
        self.slave.begin(self._connect, lambda address, then: self.asked.append(address))

    def _sync(self) -> None:
        self.syncs += 1

    def _connect(self, address: str, link: Link) -> None:
        assert address == self.slave.ha_address
        self.wires.append(Wire(self.master, link))
        if self.master is None:
            link.ended("nobody listens there")

    @property
    def wire(self) -> Wire:
        return self.wires[-1]

    def pass_ms(self, ms: int) -> None:
        """Lets time pass, for both sides."""
        for _ in range(0, ms, 100):
            self.parts.now_ms += 100
            if self.master is not None:
                self.master.now_ms = self.parts.now_ms
            self.slave.tick(NOW_MS, self.parts.now_ms)

    def turn(self) -> None:
        """A turn of the reactor."""
        due, self.turns[:] = self.turns[:], []
        for call in due:
            call()

    def settle(self) -> None:
        """Carries all there is, and dispatches it."""
        while self.wires and not self.wire.is_closed and self.wire.carry():
            pass
        while self.turns:
            self.turn()

    def flush(self) -> None:
        """Makes the slave's log durable."""
        job = self.parts.store.flush.begin()
        assert job is not None
        job.run()
        self.parts.store.flush.finish(job)

    def append(self, count: int) -> None:
        """Has the slave begin with a part of some message of another master."""
        other = Parts(self.folder / "other")
        other.put(body=bytes(5_000))
        self.parts.store.append_raw(0, bytes(other.store.read_raw(0, count) or b""))
        other.store.stop(other.now_ms)

    def close(self) -> None:
        with suppress(StoreError):  # a log that is none cannot be closed in order
            self.parts.store.stop(self.parts.now_ms)
        if self.master is not None:
            self.master.store.stop(self.master.now_ms)


Open = Callable[..., Scene]


def master_of(scene: Scene) -> Parts:
    assert scene.master is not None
    return scene.master


def whole(store: MessageStore) -> list[bytes]:
    size = store.config.mapped_file_size_commit_log
    start, end = max(store.min_physical_offset, 0), store.max_physical_offset
    return [bytes(store.read_raw(at, size) or b"") for at in range(start, end, size)]


def derived(store: MessageStore) -> tuple[Any, ...]:
    """The units of queues, and what is found by key."""
    units = {
        (topic, queue): list(store.queue_units(topic, queue, 0, 10_000))
        for topic in sorted(store.topics())
        for queue in store.queue_ids(topic)
    }
    found = [
        [bytes(each) for each in finished(store.query("T", f"k{n}", 99, 0, 1 << 60)).buffers]
        for n in range(3)
    ]
    return units, found


def assert_same(scene: Scene) -> None:
    one, other = master_of(scene).store, scene.parts.store
    assert whole(one) == whole(other)
    assert derived(one) == derived(other)


def said(do: Callable[[], object]) -> list[str]:
    """What is logged meanwhile."""
    with capturedLogs() as lines:
        do()
    return [str(formatEvent(each)) for each in lines]
