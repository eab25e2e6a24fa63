# SPDX-License-Identifier: Apache-2.0
"""One limit for the bytes that a process holds for all its peers together.

Each peer has limits of its own: an unfinished frame, what one read took, answers that it does not
read. A thousand peers could still take all memory. So what is held is counted, both of what comes
and of what leaves, and a server has one limit for it. Beyond the limit, those that hold most are
not read from any more; if that does not help, because the others need more, or for some seconds,
their connections are closed, the largest first. Whoever holds little notices nothing.

Holders are kept by the power of two of what they hold, so that counting costs the same however many
there are; which of those of one power is the largest does not matter. Java: has no counterpart but
the limits of the JVM.
"""

from __future__ import annotations

import fcntl
import select
import socket
import termios
from array import array
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol

from twisted.internet.tcp import Connection as TcpConnection
from twisted.logger import Logger

from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.process.log_limit import Seldom, and_more

MAX_HELD_BYTES: Final = 256 * 1024 * 1024
"""How many bytes are held at most by default (maxBytesHeldForPeers)."""
LEAST_BYTES: Final = 1 << 20
"""One that holds less than this is read from, whatever the others hold."""
MUCH_BYTES: Final = 32 * 1024 * 1024
"""If the total falls by more than this, the memory is worth being given back to the system."""
PARKED_BYTES: Final = 32 * 1024
"""What requests hold that wait until something happens, such as a message, is counted by so many
bytes at a time."""
TOO_LONG_MS: Final = 5_000
"""How long more than the limit may be held before connections are closed, in ms."""
_ENDED: Final = sum(getattr(select, name, 0) for name in ("POLLHUP", "POLLERR", "POLLRDHUP"))
_DECRYPTED_BYTES: Final = 1 << 15
"""More than what an encrypted connection keeps until the rest of a TLS record comes."""
_POWERS: Final = 48
_LEAST_POWER: Final = LEAST_BYTES.bit_length()

log = Logger()


class Holder(Protocol):
    """One for whom bytes are held."""

    remote_address: str
    transport: Any
    decoder: FrameDecoder

    @property
    def held_bytes(self) -> int:
        """How many bytes are held, as `changed` was told."""

    def crowd(self) -> None:
        """Does not read any more, until there is room."""

    def has_room(self) -> None:
        """Reads on."""

    def abort(self) -> None:
        """Ends, and gives back what it holds at once, by calling `changed`."""


class _Holders:
    """Holders by the power of two of what they hold."""

    def __init__(self) -> None:
        self._rows: list[OrderedDict[Holder, None]] = [OrderedDict() for _ in range(_POWERS)]

    def add(self, holder: Holder, power: int) -> None:
        self._rows[power][holder] = None

    def remove(self, holder: Holder, power: int) -> bool:
        """Removes a holder; returns whether it was there."""
        row = self._rows[power]
        if holder not in row:
            return False
        del row[holder]
        return True

    def all(self) -> list[Holder]:
        return [holder for row in self._rows for holder in row]

    def largest(self, least_power: int = 1) -> Holder | None:
        """Returns one of the largest, if it holds that much."""
        for power in range(_POWERS - 1, least_power - 1, -1):
            if self._rows[power]:
                return next(iter(self._rows[power]))
        return None


