# SPDX-License-Identifier: Apache-2.0
"""A master and its slave in one process, with a link between them that can fail in any way.

Both stores are on disks in memory, and the time is simulated. Before the slave follows it compares
its log with the master's, as it does in a broker (rejoin.py). The ledger is told of a message only
when the master, a SYNC_MASTER, has answered that it is stored.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, Final

from tests.broker.replication.test_rejoin import ADDRESS, FakeMaster
from tests.crash.judge import Findings, judge
from tests.crash.ledger import Ledger
from tests.crash.life import TINY
from tests.disk import MemoryFiles
from txrocketmq.broker.replication.rejoin import DivergedError, Rejoin
from txrocketmq.broker.store.formats.config import SLAVE, SYNC_FLUSH, SYNC_MASTER, StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.index.index_file import index_file_name
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import MessageStore, PutStatus
from txrocketmq.broker.store.replication.feed import Feed
from txrocketmq.broker.store.replication.follower import Follower
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.own_records import OwnRecords
from txrocketmq.broker.store.replication.replicas import Replicas

_LATE_MS: Final = 10_000
"""After this time, no sender waits any more."""


class Node:
    """One machine: its disk, and the store that a process has open on it."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self.disk = MemoryFiles()
        self.store: MessageStore = None  # type: ignore[assignment]  # until it starts
        self.said: list[str] = []

    def start(self, role: str) -> None:
        """Starts a process."""
        pair = self._pair
        self.disk.now_ms = pair.now_ms
        config = StoreConfig(
            store_path_root_dir="/store",
            broker_role=role,
            flush_disk_type=pair.flush,
            ha_report_durable=pair.is_strict,
            **TINY,
        )
        self.open(config)

    def open(self, config: StoreConfig) -> None:
        """Opens the store."""
        self.store = MessageStore(config, files=self.disk)
        self.said = self.store.load(self._pair.now_ms, self._pair.steady_ms).warnings
        self.replicas = Replicas(self.store, config, self.store.commit)

    def stop(self) -> None:
        """Ends the process in order."""
        self.flush()
        with suppress(StoreError):
            self.store.stop(self._pair.now_ms)
        self.disk = self.disk.after_kill()

    def strike(self, random: Random, *, loses_power: bool) -> None:
        """Ends the process, or switches off the machine."""
        self.disk = self.disk.after_power_cut(random) if loses_power else self.disk.after_kill()

    def empty(self) -> None:
        """Takes an empty disk."""
        self.disk = MemoryFiles()

    def flush(self) -> None:
        """Does what the thread of the flush jobs does."""
        job = self.store.flush.begin()
        if job is not None:
            job.run()
            self.store.flush.finish(job)

    @property
    def end(self) -> int:
        return self.store.max_physical_offset

    def log(self, start: int) -> bytes:
        """What the log has from an offset on."""
        data, at = b"", start
        while (piece := self.store.read_raw(at, 1 << 20)) is not None:
            data += piece
            at += len(piece)
        return data

    def kept(self, at: int, ordered_ms: int, size: int) -> bytes:
        """What `lost` has of the log from an offset on, by a cut that was ordered at a time."""
        disk, kept = self.disk, bytearray(size)
        folder = f"/store/lost/{index_file_name(ordered_ms)}/commitlog/"
        for path in [path for path in (*disk.maps, *disk.small) if path.startswith(folder)]:
            place = int(path.removeprefix(folder).rpartition(".")[2]) - at
            data = disk.read(path)[: size - place]
            kept[place : place + len(data)] = data
        return bytes(kept)


