# SPDX-License-Identifier: Apache-2.0
"""The master of some slaves: sends them the log, hears how far they have it, and lets them go.

If senders wait for slaves, these are sent at once what is written first in a turn of the reactor,
and do their part while the master does the rest of its own. What is written later in the turn
leaves at its end, all together. Otherwise slaves are woken some milliseconds later, as one write
for each turn would cost the sends more. They are also woken every 100 ms, for heartbeats and for
what had to wait. As long as there are none, a put costs nothing more than without replication. What
is sent is not always in memory, when a slave has much to catch up: then a thread reads ahead. Files
of the log that a slave still needs are kept, unless room gets scarce.

Java: HAService, DefaultHAService, HAConnection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from txrocketmq.broker.store.formats.config import SYNC_MASTER
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.replication.feed import Feed
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.in_sync import BrokersInSync
from txrocketmq.broker.store.replication.replicas import Replicas
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import OFTEN_MS, Gauge, Life, Tick
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.errors import ResponseError

GATHER_MS: Final = 10
"""For how long writes are gathered if nobody waits for slaves, in ms."""
BUDGET_BYTES: Final = 1024 * 1024
"""How much all slaves together are sent in a turn of the reactor."""
AHEAD_BYTES: Final = 8 * 1024 * 1024
"""How much a thread reads at once of what is not in memory."""


class SlaveConnection(Protocol):
    """The connection to a slave."""

    def wake(self) -> None:
        """Has it ask for what is to be sent."""

    def close(self) -> None:
        """Ends it."""


class Replica:
    """One slave: what goes over its connection."""

    def __init__(self, master: Master, feed: Feed, connection: SlaveConnection) -> None:
        self._master = master
        self.feed = feed
        self.connection = connection
        self._is_reading = False
        self._why = ""
        """Why the connection is being closed; empty while it is not."""

    def received(self, data: bytes) -> None:
        """Takes a part of what the slave reports."""
        if self._why:
            return
        is_first = self.feed.next_offset < 0
        try:
            self._master.heard(self, data)
        except HaPeerError as error:
            self.leave(str(error))
            return
        if is_first and self.feed.next_offset >= 0:
            notices.slave_came(self.feed.address, self.feed.acknowledged, self.feed.next_offset)
            self.connection.wake()
        elif self.feed.owes_welcome:
            self.connection.wake()

    def pieces(self) -> Sequence[bytes | memoryview]:
        """What is to be sent next, as far as it is in memory."""
        feed, master = self.feed, self._master
        if self._why or self._is_reading:
            return ()
        if feed.next_offset < 0:
            return feed.pieces(0, master.steady_ms()) if feed.owes_welcome else ()
        budget_bytes = master.budget_bytes
        try:
            cold = master.store.cold_raw(feed.next_offset, budget_bytes, AHEAD_BYTES)
            if cold is None:
                return feed.pieces(budget_bytes, master.steady_ms())
        except HaPeerError as error:
            self.leave(str(error))
        except OSError as error:  # a file cannot be mapped now; it comes back
            self.leave(f"the log cannot be read: {error}")
        else:
            self._is_reading = True
            master.patience.wait(self, cold, self._read)
        return ()

    def sent(self, count: int) -> bool:
        """Hears what has left; returns whether there is more."""
        self.feed.sent(count, self._master.steady_ms())
        return self.feed.has_more()

    def ended(self, why: str) -> None:
        """Hears that the connection has ended."""
        self._master.forget(self)
        if self.feed.next_offset >= 0 or self._why:
            notices.slave_left(self.feed.address, self._why or why)

    def leave(self, why: str) -> None:
        """Ends the connection; what it has acknowledged counts no more."""
        if not self._why:
            self._why = why
            self._master.forget(self)
            self.connection.close()

    def _read(self, error: ResponseError | None) -> None:
        self._is_reading = False
        if error is not None:
            self.leave(f"what it needs cannot be read: {error.remark}")
        else:
            self.connection.wake()


class Master:
    """Serves slaves. `later` calls a function after some ms; after 0 at the end of the turn."""

    def __init__(
        self,
        store: MessageStore,
        patience: Patience,
        steady_clock: Callable[[], int],
        later: Callable[[float, Callable[[], None]], object],
        brokers: BrokersInSync | None = None,
    ) -> None:
        self.store = store
        self.patience = patience
        self.steady_ms = steady_clock
        self._later = later
        self._gather_ms = 0 if store.config.broker_role == SYNC_MASTER else GATHER_MS
        self.replicas = Replicas(store, store.config, store.commit, brokers)
        self._slaves_moved: Callable[[], None] = lambda: None
        self.address = ""
        """Where slaves connect, "host:port"; empty if none are served."""
        self.start_offset = 0
        """Where the log ended when the broker started."""
        self._slaves: dict[Replica, None] = {}
        self._is_called = self._has_more = False
        store.keep(lambda: self.replicas.needed_from)

    def life(self) -> Life:
        """Slaves get heartbeats, those that are silent are let go, and late senders are told."""
        return Life(
            "replication",
            opens=self._opened,
            beats=(Tick(OFTEN_MS, self.tick),),
            gauges=(
                Gauge(
                    "txrocketmq_slaves",
                    lambda: len(self.store.commit.acknowledged),
                    "connected slaves",
                ),
                Gauge(
                    "txrocketmq_slave_behind_bytes",
                    lambda: self.replicas.behind_bytes,
                    "how much the slave lacks that is farthest behind",
                ),
            ),
        )

    @property
    def budget_bytes(self) -> int:
        """How much one slave is sent in a turn, so that however many cost clients no more time."""
        return BUDGET_BYTES // max(len(self._slaves), 1)

    def _opened(self, _: object) -> Sequence[str]:
        self.start_offset = self.store.max_physical_offset
        return ()

    def begin(self, host: str, port: int, connection: SlaveConnection) -> Replica | None:
        """Begins with a connection from there; None if there are too many."""
        try:
            feed = self.replicas.begin(host, port, self.steady_ms())
        except HaPeerError as error:
            notices.slave_left(f"{host}:{port}", str(error))
            return None
        slave = Replica(self, feed, connection)
        self._slaves[slave] = None
        self.store.tell_writes(self._wrote)
        return slave

    def tell_slaves(self, listener: Callable[[], None]) -> None:
        """Has a function called when a slave has reported more, or has gone."""
        self._slaves_moved = listener

    def forget(self, slave: Replica) -> None:
        """Forgets a slave whose connection ends."""
        if slave not in self._slaves:
            return
        del self._slaves[slave]
        self.replicas.end(slave.feed)
        self.patience.disconnected(slave, self.steady_ms())
        if not self._slaves:
            self.store.tell_writes(None)
        self._slaves_moved()

    def heard(self, slave: Replica, data: bytes) -> None:
        """Takes bytes of a slave; raises HaPeerError."""
        if self.replicas.reported(slave.feed, data, self.steady_ms()):
            self.store.confirmed()
            self._slaves_moved()

    def _wrote(self) -> None:
        if self._is_called:
            self._has_more = True
            return
        self._is_called, self._has_more = True, self._gather_ms > 0
        self._later(self._gather_ms, self._gathered)
        if not self._gather_ms:
            self._wake()

    def _gathered(self) -> None:
        self._is_called = False
        if self._has_more:
            self._has_more = False
            self._wake()

    def _wake(self) -> None:
        for slave in tuple(self._slaves):
            slave.connection.wake()

    def tick(self, now_ms: int, steady_ms: int) -> None:
        """Does what is due; to be called often."""
        self.store.commit.expire(steady_ms)
        for slave in tuple(self._slaves):
            if slave.feed.is_silent(steady_ms):
                seconds = self.store.config.ha_housekeeping_interval / 1000
                slave.leave(f"it has said nothing for {seconds:g} s (haHousekeepingInterval)")
            else:
                slave.connection.wake()
