# SPDX-License-Identifier: Apache-2.0
"""Unique keys of the messages that a task writes.

A write without a batch key gives each message a new key, as any producer does. A micro-batch that
may be replayed gives the same row the same key each time, so the broker's index tells which of its
messages were sent before.

Java: common.message.MessageClientIDSetter.
"""

from __future__ import annotations

import os
import random
import socket
import time
from hashlib import blake2b
from typing import Final, Protocol

from txrocketmq.remoting.message.ids import UniqueKeys, ip_bytes

_LOOPBACK: Final = ip_bytes("127.0.0.1")
_TIME_AT: Final = 10
"""Bytes before the time in a key with an IPv4 address."""
_NO_TIME: Final = bytes(4)


class Keys(Protocol):
    """Makes the unique keys of the rows of a task."""

    def of(self, row: int) -> str:
        """Returns the key of the row with this number: 32 hexadecimal digits."""


class NewKeys:
    """Makes keys that no message has yet."""

    def __init__(self) -> None:
        self._keys = UniqueKeys(_own_address(), os.getpid(), random.getrandbits(32))

    def of(self, row: int) -> str:
        """Returns a new key, whatever the number of the row is."""
        return self._keys.create(time.time_ns() // 1_000_000)


class ReplayKeys:
    """Makes keys that a replay of the same partition of the same batch makes again.

    `batch` identifies the batch among all that are ever written, by query and number. The time in a
    key, at which tools begin to look for the message, is the start of the month.
    """

    def __init__(self, batch: str, partition: int) -> None:
        self._prefix = blake2b(f"{batch}\0{partition}\0".encode(), digest_size=_TIME_AT + 2)

    def of(self, row: int) -> str:
        """Returns the key of the row."""
        hashed = self._prefix.copy()
        hashed.update(b"%d" % row)
        digest = hashed.digest()
        return (digest[:_TIME_AT] + _NO_TIME + digest[_TIME_AT:]).hex().upper()


def _own_address() -> bytes:
    try:
        return ip_bytes(socket.gethostbyname(socket.gethostname()))
    except OSError:
        return _LOOPBACK
