# SPDX-License-Identifier: Apache-2.0
"""A master's side of one slave: what the slave has reported, and what it is to be sent.

The log itself is what waits to be sent: a feed only knows an offset, and gives out slices of the
files from there on. Whoever writes them to a socket says how many bytes it took. The first report
of a connection decides where the transfer begins: at the end of the slave's log. For an empty one
that is where the master's log begins, or with syncFromLastFile where its last file begins (in plain
mode, an original master always begins with its last file, so that the slave lacks all others
without being told).

A report counts only if it can be true: it lies within the log at first, and later not behind what
this connection has sent. So nobody acknowledges what it was not sent. Whether the bytes before the
first report are those of this log cannot be seen: the slave does not say it.

Java: HAConnection, DefaultHAConnection, FlowMonitor.
"""

from __future__ import annotations

from typing import Final, Protocol

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.replication.frames import (
    HEAD_CODEC,
    MAX_FRAME_BYTES,
    HaPeerError,
    ReportDecoder,
)

MOST_FRAMES: Final = 32
"""How many frames are given out at once: a head and a slice each, 64 vectors for the system."""
_SECOND_MS: Final = 1_000

Piece = bytes | memoryview


class SourceLog(Protocol):
    """The log of a master."""

    @property
    def min_physical_offset(self) -> int:
        """Where the log begins."""

    @property
    def max_physical_offset(self) -> int:
        """Where the log ends."""

    def read_raw(self, offset: int, max_bytes: int) -> memoryview | None:
        """The written bytes of one file from this offset on; None when there are none."""