class HeldBytes:
    """Counts what is held, and keeps it below a limit.

    `most_bytes` returns the limit; `seldom` limits the log lines, and `steady_ms` is the time.
    """

    def __init__(
        self, most_bytes: Callable[[], int], seldom: Seldom, steady_ms: Callable[[], int]
    ) -> None:
        self.total = 0
        self.refused = 0
        """How many connections have been closed for what they held."""
        self._most_bytes = most_bytes
        self._seldom = seldom
        self._steady_ms = steady_ms
        self._reading = _Holders()
        self._crowded = _Holders()
        """Those that are not read from."""
        self.crowded = 0
        """The number of these."""
        self._over_since_ms: int | None = None
        self._most_held = 0
        """The highest total since `has_fallen` was true last."""

    def changed(self, holder: Holder, before: int, after: int) -> None:
        """Counts that a holder holds `after` bytes, instead of `before`."""
        self.total += after - before
        self._most_held = max(self._most_held, self.total)
        power, its = before.bit_length(), after.bit_length()
        if power != its:
            self._move(holder, power, its)
        if self.total > (most := self._most_bytes()):
            if after > before:
                self._grown(most)
        elif self._over_since_ms is not None:
            self._over_since_ms = None
            self._make_room()

    def has_fallen(self) -> bool:
        """Returns whether much less is held than before; once for each time that it was more."""
        if self._most_held - self.total <= max(MUCH_BYTES, self.total):
            return False
        self._most_held = self.total
        return True

    def tick(self) -> None:
        """Closes connections if too much has been held for too long; to be called every second."""
        since_ms = self._over_since_ms
        most = self._most_bytes()
        if self.total <= most:
            self._over_since_ms = None
            self._make_room()
        elif since_ms is not None and self._steady_ms() - since_ms >= TOO_LONG_MS:
            self._refuse(most)
        # The reactor does not notice that one has gone from whom nothing is read.
        for holder in self._crowded.all():
            if not has_gone(holder.transport):
                continue
            # One that has sent everything before it went is served; the others go at once, since
            # reading what is left of a frame that never ends may take them many more seconds.
            unread = unread_bytes(holder.transport.getHandle()) + _DECRYPTED_BYTES
            if holder.decoder.missing_bytes > unread:
                holder.abort()
            else:
                self._read_on(holder)

    def _move(self, holder: Holder, power: int, its: int) -> None:
        is_crowded = self._crowded.remove(holder, power)
        if not is_crowded:
            self._reading.remove(holder, power)
        elif its >= _LEAST_POWER:
            self._crowded.add(holder, its)
            return
        if its:
            self._reading.add(holder, its)
        if is_crowded:
            self.crowded -= 1
            holder.has_room()

    def _grown(self, most: int) -> None:
        if self._over_since_ms is None:
            self._over_since_ms = self._steady_ms()
        if self.total > most + most // 4:
            self._refuse(most + most // 4)
            return
        largest = self._reading.largest(_LEAST_POWER)
        if largest is None:
            return
        power = largest.held_bytes.bit_length()
        self._reading.remove(largest, power)
        self._crowded.add(largest, power)
        self.crowded += 1
        more = self._seldom.more(self._steady_ms(), HeldBytes)
        if more is not None:
            log.warn(
                "{total} bytes are held for peers, more than maxBytesHeldForPeers={most}: {peer},"
                " with {n} of them, is not read from until there is room{more}",
                total=self.total,
                most=most,
                peer=largest.remote_address,
                n=largest.held_bytes,
                more=and_more(more),
            )
        largest.crowd()

    def _refuse(self, most: int) -> None:
        """Closes the connections of the largest until no more than `most` is held."""
        while self.total > most:
            one, other = self._reading.largest(), self._crowded.largest()
            largest = max(
                (each for each in (other, one) if each is not None),
                key=lambda each: each.held_bytes.bit_length(),
            )
            self.refused += 1
            more = self._seldom.more(self._steady_ms(), "refused")
            if more is not None:
                log.warn(
                    "closing {peer}: {n} bytes are held for it, and {total} for all peers, which is"
                    " too much (maxBytesHeldForPeers){more}",
                    peer=largest.remote_address,
                    n=largest.held_bytes,
                    total=self.total,
                    more=and_more(more),
                )
            largest.abort()

    def _make_room(self) -> None:
        """Lets all read on; there are few, since each holds LEAST_BYTES or did so."""
        while (holder := self._crowded.largest()) is not None:
            self._read_on(holder)

    def _read_on(self, holder: Holder) -> None:
        power = holder.held_bytes.bit_length()
        self._crowded.remove(holder, power)
        self._reading.add(holder, power)
        self.crowded -= 1
        holder.has_room()


def has_gone(transport: Any) -> bool:
    """Whether the other end has closed a connection, or broken it."""
    return isinstance(transport, TcpConnection) and is_ended(transport.getHandle())


def unread_bytes(connection: socket.socket) -> int:
    """How many bytes have come that were not read yet."""
    count = array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, count)
    return count[0]


def is_ended(connection: socket.socket) -> bool:
    """Whether nothing more will come, or can be sent, than what is in the system's buffers."""
    poll = select.poll()
    poll.register(connection, getattr(select, "POLLRDHUP", 0))
    return any(events & _ENDED for _, events in poll.poll(0))
