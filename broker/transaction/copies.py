# SPDX-License-Identifier: Apache-2.0
"""Finds out which half messages are older copies of others, when progress is not known any more.

A half message that is put at the end of its queue again takes the place of the one before it, which
nothing says but the progress of the check. After a crash that progress may be older, and both would
be open: each would be put again, so that a broker which is killed often would have more copies of
it in each life, and each would be committed. So before anything is done with a queue whose progress
was read from its file, its open messages are read once, and of the same message only the last copy
stays open.

Two records are the same message when the second was put again by a broker, and unique key, time of
birth, sender's address and body agree. The original has nothing like it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt

MAX_KNOWN: Final = 262_144
"""How many open messages are compared; beyond that, the oldest are forgotten."""
_Identity = tuple[str, int, Host, int]


class Copies:
    """Goes through the half messages from one offset to another.

    `ended` are the offsets of messages that their producers have ended since the start: they are
    looked at as well, since a copy may not be known by the end's offset.
    """

    def __init__(self, start: int, end: int, ended: Sequence[int] = ()) -> None:
        self.offset = start
        """The next half message to be looked at."""
        self.end = end
        self._ended = deque(sorted(ended))
        self._last: dict[_Identity, int] = {}

    @property
    def is_done(self) -> bool:
        """Whether all messages were looked at."""
        return self.offset >= self.end

    def next(self, open_offset: int) -> int:
        """The next message to be looked at, given the first open one."""
        while self._ended and self._ended[0] < self.offset:
            self._ended.popleft()
        return min(open_offset, self._ended[0]) if self._ended else open_offset

    def add(self, offset: int, half: MessageExt | None) -> int | None:
        """Takes the message at an offset; None if it cannot be read.

        Returns the offset of the message whose place it has taken, if there is one.
        """
        self.offset = offset + 1
        if half is None or half.unique_key is None:
            return None
        last = self._last
        identity = half.unique_key, half.born_timestamp, half.born_host, half.body_crc
        before = last.pop(identity, None)
        if len(last) >= MAX_KNOWN:
            del last[next(iter(last))]
        last[identity] = offset
        is_copy = (
            names.TRANSACTION_CHECK_TIMES in half.properties
            or names.TRAN_PREPARED_QUEUE_OFFSET in half.properties
        )
        return before if is_copy else None
