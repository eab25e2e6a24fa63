# SPDX-License-Identifier: Apache-2.0
"""A slave's side of its connection to the master: bytes come in, are appended, and are reported.

The connection has to end when the bytes do not begin where the slave's log ends: then they are not
a continuation of this log, and nothing is ever cut off here. A new connection begins with a report
of where the log ends, and the master goes on from there.

A slave reports what is appended, as the original does, or with haReportDurable what is durable:
then a message that a SYNC_MASTER has confirmed is on two disks. Reports leave before
the records are dispatched, since senders wait for them.

Java: HAClient, DefaultHAClient.
"""

from __future__ import annotations

from typing import Protocol

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.replication.frames import (
    REPORT_CODEC,
    HaPeerError,
    TransferDecoder,
)


class FollowingLog(Protocol):
    """The log of a slave."""

    @property
    def max_physical_offset(self) -> int:
        """Where the log ends; 0 if it is empty."""

    @property
    def durable_offset(self) -> int:
        """Up to where the log survives a loss of power."""

    def append_raw(self, offset: int, data: bytes | memoryview) -> None:
        """Appends bytes; raises ValueError when they do not follow, OSError without room."""


class Follower:
    """Follows a master through one connection."""

    def __init__(self, log: FollowingLog, config: StoreConfig, steady_ms: int) -> None:
        self._log = log
        self._config = config
        self._decoder = TransferDecoder()
        self._reported = -1
        self.read_ms = self.reported_ms = steady_ms
        """When something came from the master last, and when it was told something."""
        self.master_offset = -1
        """Where the bytes end that the master has sent; -1 before it has sent anything."""

    def received(self, data: bytes, steady_ms: int) -> bytes:
        """Appends the frames that are complete with these bytes; returns what to tell the master.

        Raises HaPeerError when the bytes do not continue the log, and OSError without room on the
        disk: the connection is to be closed. What could be appended before has been.
        """
        self.read_ms = steady_ms
        for offset, body in self._decoder.frames(data):
            self._check(offset)
            self._append(offset, body)
        to_report = self._to_report()
        return self._told(to_report, steady_ms) if to_report != self._reported else b""

    def _check(self, offset: int) -> None:
        """Raises HaPeerError unless bytes at this offset continue the log."""
        end = self._log.max_physical_offset
        if end and offset != end:
            raise HaPeerError(
                f"it sends the log from {offset} on, but this slave's log ends at {end}"
            )

    def _append(self, offset: int, body: memoryview) -> None:
        """Appends a part of the log; raises HaPeerError if there is no place for it."""
        if body or (offset and not self._log.max_physical_offset):
            try:
                self._log.append_raw(offset, body)
            except ValueError as error:
                raise HaPeerError(
                    f"it sends {len(body)} bytes of its log from {offset} on: {error}. Is"
                    " mappedFileSizeCommitLog the same on both sides?"
                ) from error
        self.master_offset = offset + len(body)

    def report(self, steady_ms: int) -> bytes:
        """What the master is told now: after connecting, and again when it was told so long ago
        that it could take the connection for dead.
        """
        return self._told(self._to_report(), steady_ms)

    def _told(self, offset: int, steady_ms: int) -> bytes:
        self.reported_ms, self._reported = steady_ms, offset
        return self._encoded(offset)

    def _encoded(self, offset: int) -> bytes:
        return REPORT_CODEC.pack(offset)

    def due(self, steady_ms: int) -> bytes:
        """What to tell the master now, if anything: more has become durable, or it is time."""
        is_time = steady_ms - self.reported_ms >= self._config.ha_send_heartbeat_interval
        if not is_time and self._to_report() == self._reported:
            return b""
        return self.report(steady_ms)

    def is_silent(self, steady_ms: int) -> bool:
        """Whether the master has sent nothing for so long that the connection counts as dead."""
        return steady_ms - self.read_ms > self._config.ha_housekeeping_interval

    def _to_report(self) -> int:
        log, end = self._log, self._log.max_physical_offset
        if self._config.ha_report_durable and self._reported >= 0:
            # The first report says where to go on, and that is where the log ends.
            return max(min(log.durable_offset, end), 0)
        return end
