# SPDX-License-Identifier: Apache-2.0
"""The slave of a master: it connects, appends what the master sends, and reports how far it is.

Where the master is, haMasterAddress says, or each answer of a name server to a registration; an
administrator may tell another one (EXCHANGE_BROKER_HA_INFO). A new address counts for the next
connection. What arrives in one read is appended and reported, and dispatched in a later turn of
the reactor, some messages at a time: senders may wait for the report, and clients for their turn.

When a connection ends, or cannot be made, another one is attempted after some seconds. If bytes do
not continue this slave's log, or its disk takes no more, the pauses grow. What went wrong is
logged once, and again only after the slave has followed the master meanwhile.

Java: HAClient, DefaultHAClient.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from txrocketmq.broker.store.formats.config import SYNC_FLUSH
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.replication.follower import Follower
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import OFTEN_MS, SECOND_MS, Beat, Gauge, Hears, Life, Tick
from txrocketmq.remoting.errors import RemotingError

RECONNECT_MS: Final = 5_000
"""How long no connection is attempted after one has ended or failed."""
LONGEST_PAUSE_MS: Final = 60_000
"""The longest pause after failures that another connection does not cure."""
ASK_MS: Final = 10_000
"""How often the master is asked where its log ends."""
MINUTE_MS: Final = 60_000
MUCH_BYTES: Final = 1024 * 1024
"""Whoever is behind by more than this is named in the log."""


class Failed(Enum):
    """What went wrong: each kind is logged once until the slave follows its master again."""

    CONNECTION = "connection"
    FRAMES = "frames"
    DISK = "disk"
    LOG = "log"


class MasterConnection(Protocol):
    """The connection to the master."""

    def send(self, report: bytes) -> None:
        """Sends a report."""

    def close(self) -> None:
        """Ends it; nothing is heard of it any more."""


class Awaited(Protocol):
    """A Deferred, without more of Twisted than is needed."""

    def addCallbacks(  # noqa: N802 - Twisted's
        self, callback: Callable[[Any], Any], errback: Callable[[Any], Any]
    ) -> object: ...


class FollowingState(NamedTuple):
    """A slave as it sees itself; the times are those of the steady clock, 0 before the first."""

    ha_address: str
    max_offset: int
    bytes_in_second: int
    read_ms: int
    reported_ms: int


class Link:
    """One attempt to follow the master, from before it is connected on."""

    def __init__(self, slave: Slave, follower: Follower) -> None:
        self._slave = slave
        self.follower = follower
        self.connection: MasterConnection | None = None
        self.since_ms = 0
        """When it was connected."""

    def connected(self, connection: MasterConnection) -> None:
        """Reports where the log ends."""
        self.connection = connection
        self.since_ms = self._slave.steady_ms()
        connection.send(self.follower.report(self.since_ms))

    def received(self, data: bytes) -> None:
        """Appends what is complete, and reports it."""
        slave = self._slave
        end = slave.store.max_physical_offset
        try:
            report = self.follower.received(data, slave.steady_ms())
        except HaPeerError as error:
            self.leave(Failed.FRAMES, str(error))
        except OSError as error:
            self.leave(Failed.DISK, f"the disk does not take what it sends: {error}")
        else:
            if report and self.connection is not None:
                self.connection.send(report)
        slave.heard(self, end)

    def ended(self, why: str) -> None:
        """Hears that the connection has ended, or could not be made."""
        self.connection = None
        self._slave.forget(self, Failed.CONNECTION, why)

    def leave(self, failed: Failed, why: str) -> None:
        """Ends the connection."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()
        self._slave.forget(self, failed, why)


