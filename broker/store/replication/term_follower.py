# SPDX-License-Identifier: Apache-2.0
"""A slave's side of its connection to the master if there is a controller.

It greets the master, which tells its epochs, and reports where its log ends. Before it is connected
its log was compared with the master's, message by message (rejoin.py), so the epochs of the master
are those of this log as far as it goes. They are written before what belongs to them is appended.

The original compares the epochs alone. That is not enough where two masters have begun the same
term at the same offset, or a master has lost the end of its log. They are still kept, and told to
original slaves of a broker that becomes master.

Java: AutoSwitchHAClient.
"""

from __future__ import annotations

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.replication.epochs import EpochTable, consistent_point
from txrocketmq.broker.store.replication.follower import Follower, FollowingLog
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.term_frames import (
    GREETING_CODEC,
    HANDSHAKE,
    STATED_REPORT_CODEC,
    TRANSFER,
    MasterDecoder,
    Welcome,
)


class TermFollower(Follower):
    """Follows the master of a term, as the broker with an id."""

    def __init__(
        self,
        log: FollowingLog,
        config: StoreConfig,
        steady_ms: int,
        epochs: EpochTable,
        broker_id: int,
    ) -> None:
        super().__init__(log, config, steady_ms)
        self._epochs = epochs
        self._broker_id = broker_id
        self._items = MasterDecoder()
        self._is_welcome = False
        self.confirmed = 0
        """Up to where the master has confirmed the log, as far as it is here."""

    def received(self, data: bytes, steady_ms: int) -> bytes:
        """Does what Follower.received does."""
        self.read_ms = steady_ms
        for item in self._items.items(data):
            if isinstance(item, Welcome):
                self._welcomed(item)
                continue
            if not self._is_welcome:
                raise HaPeerError("it sends the log before it has answered the greeting")
            self._check(item.offset)
            last = self._epochs.last
            if item.epoch.number >= 0 and (last is None or item.epoch.number > last.number):
                self._epochs.begin(item.epoch)
            self._append(item.offset, item.body)
            self.confirmed = min(item.confirmed, self._log.max_physical_offset)
        is_due = self._is_welcome and self._to_report() != self._reported
        return self.report(steady_ms) if is_due else b""

    def _welcomed(self, item: Welcome) -> None:
        if self._is_welcome:
            raise HaPeerError("it answers a greeting again")
        end = self._log.max_physical_offset
        point = consistent_point(self._epochs.entries, end, item.epochs, item.end)
        if end > item.end:
            raise HaPeerError(
                f"its log ends at {item.end}, before this slave's at {end}; the logs are the same"
                f" up to {max(point, 0)} by their epochs"
            )
        self._is_welcome, self._reported = True, -1
        self._epochs.adopt(item.epochs, end)

    def due(self, steady_ms: int) -> bytes:
        """What to tell the master now, if anything: more has become durable, or it is time."""
        is_time = steady_ms - self.reported_ms >= self._config.ha_send_heartbeat_interval
        return super().due(steady_ms) if self._is_welcome or is_time else b""

    def _encoded(self, offset: int) -> bytes:
        if self._is_welcome:
            return STATED_REPORT_CODEC.pack(TRANSFER, offset)
        config = self._config
        return GREETING_CODEC.pack(
            HANDSHAKE, config.sync_from_last_file, config.async_learner, self._broker_id
        )