class Link:
    """A connection for replication, with what is under way on it."""

    def __init__(self, pair: Pair, feed: Feed, follower: Follower) -> None:
        self._pair = pair
        self.feed = feed
        self.follower = follower
        self.to_master = follower.report(pair.steady_ms)
        self.to_slave = b""

    def pass_bytes(self, most: int) -> None:
        """Lets some bytes pass in both directions; raises HaPeerError, as both ends do."""
        pair, master = self._pair, self._pair.master
        part, self.to_master = self.to_master[:most], self.to_master[most:]
        if part and master.replicas.reported(self.feed, part, pair.steady_ms):
            master.store.confirmed()
        if len(self.to_slave) < most:
            pieces = self.feed.pieces(2 * most, pair.steady_ms)
            taken = b"".join(pieces)[: 2 * most]
            self.feed.sent(len(taken), pair.steady_ms)
            self.to_slave += taken
        part, self.to_slave = self.to_slave[:most], self.to_slave[most:]
        if part:
            self.to_master += self.follower.received(part, pair.steady_ms)
            while pair.slave.store.dispatch():
                pass
        self.to_master += self.follower.due(pair.steady_ms)

    @property
    def is_silent(self) -> bool:
        """Whether one end hears nothing from the other for so long that it closes."""
        steady_ms = self._pair.steady_ms
        return self.feed.is_silent(steady_ms) or self.follower.is_silent(steady_ms)