class Slave:
    """Follows a master.

    `sync` makes the log durable, `call_soon` calls a function in a later turn of the reactor, and
    `at_end_of_turn` before the reactor waits again. `rejoin` looks before each connection whether
    this log is the beginning of the master's: it fails with a sentence if not.
    """

    def __init__(
        self,
        store: MessageStore,
        sync: Callable[[], None],
        steady_clock: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
        at_end_of_turn: Callable[[Callable[[], None]], object] | None = None,
        rejoin: Callable[[], Awaited] | None = None,
        new_follower: Callable[[int], Follower] | None = None,
        chosen_master: str | None = None,
    ) -> None:
        self.store = store
        self._new_follower = new_follower or partial(Follower, store, store.config)
        self._chosen_master = chosen_master
        """Where the only master serves requests that counts, if a controller has chosen it; empty
        before it has."""
        self.steady_ms = steady_clock
        self.rejoin = rejoin
        self.ha_address = store.config.ha_master_address
        """Where the master serves slaves, "host:port"; empty as long as it is not known."""
        self.master_address: str | None = chosen_master or None
        """Where the master serves requests; None while no name server names one."""
        self.behind_bytes = 0
        """How much of the master's log was missing when it was last asked where its log ends."""
        self._sync = sync
        self._call_soon = call_soon
        self._at_end_of_turn = at_end_of_turn or call_soon
        self._connect: Callable[[str, Link], None] | None = None
        self._ask_end: Callable[[str, Callable[[int], None]], None] | None = None
        self._link: Link | None = None
        self._next_ms = 0
        """No connection is attempted before this time."""
        self._pause_ms = RECONNECT_MS
        self._told: set[Failed] = set()
        """What was logged since the slave last followed its master."""
        self._follows = False
        self._is_called = False
        self._heard_ms = steady_clock()
        self._second = _Second()

    def life(self, on_master: list[Callable[[str | None, str | None], None]]) -> Life:
        """It follows the master that name servers name; `on_master` are the listeners to them."""
        return Life(
            "slave",
            hears=(
                Hears(on_master, self.found_master),
                Hears(self.store.flush.on_durable, self._durable),
            ),
            beats=(
                Tick(OFTEN_MS, self.tick),
                Beat(ASK_MS, self._ask),
                Beat(MINUTE_MS, self._tell_behind),
            ),
            gauges=(
                Gauge(
                    "txrocketmq_behind_master_bytes",
                    lambda: self.behind_bytes,
                    "how much of the master's log this slave lacks",
                ),
                Gauge(
                    "txrocketmq_master_silent_seconds",
                    lambda: (self.steady_ms() - self._heard_ms) / SECOND_MS,
                    "how long this slave has heard nothing from its master",
                ),
            ),
        )

    def begin(
        self,
        connect: Callable[[str, Link], None],
        ask_end: Callable[[str, Callable[[int], None]], None],
    ) -> None:
        """Follows the master from now on. `connect` connects a link to an address; `ask_end` asks
        a master where its log ends, and calls a function with that.
        """
        self._connect, self._ask_end = connect, ask_end

    def stop(self) -> None:
        """Follows nobody any more."""
        self._connect = None

    # --- where the master is ---

    def found_master(self, ha_address: str | None, address: str | None) -> None:
        """Hears from a name server where the master is, if there is one."""
        if self._chosen_master is not None and (not address or address != self._chosen_master):
            return
        self.master_address = address
        if ha_address and not self.store.config.ha_master_address:
            self._found(ha_address)

    def told_master(self, ha_address: str, address: str | None) -> None:
        """Hears from somebody else where the master is."""
        if self._chosen_master is not None and address != self._chosen_master:
            return
        self.master_address = address or self.master_address
        self._found(ha_address)

    def lost_master(self) -> None:
        """Hears that there is no master any more. A connection that goes on is kept."""
        self.master_address = None

    def master_is_back(self, ha_address: str | None, address: str) -> None:
        """Hears that there is a master, which is connected to at once."""
        self.master_address = address
        if ha_address and not self.store.config.ha_master_address:
            self._found(ha_address)
        self._next_ms = min(self._next_ms, self.steady_ms())

    @property
    def is_following(self) -> bool:
        """Whether it has heard of its master on the present connection."""
        return self._follows

    def _found(self, ha_address: str) -> None:
        if ha_address != self.ha_address:
            self.ha_address, self._next_ms = ha_address, 0

    @property
    def is_master_known(self) -> bool:
        """Whether there is a master, so that clients can go there."""
        return self.master_address is not None

    @property
    def followed_address(self) -> str | None:
        """Where the master serves requests whose log is followed now; None without one."""
        return self.master_address if self._follows else None

    # --- connections ---

    def tick(self, now_ms: int, steady_ms: int) -> None:
        """Does what is due; to be called often."""
        if self.store.dispatch_behind_bytes:  # there may have been no room for queues
            self._dispatch_soon()
        link = self._link
        if link is None:
            if self._connect is not None and self.ha_address and steady_ms >= self._next_ms:
                self._begin(steady_ms)
            return
        if link.connection is None:
            return
        config, follower = self.store.config, link.follower
        if self.store.flush.error is not None:
            link.leave(Failed.DISK, self._why_disk_failed())
            return
        if follower.is_silent(steady_ms):
            seconds = config.ha_housekeeping_interval / 1000
            link.leave(
                Failed.CONNECTION,
                f"it has sent nothing for {seconds:g} s (haHousekeepingInterval)",
            )
            return
        if report := follower.due(steady_ms):
            link.connection.send(report)
        if steady_ms - link.since_ms > config.ha_housekeeping_interval:
            self._goes_well()

    def _begin(self, steady_ms: int) -> None:
        """Attempts a connection, unless it is known to be in vain."""
        rejoin = self.rejoin
        link = self._link = Link(self, self._new_follower(steady_ms))
        if self.store.flush.error is not None:
            link.leave(Failed.DISK, self._why_disk_failed())
        elif self.store.is_dispatch_stuck:
            link.leave(Failed.LOG, self._why_stuck())
        elif rejoin is None:
            self._go_on(link)
        else:
            try:
                checked = rejoin()
            except Exception as error:  # noqa: BLE001 - whatever it is: it is tried again
                self._refused(link, error)
                return
            checked.addCallbacks(partial(self._go_on, link), partial(self._failed, link))

    def _failed(self, link: Link, failure: Any) -> None:
        self._refused(link, failure.value)

    def _why_disk_failed(self) -> str:
        return f"nothing can be appended, since the disk failed: {self.store.flush.error}"

    def _go_on(self, link: Link, _: object = None) -> None:
        if self._connect is not None and link is self._link:
            self._connect(self.ha_address, link)

    def _refused(self, link: Link, error: Exception) -> None:
        """Hears that this log may not be continued, or that the master could not be asked."""
        link.leave(
            Failed.CONNECTION if isinstance(error, RemotingError) else Failed.LOG, str(error)
        )

    def forget(self, link: Link, failed: Failed, why: str) -> None:
        """Forgets a link that has ended; another one is attempted after a pause."""
        if link is not self._link:
            return
        self._link, self._follows = None, False
        pause_ms = RECONNECT_MS
        if failed is Failed.LOG:
            pause_ms = LONGEST_PAUSE_MS
        elif failed is not Failed.CONNECTION:
            pause_ms, self._pause_ms = self._pause_ms, min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        self._next_ms = self.steady_ms() + pause_ms
        if self._connect is not None and failed not in self._told:
            self._told.add(failed)
            notices.not_following(self.ha_address, why)

    def _goes_well(self) -> None:
        self._told.clear()
        self._pause_ms = RECONNECT_MS

    # --- what arrives ---

    def heard(self, link: Link, before: int) -> None:
        """Hears that something came from the master, `before` which the log ended there."""
        self._heard_ms = self.steady_ms()
        if link is self._link and not self._follows:
            self._follows = True
            notices.follows(self.ha_address, before)
        count = self.store.max_physical_offset - before
        if not count:
            return
        if link is self._link:
            self._goes_well()
        self._second.add(count, self._heard_ms)
        if self._waits_for_disk:
            self._sync()
        self._dispatch_soon()

    @property
    def _waits_for_disk(self) -> bool:
        config = self.store.config
        return config.ha_report_durable or config.flush_disk_type == SYNC_FLUSH

    def _durable(self) -> None:
        link, store = self._link, self.store
        if link is not None and link.connection is not None:
            if report := link.follower.due(self.steady_ms()):
                link.connection.send(report)
            if self._waits_for_disk and store.durable_offset < store.max_physical_offset:
                self._call_soon(self._sync)
        self._dispatch_soon()

    def _dispatch_soon(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._at_end_of_turn(self._dispatch)

    def _dispatch(self) -> None:
        """Dispatches some of what was appended, and the rest in the next turns."""
        self._is_called = False
        if self.store.dispatch():
            self._is_called = True
            self._call_soon(self._dispatch)
        elif self._link is not None and self.store.is_dispatch_stuck:
            self._link.leave(Failed.LOG, self._why_stuck())

    def _why_stuck(self) -> str:
        return (
            f"there is no message at {self.store.dispatched_offset} of this slave's log, where one"
            " should begin. Is mappedFileSizeCommitLog the same on both sides? If so, the log is"
            " not that of the master: start this slave with an empty store"
        )

    # --- how far it is ---

    def state(self, steady_ms: int) -> FollowingState:
        """How far it is."""
        link = self._link
        is_connected = link is not None and link.connection is not None
        return FollowingState(
            self.ha_address,
            self.store.max_physical_offset,
            self._second.bytes_in_second(steady_ms),
            self._heard_ms,
            link.follower.reported_ms if link is not None and is_connected else 0,
        )

    def _ask(self) -> None:
        if self._ask_end is not None and self.master_address is not None:
            self._ask_end(self.master_address, self._found_end)

    def _found_end(self, end: int) -> None:
        self.behind_bytes = max(end - self.store.max_physical_offset, 0)

    def _tell_behind(self) -> None:
        if self.behind_bytes > MUCH_BYTES:
            silent_s = (self.steady_ms() - self._heard_ms) // SECOND_MS
            notices.behind_master(self.behind_bytes, silent_s)


class _Second:
    """How many bytes came in the last whole second."""

    def __init__(self) -> None:
        self._since_ms = 0
        self._bytes = self._last_bytes = 0

    def add(self, count: int, steady_ms: int) -> None:
        self.bytes_in_second(steady_ms)
        self._bytes += count

    def bytes_in_second(self, steady_ms: int) -> int:
        passed_ms = steady_ms - self._since_ms
        if passed_ms >= SECOND_MS:
            self._last_bytes = self._bytes if passed_ms < 2 * SECOND_MS else 0
            self._since_ms, self._bytes = steady_ms, 0
        return self._last_bytes
