# SPDX-License-Identifier: Apache-2.0
"""The brokers in sync with a master that a controller has chosen, and what senders wait for.

A slave belongs to them when it has all that is confirmed and has arrived in the master's epoch. It
does no more when its connection ends, or when it has not had all of the log for so long as
haMaxTimeSlaveNotCatchup says. Only the controller changes the set: as long as it has not agreed,
senders wait for those of both sets, since a new master may be chosen from either.

Without inSyncReplicas, senders wait for all brokers in sync, as with allAckInSyncStateSet; then no
election among them loses what was confirmed. With it, they wait for so many brokers, as in the
original, whose default of 1 waits for none. While there are fewer in sync than minInSyncReplicas,
messages are refused before they are stored. What consumers see does not depend on slaves.

Java: AutoSwitchHAService, GroupTransferService.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.log.commit_point import (
    Marks,
    OtherBrokers,
    Policy,
    acknowledged_by,
)
from txrocketmq.broker.store.replication.epochs import EpochTable
from txrocketmq.broker.store.replication.feed import Feed, SourceLog
from txrocketmq.broker.store.replication.term_feed import NOBODY, TermFeed

_OK: Final = PutStatus.PUT_OK


class BrokersInSync:
    """The set, for the master with an id. `written` returns where its log ends."""

    def __init__(
        self, config: StoreConfig, epochs: EpochTable, written: Callable[[], int], own_id: int
    ) -> None:
        self._config = config
        self._epochs = epochs
        self._written = written
        self._own_id = own_id
        self.ids = frozenset({own_id})
        """Those that the controller has agreed to."""
        self.proposed: frozenset[int] | None = None
        """Those that it is being asked to agree to; None if it is not being asked."""
        self._feeds: dict[TermFeed, None] = {}
        self._high = 0
        """The highest offset up to which all have had the log at once."""

    def new_feed(self, log: SourceLog, address: str, steady_ms: int) -> Feed:
        """Makes the feed of a new connection."""
        feed = TermFeed(log, self._config, address, steady_ms, self._epochs, lambda: self.confirmed)
        self._feeds[feed] = None
        return feed

    def end(self, feed: Feed) -> None:
        """Hears that the connection of a feed has ended."""
        if isinstance(feed, TermFeed):
            self._feeds.pop(feed, None)

    def has(self, feed: Feed) -> bool:
        """Whether the slave that gets this feed is in sync."""
        return isinstance(feed, TermFeed) and feed.broker_id in self.ids

    def _by_id(self) -> dict[int, TermFeed]:
        """The feeds by id; of several with one id, the one that is behind."""
        found: dict[int, TermFeed] = {}
        for each in self._feeds:
            other = found.get(each.broker_id)
            if other is None or each.acknowledged < other.acknowledged:
                found[each.broker_id] = each
        found.pop(NOBODY, None)
        return found

    @property
    def replicated(self) -> int:
        """Up to where all have the log that may be chosen; -1 if one of them is not connected."""
        slaves = (self.ids | (self.proposed or self.ids)) - {self._own_id}
        if not slaves:
            return self._written()
        feeds = self._by_id()
        found = min(feeds[each].acknowledged if each in feeds else -1 for each in slaves)
        self._high = max(self._high, found)
        return found

    @property
    def confirmed(self) -> int:
        """Up to where the log is confirmed, as slaves are told."""
        return max(min(self.replicated, self._written()), 0)

    def wanted(self, steady_ms: int) -> frozenset[int]:
        """Those that should be in the set now."""
        most_ms = self._config.ha_max_time_slave_not_catchup
        feeds, last, replicated = self._by_id(), self._epochs.last, self.replicated
        least = max(0 if last is None else last.start, replicated, self._high)
        if self._config.in_sync_replicas and not self._config.all_ack_in_sync_state_set:
            least = self._written()  # senders were told without asking those in sync
        return frozenset(
            [
                self._own_id,
                *(
                    number
                    for number, feed in feeds.items()
                    if feed.acknowledged >= 0
                    and feed.is_caught_up(steady_ms, most_ms)
                    and (number in self.ids or feed.acknowledged >= least)
                ),
            ]
        )

    def agreed(self, ids: Iterable[int]) -> None:
        """Hears which brokers the controller has agreed to."""
        self.ids = frozenset(ids)


class InSyncPolicy(OtherBrokers):
    """Confirms what another policy confirms here, as soon as the brokers in sync have it."""

    def __init__(
        self, config: StoreConfig, here: Policy, brokers: Callable[[], BrokersInSync]
    ) -> None:
        super().__init__(config, here)
        self._brokers = brokers

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        """The status for a sender; None when it has to wait."""
        here = self._here.waits(marks, end_offset)
        if here is None or (here is _OK and self._replicated(marks) < end_offset):
            return None
        return here

    def promised(self, marks: Marks, end_offset: int) -> PutStatus:
        """What a sender that begins to wait is told when it has waited successfully."""
        return _OK

    def reached(self, marks: Marks, promised: PutStatus) -> int:
        """The offset up to which waiting senders are told what they were promised."""
        return min(self._here.reached(marks, promised), self._replicated(marks))

    def late(self, marks: Marks, end_offset: int, promised: PutStatus) -> PutStatus:
        """The status for a sender whose time is up."""
        if self._replicated(marks) < end_offset:
            return PutStatus.FLUSH_SLAVE_TIMEOUT
        return self._here.late(marks, end_offset, promised)

    def lacks_brokers(self, marks: Marks) -> bool:
        """Whether senders that wait are refused, since too few brokers are in sync."""
        brokers = self._brokers()
        count = max(len(brokers.ids), len(brokers.proposed or ()))
        return count < self._config.min_in_sync_replicas

    def _replicated(self, marks: Marks) -> int:
        """The offset up to which enough brokers have the log."""
        config = self._config
        if config.all_ack_in_sync_state_set or not config.in_sync_replicas:
            return self._brokers().replicated
        return acknowledged_by(marks, config.in_sync_replicas)