class Pair:
    """A master and its slave. With `is_strict`, what is acknowledged is on both disks."""

    def __init__(self, ledger: Ledger, random: Random, now_ms: int, *, is_strict: bool) -> None:
        self.ledger = ledger
        self.random = random
        self.now_ms, self.steady_ms = now_ms, 1_000
        self.is_strict = is_strict
        self.flush = SYNC_FLUSH if is_strict or random.random() < 0.3 else "ASYNC_FLUSH"
        self.master, self.slave = self.new_nodes()
        self.link: Link | None = None
        self.is_partitioned = False
        self.most_bytes = 1 << 16
        """How many bytes pass the link in a step."""
        self.diverged = self.cuts = 0
        """How often a slave had other messages than its master, and how often it was cut."""
        self.master.start(SYNC_MASTER)
        self.slave.start(SLAVE)

    def new_nodes(self) -> tuple[Node, Node]:
        """Makes both machines."""
        return Node(self), Node(self)

    # --- what goes on ---

    def put(self, count: int) -> None:
        """Puts messages into the master as one batch."""
        self.pass_ms(3)
        messages = self.ledger.draw(count, self.now_ms)
        numbers = list(messages)
        batch = self.master.store.append(list(messages.values()), self.now_ms)
        if batch.refused:
            self.ledger.refused([numbers[index] for index in batch.refused])
        taken = [
            (number, one)
            for number, one in zip(numbers, batch.results, strict=True)
            if one.status is PutStatus.PUT_OK
        ]
        if not taken:
            return

        def answer(status: PutStatus) -> None:
            if status is PutStatus.PUT_OK:
                self.ledger.acknowledge(*map(list, zip(*taken, strict=True)))

        outcome = self.master.store.commit.outcome(batch.end_offset)
        if isinstance(outcome, Ticket):
            outcome.then(answer)
        else:
            answer(outcome)

    def pass_ms(self, ms: int) -> None:
        """Advances the time."""
        self.now_ms += ms
        self.steady_ms += ms
        self.master.disk.now_ms = self.slave.disk.now_ms = self.now_ms

    def tick(self, ms: int) -> None:
        """Advances the time, and does what is due then."""
        self.pass_ms(ms)
        for node in (self.master, self.slave):
            node.store.tick(self.now_ms, self.steady_ms)
        if self.link is not None and self.link.is_silent:
            self.disconnect()

    def pass_bytes(self) -> None:
        """Lets bytes pass, or connects."""
        if self.is_partitioned:
            return
        if self.link is None:
            self.connect()
        if self.link is not None:
            try:
                self.link.pass_bytes(self.random.randint(1, self.most_bytes))
            except HaPeerError:
                self.disconnect()

    def connect(self) -> None:
        """Lets the slave follow if its log is the beginning of the master's."""
        if self.compare() is None:
            feed = self.master.replicas.begin("10.0.0.2", 1, self.steady_ms)
            store = self.slave.store
            follower = self.new_follower(store)
            self.link = Link(self, feed, follower)

    def new_follower(self, store: MessageStore) -> Follower:
        """What follows the master on one connection."""
        return Follower(store, store.config, self.steady_ms)

    def compare(
        self, cuts: list[int] | None = None, *, with_java: bool | None = None
    ) -> str | None:
        """Compares the logs as a slave does, with a master of ours or of Java.

        Returns why the slave may not follow.
        """
        if with_java is None:
            with_java = self.random.random() < 0.5
        outcome: list[Any] = []
        Rejoin(
            OwnRecords(self.slave.store.log_files),
            lambda: ADDRESS,
            FakeMaster(self.master.store, is_java=with_java),
            lambda call: call(),
            None if cuts is None else cuts.append,
            self.slave.store.damaged_from,
        ).check().then(outcome.append)
        (found,) = outcome
        if not isinstance(found, Exception):
            return None
        assert isinstance(found, DivergedError), found
        return str(found)

    def disconnect(self) -> None:
        """Ends the connection, with what is under way."""
        if self.link is not None:
            self.master.replicas.end(self.link.feed)
            self.link = None

    @property
    def promised_end(self) -> int:
        """Where the log ends of which it is known that it must not be lost."""
        return max((each.end_offset for each in self.ledger.acknowledged.values()), default=0)

    @property
    def is_safe(self) -> bool:
        """Whether the slave has all that was promised: then the master may be lost."""
        store = self.slave.store
        has = store.durable_offset if self.is_strict else store.max_physical_offset
        return has >= self.promised_end and self.compare() is None

    # --- what goes wrong ---

    def lose_slave(self, *, loses_power: bool) -> None:
        """The slave is started again."""
        self.disconnect()
        self.slave.strike(self.random, loses_power=loses_power)
        self.slave.start(SLAVE)

    def lose_master(self, *, loses_power: bool, both: bool = False) -> None:
        """The slave takes over, and the old master comes back as its slave."""
        self.disconnect()
        self.master.strike(self.random, loses_power=loses_power)
        if both:
            self.slave.strike(self.random, loses_power=loses_power)
        elif self.random.random() < 0.5:
            self.slave.stop()
        else:
            self.slave.strike(self.random, loses_power=False)
        self.master, self.slave = self.slave, self.master
        self.pass_ms(5_000)
        self.master.start(SYNC_MASTER)
        self.slave.start(SLAVE)

    def rejoin(self) -> None:
        """Has the slave made fit to follow, in one of the ways that there are."""
        with_java = self.random.random() < 0.5  # which may cut in another place
        why = self.compare(with_java=with_java)
        if why is None:
            return
        self.diverged += 1
        how = self.random.random()
        if how < 0.15:
            self.slave.empty()
            self.slave.start(SLAVE)
            return
        cuts: list[int] = []
        self.compare(cuts, with_java=with_java)
        if not cuts:
            assert "Start this slave with an empty store" in why, why
            self.slave.empty()
            self.slave.start(SLAVE)
            return
        (at,) = cuts
        assert f"--at {at}" in why
        self.cuts += 1
        self._cut(at)
        assert self.slave.end == at
        self.rejoin()  # what is before the cut may be damaged as well; the next start finds that

    def _cut(self, at: int) -> None:
        """Cuts the slave, whose machine may go down once or twice meanwhile."""
        self.pass_ms(1)  # since the last cut, whose folder in lost/ has the name of its time
        slave, only_here, ordered_ms = self.slave, self.slave.log(at), self.now_ms
        slave.store.order_cut(at, ordered_ms)
        if self.random.random() < 0.5:
            slave.stop()
        else:
            slave.strike(self.random, loses_power=False)
        slave.start(SLAVE)
        kept = slave.kept(at, ordered_ms, len(only_here))
        assert kept == only_here, "what was cut off is in lost/"

    def judge(self, node: Node) -> Findings:
        """Judges one of both, when nobody waits for an answer any more."""
        for _ in range(2):
            self.master.store.commit.expire(self.steady_ms)
            self.pass_ms(_LATE_MS)
        if self.flush == SYNC_FLUSH:
            node.store.flush.flush_all()  # only then all is shown
        node.store.confirmed()
        return judge(node.store, self.ledger, node.said)