class Feed:
    """What one slave gets. Its methods raise HaPeerError when the connection has to end."""

    owes_welcome = False
    """Whether the slave waits for an answer before it gets anything."""

    def __init__(self, log: SourceLog, config: StoreConfig, address: str, steady_ms: int) -> None:
        self._log = log
        self._config = config
        self.address = address
        """The address of the slave's end of the connection, "host:port"."""
        self.acknowledged = -1
        """How far the slave has the log; -1 before it has reported anything."""
        self.next_offset = -1
        """What begins there is sent next; -1 before the first report."""
        self._reports = ReportDecoder()
        self._heard_ms = self._wrote_ms = steady_ms
        self._planned: list[tuple[int, int, bytes]] = []
        """Offset, size and head of the frames that `pieces` has given out last."""
        self._cut_bytes = 0
        """How many bytes of the first of these frames have been sent."""
        self._second_ms = steady_ms
        self._second_bytes = self._last_second_bytes = 0

    # --- what the slave says ---

    def reported(self, data: bytes, steady_ms: int) -> bool:
        """Takes bytes of the slave; returns whether it now has more or less of the log."""
        self._heard_ms = steady_ms
        offset = self._last_report(data)
        if offset is None:
            return False
        if self.next_offset < 0:
            self.next_offset = self._first_offset(offset)
        elif not 0 <= offset <= self.next_offset:
            raise HaPeerError(
                f"it reports that its log ends at {offset}, but it was sent bytes up to"
                f" {self.next_offset} only"
            )
        has_moved, self.acknowledged = offset != self.acknowledged, offset
        return has_moved

    def _last_report(self, data: bytes) -> int | None:
        """The last report that is complete with these bytes; None if none has become so."""
        return self._reports.last(data)

    @property
    def _from_last_file(self) -> bool:
        return self._config.sync_from_last_file

    def _first_offset(self, reported: int) -> int:
        """Where the transfer begins."""
        start, end = max(self._log.min_physical_offset, 0), self._log.max_physical_offset
        if reported == 0:
            file_bytes = self._config.mapped_file_size_commit_log
            return end - end % file_bytes if self._from_last_file else start
        if not start <= reported <= end:
            raise HaPeerError(
                f"its log ends at {reported}, which is not between {start} and {end}, where this"
                " master's log begins and ends: it is a copy of another log, of messages that this"
                " master has lost, or too old. Start the slave with an empty store"
            )
        return reported

    def is_silent(self, steady_ms: int) -> bool:
        """Whether the slave has said nothing for so long that the connection counts as dead."""
        return steady_ms - self._heard_ms > self._config.ha_housekeeping_interval

    # --- what the slave is sent ---

    def has_more(self) -> bool:
        """Whether there are bytes that could be sent now."""
        return self._cut_bytes > 0 or 0 <= self.next_offset < self._log.max_physical_offset

    def pieces(self, max_bytes: int, steady_ms: int) -> list[Piece]:
        """What is to be sent next: the heads of frames and slices of the log, in turns.

        There are about `max_bytes` at most. A heartbeat is sent when nothing else was for long.
        """
        if self.next_offset < 0:
            return []
        out: list[Piece] = []
        cut = self._planned[:1] if self._cut_bytes else []
        self._planned = []
        for offset, size, head in cut:
            rest = self._log.read_raw(offset, size) if size else b""
            if rest is None:
                raise HaPeerError(
                    f"the log has no bytes at {offset} any more, of which it has a part"
                )
            self._planned.append((offset, size, head))
            if self._cut_bytes < len(head):
                out += (head[self._cut_bytes :], rest)
            else:
                out.append(rest[self._cut_bytes - len(head) :])
            max_bytes -= size
        offset = cut[0][0] + cut[0][1] if cut else self.next_offset
        config, end = self._config, self._log.max_physical_offset
        if steady_ms - self._second_ms >= _SECOND_MS or config.ha_flow_control_enable:
            max_bytes = min(max_bytes, self._allowed_bytes(steady_ms))
        while (
            offset < end
            and len(self._planned) < MOST_FRAMES
            and (data := self._next(offset, max_bytes))
        ):
            self._plan(offset, data, out)
            offset, max_bytes = offset + len(data), max_bytes - len(data)
        if not out and steady_ms - self._wrote_ms >= config.ha_send_heartbeat_interval:
            head = self._head(offset, 0)
            self._planned = [(offset, 0, head)]
            out = [head]
        return out

    def _head(self, offset: int, size: int) -> bytes:
        """What stands before a frame."""
        return HEAD_CODEC.pack(offset, size)

    def _most(self, offset: int) -> int:
        """How many bytes a frame may have that begins at this offset."""
        return MAX_FRAME_BYTES

    def _next(self, offset: int, max_bytes: int) -> memoryview | None:
        """The bytes of the frame at this offset; None: there is none now."""
        most = min(self._config.ha_transfer_batch_size, self._most(offset), max_bytes)
        found = self._log.read_raw(offset, most) if most > 0 else None
        if found is None and offset < self._log.min_physical_offset:
            raise HaPeerError(
                f"it needs the log from {offset} on, which has expired: the log begins at"
                f" {self._log.min_physical_offset}"
            )
        return found

    def _plan(self, offset: int, data: Piece, out: list[Piece]) -> None:
        head = self._head(offset, len(data))
        self._planned.append((offset, len(data), head))
        out += (head, data)

    def sent(self, count: int, steady_ms: int) -> None:
        """Hears how many bytes of what `pieces` has given out have left."""
        if not count:
            if not self._cut_bytes:
                self._planned = []
            return
        self._wrote_ms = steady_ms
        self._second_bytes += count
        count += self._cut_bytes
        self._cut_bytes = 0
        for index, (offset, size, head) in enumerate(self._planned):
            if count < len(head) + size:
                self._planned = self._planned[index : index + 1] if count else []
                self._cut_bytes = count
                return
            count -= len(head) + size
            self.next_offset = offset + size
        self._planned = []

    def _allowed_bytes(self, steady_ms: int) -> int:
        """How many bytes may be sent in this second."""
        self.bytes_in_second(steady_ms)
        if not self._config.ha_flow_control_enable:
            return 1 << 62
        return max(self._config.max_ha_transfer_byte_in_second - self._second_bytes, 0)

    def bytes_in_second(self, steady_ms: int) -> int:
        """How many bytes were sent in the last whole second."""
        passed_ms = steady_ms - self._second_ms
        if passed_ms >= _SECOND_MS:
            self._last_second_bytes = self._second_bytes if passed_ms < 2 * _SECOND_MS else 0
            self._second_ms, self._second_bytes = steady_ms, 0
        return self._last_second_bytes
