# SPDX-License-Identifier: Apache-2.0
"""Two brokers that get the same bytes, one of them with a kernel: all they do must be equal."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.testing import MemoryReactorClock, StringTransport

from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel, compiled_kernel
from txrocketmq.broker.parts import KnownAs
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.transport.peer_state import OPEN
from txrocketmq.remoting.transport.turns import ENDLESS

START_S = 1_700_000_000
_found = compiled_kernel()
KERNELS = [REFERENCE] if isinstance(_found, str) else [REFERENCE, _found]
"""The reference, and the compiled kernel where it is installed."""
with_each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


class Wire(StringTransport):
    """A connection in memory."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - ITCPTransport
        """Does nothing."""

    def abortConnection(self) -> None:  # noqa: N802 - ITCPTransport
        """Ends the connection."""
        self.loseConnection()  # type: ignore[no-untyped-call]


class LateClock(Clock):
    """A clock whose threads are done some time later, as those of a server are."""

    def in_thread(self, work: Callable[[], Any]) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        self.later(1, lambda: maybeDeferred(work).chainDeferred(done))
        return done


class OneBroker:
    """A broker on a reactor without a network, with one connection at a time."""

    def __init__(
        self,
        folder: Path,
        kernel: Kernel | None,
        settings: Mapping[str, Any],
        store_settings: Mapping[str, Any],
    ) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.reactor.advance(START_S)
        self.folder = folder
        names: dict[str, Any] = {"broker_ip1": "127.0.0.1", "listen_port": 10911, **settings}
        values: dict[str, Any] = {
            "mapped_file_size_commit_log": 1 << 20, "max_hash_slot_num": 500, "max_index_num": 2000,
            "disk_space_warning_level_ratio": 90, **store_settings,
        }  # fmt: skip
        self.broker = Broker(
            BrokerConfig(**names),
            StoreConfig(store_path_root_dir=str(folder), **values),
            LateClock(self.reactor),
            kernel=lambda: kernel,
        )
        with patch.object(KnownAs, "unique_keys", lambda _: UniqueKeys(bytes(4), 1, 1)):
            self.broker.start()
        for topic in ("orders", "bills"):
            self.broker.parts.topics.update(
                TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=4)
            )
        self.times = RpcTimes()
        self.broker.parts.stats.sizes = {}
        for dispatcher in self.broker._ports.dispatchers:
            dispatcher.times = self.times
        self.connect()

    def connect(self, host: str = "192.168.1.1") -> None:
        """Opens another connection, from this address."""
        self.peer = self.reactor.tcpServers[0][1].buildProtocol(None)
        self.peer.turns = ENDLESS  # how long something takes must not matter
        self.wire = Wire(peerAddress=IPv4Address("TCP", host, 54_321))  # type: ignore[no-untyped-call]
        self.peer.makeConnection(self.wire)

    def read(self, data: bytes, seed: int) -> tuple[bytes, bool]:
        """Reads bytes; returns what it answers, and whether it has closed the connection."""
        random.seed(seed)
        self.peer.dataReceived(data)
        said = self.wire.value()  # type: ignore[no-untyped-call]
        self.wire.clear()  # type: ignore[no-untyped-call]
        return said, self.peer.state is not OPEN

    def pass_ms(self, ms: int) -> bytes:
        """Lets time pass; returns what is answered meanwhile."""
        self.reactor.pump([ms / 4000] * 4)
        said: bytes = self.wire.value()  # type: ignore[no-untyped-call]
        self.wire.clear()  # type: ignore[no-untyped-call]
        return said

    def files(self) -> dict[str, bytes]:
        """What is in the files of messages, once all is written."""
        store = self.broker.parts.store
        for _ in store.write_index():
            pass
        found = {}
        for name in ("commitlog", "consumequeue"):
            for path in sorted((self.folder / name).rglob("*")):
                if path.is_file():
                    found[str(path.relative_to(self.folder))] = path.read_bytes()
        # The names of these are the times at which they were made, which may be others.
        for number, path in enumerate(sorted((self.folder / "index").glob("*"))):
            found[f"index {number}"] = path.read_bytes()
        return found

    def counts(self) -> dict[str, object]:
        """What it has counted."""
        parts = self.broker.parts
        sizes = {name: each.buckets() for name, each in (parts.stats.sizes or {}).items()}
        times: Counter[str] = Counter()
        for kind, histogram in self.times.items():
            # Whoever waits for the disk may wait for another sync: there is one for each run.
            times[f"{kind.code}, one-way: {kind.is_oneway}"] += int(histogram.buckets()[-1][1])
        info = parts.store.stats.runtime_info(0)
        stored = {name: info[name] for name in info if name.startswith("putMessage")}
        for name in ("putMessageEntireTimeMax", "putMessageDistributeTime"):
            del stored[name]  # how long it took
        return {
            "topics": sorted(parts.stats.topics_put()), "sizes": sizes, "stored": stored,
            "end": parts.store.max_physical_offset, "open": parts.transaction_metrics.counts(),
            **times,
        }  # fmt: skip

    @property
    def taken(self) -> int:
        """How many requests its kernel has taken."""
        return sum(handler.taken for handler in self.broker.parts.raw_requests)

    def stop(self) -> None:
        """Closes the store."""
        self.broker.parts.store.stop(self.broker.clock.now_ms())


class TwoBrokers:
    """The brokers; `settings` are those of both."""

    def __init__(
        self,
        folder: Path,
        kernel: Kernel,
        settings: Mapping[str, Any] | None = None,
        **store_settings: Any,
    ) -> None:
        self.plain = OneBroker(folder / "plain", None, settings or {}, store_settings)
        self.other = OneBroker(folder / "kernel", kernel, settings or {}, store_settings)
        self._reads = 0

    def both(self, do: Callable[[OneBroker], object]) -> None:
        """Does the same to both, with the same result."""
        mine, others = do(self.plain), do(self.other)
        if mine != others and isinstance(mine, dict) and isinstance(others, dict):
            different = [name for name in mine | others if mine.get(name) != others.get(name)]
            details = {name: (mine.get(name), others.get(name)) for name in different}
            raise AssertionError(f"these are different: {details!s:.3000}")
        assert mine == others

    def read(self, data: bytes) -> None:
        """Has both read bytes; they answer the same, and both close the connection or none."""
        self._reads += 1
        said, closed = self.plain.read(data, self._reads)
        others, is_closed = self.other.read(data, self._reads)
        if said != others:  # those who do not wait may be answered before those who do
            assert sorted(_frames_of(said)) == sorted(_frames_of(others))
        assert closed == is_closed
        if closed:
            self.plain.connect()
            self.other.connect()

    def read_cut(self, data: bytes, chance: random.Random, sizes: tuple[int, ...]) -> None:
        """Has both read bytes in pieces of any size."""
        at = 0
        while at < len(data):
            size = chance.choice(sizes)
            self.read(data[at : at + size])
            at += size
            if chance.random() < 0.2:
                self.both(lambda one: one.pass_ms(20))

    def compare(self) -> None:
        """Asserts that both have the same files, and have counted the same."""
        self.both(OneBroker.counts)
        self.both(OneBroker.files)

    def stop(self) -> None:
        """Closes both stores."""
        self.plain.stop()
        self.other.stop()


def _frames_of(data: bytes) -> list[bytes]:
    frames = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        frames.append(data[:end])
        data = data[end:]
    return frames
