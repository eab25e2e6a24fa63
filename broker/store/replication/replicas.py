# SPDX-License-Identifier: Apache-2.0
"""The slaves of a master: its feeds, how far they have the log, and which files they still need.

Only live connections count. When one ends, what its slave had acknowledged is forgotten, since
it may have been lost by now. (The original remembers the highest offset that any connection has
ever reported.) Strangers may connect as well, and all they have to know are eight bytes, so there
is a limit on connections, for all together and for each host.

Java: HAService, DefaultHAService, GroupTransferService.getInSyncReplicasNum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.log.commit_point import CommitPoint
from txrocketmq.broker.store.replication.feed import Feed, SourceLog
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.in_sync import BrokersInSync

MOST_SLAVES: Final = 64
"""How many connections there may be."""
MOST_OF_HOST: Final = 16
"""How many of them may come from one host."""


class SlaveState(NamedTuple):
    """A slave as its master sees it; offsets and sizes are in bytes of the log."""

    address: str
    acknowledged: int
    behind: int
    is_in_sync: bool
    bytes_in_second: int
    next_offset: int


class Replicas:
    """The feeds of a master's log; tells `commit` what slaves have acknowledged."""

    def __init__(
        self,
        log: SourceLog,
        config: StoreConfig,
        commit: CommitPoint,
        brokers: BrokersInSync | None = None,
    ) -> None:
        self.brokers = brokers
        """Those in sync, if a controller has chosen this master; None without one."""
        self._log = log
        self._config = config
        self._commit = commit
        self._feeds: dict[Feed, str] = {}
        """The feeds, and the host that each of them goes to."""

    def __len__(self) -> int:
        return len(self._feeds)

    def __iter__(self) -> Iterator[Feed]:
        return iter(tuple(self._feeds))

    def begin(self, host: str, port: int, steady_ms: int) -> Feed:
        """Makes the feed of a new connection; raises HaPeerError if there are too many."""
        if len(self._feeds) >= MOST_SLAVES:
            raise HaPeerError(f"there are {MOST_SLAVES} connections of slaves already")
        if sum(each == host for each in self._feeds.values()) >= MOST_OF_HOST:
            raise HaPeerError(f"{host} has {MOST_OF_HOST} connections already")
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if self.brokers is None:
            feed = Feed(self._log, self._config, address, steady_ms)
        else:
            feed = self.brokers.new_feed(self._log, address, steady_ms)
        self._feeds[feed] = host
        return feed

    def end(self, feed: Feed) -> None:
        """Forgets a feed whose connection has ended, and what it has acknowledged."""
        if self._feeds.pop(feed, None) is not None:
            if self.brokers is not None:
                self.brokers.end(feed)
            self._count()

    def reported(self, feed: Feed, data: bytes, steady_ms: int) -> bool:
        """Takes bytes of a slave; returns whether that may confirm what senders wait for.

        Raises HaPeerError for a report that cannot be true.
        """
        if feed not in self._feeds or not feed.reported(data, steady_ms):
            return False
        self._count()
        return True

    def _count(self) -> None:
        offsets = [each.acknowledged for each in self._feeds if each.acknowledged >= 0]
        self._commit.acknowledged = sorted(offsets, reverse=True)

    def hosts(self) -> list[str]:
        """The hosts of the slaves that have reported something, one for each connection."""
        return [host for feed, host in self._feeds.items() if feed.acknowledged >= 0]

    @property
    def needed_from(self) -> int | None:
        """The offset from which on some slave still needs the log; None if none needs any."""
        return min(
            (each.next_offset for each in self._feeds if each.next_offset >= 0), default=None
        )

    @property
    def behind_bytes(self) -> int:
        """How much of the log the slave lacks that is farthest behind; 0 without slaves."""
        acknowledged = self._commit.acknowledged
        return max(self._log.max_physical_offset - acknowledged[-1], 0) if acknowledged else 0

    def states(self, steady_ms: int) -> list[SlaveState]:
        """The slaves that have reported something."""
        end, most = self._log.max_physical_offset, self._config.ha_max_gap_not_in_sync
        return [
            SlaveState(
                each.address,
                each.acknowledged,
                end - each.acknowledged,
                end - each.acknowledged < most if self.brokers is None else self.brokers.has(each),
                each.bytes_in_second(steady_ms),
                each.next_offset,
            )
            for each in self._feeds
            if each.acknowledged >= 0
        ]
