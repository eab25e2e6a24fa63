# SPDX-License-Identifier: Apache-2.0
"""Which life of a queue an offset counts: a topic that is made anew begins at offset 0 again.

A reader that goes on at its offset would pass over as many messages of the new queue as it has read
of the old one. Therefore it remembers a message that it has seen. A queue is another one if its
first message was stored after that message, which is no longer at its place; then everything in the
queue is news. A log that was cut off at a crash, or a clock that was set back, is no new queue.

This is looked at when there is reason for doubt, which is an error or a queue that has become
shorter, and now and then while messages arrive, because a broker may keep a pull while the topic is
made anew. It takes one small request, which every broker serves. The original's clients do without.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Final, NamedTuple

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, decode_message
from txrocketmq.remoting.routing.queue_requests import pull_header

LOOK_MS: Final = 30_000
"""How often a queue is looked at while messages arrive."""
TIMEOUT_MS: Final = 10_000
_BUSY: Final = frozenset({ResponseCode.FLOW_CONTROL, ResponseCode.SYSTEM_BUSY})

log = Logger()


class Seen(NamedTuple):
    """A message that was seen in a queue; its store time is in ms by the clock of the broker."""

    queue_offset: int
    commit_log_offset: int
    store_timestamp: int

    def __str__(self) -> str:
        return " ".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Seen | None:
        """Returns what `str` has made a text of; None for any other text."""
        words = text.split(" ")
        if len(words) != len(cls._fields) or not all(w.isascii() and w.isdecimal() for w in words):
            return None
        return cls(*map(int, words))


Marks = MutableMapping[MessageQueue, Seen]
"""The message that was seen last, by queue."""


class QueueLife:
    """The life of one queue. `marks` outlives it; what it contains of the queue is taken over."""

    def __init__(self, instance: ClientInstance, queue: MessageQueue, marks: Marks) -> None:
        self._instance = instance
        self._clock = instance.clock
        self._queue = queue
        self._marks = marks
        self._proven = marks.get(queue)
        """The message by which the queue is known again."""
        self._is_doubted = self._proven is not None
        self._was_missing = False
        self._due_ms = 0

    def saw(self, messages: Sequence[MessageExt]) -> None:
        """Remembers the last of these messages, which are of the queue."""
        if not messages:
            return
        last = messages[-1]
        seen = Seen(last.queue_offset, last.commit_log_offset, last.store_timestamp)
        self._marks[self._queue] = seen
        if self._proven is None:
            self._proven = seen
            self._due_ms = self._clock.steady_ms() + LOOK_MS

    def doubt(self, error: Exception | None = None) -> None:
        """Has the queue looked at before it is read again; the error is that of a pull."""
        code = error.code if isinstance(error, MQBrokerError) else None
        if code in _BUSY:
            return
        self._is_doubted = True
        self._was_missing |= code == ResponseCode.TOPIC_NOT_EXIST

    def is_to_be_looked_at(self, offset: int) -> bool:
        """Returns whether `begins_anew` has to be asked before the queue is read at this offset."""
        if offset == 0:
            self._forget()  # what comes now may be of any life
            return False
        if self._proven is None and not self._was_missing:
            return False
        if self._is_doubted:
            return True
        return self._clock.steady_ms() >= self._due_ms and (
            self._marks.get(self._queue) is not self._proven
        )

    async def begins_anew(self, offset: int) -> int | None:
        """Returns where the queue begins if `offset` counts another one than there is now.

        Raises BrokerNotExist and errors of the connection.
        """
        if not self.is_to_be_looked_at(offset):
            return None
        newest, now_ms = self._marks.get(self._queue), self._clock.steady_ms()
        address = await self._instance.address_to_subscribe(self._queue)
        try:
            is_another, first = await self._is_another(address)
        except MQBrokerError:  # this account may not ask, so errors of pulls have to do
            is_another, first = self._was_missing, 0
        if is_another is None:
            return None  # the queue is empty, which tells nothing yet
        if is_another:
            self._forget()
            log.warn(
                "queue {queue} was made anew since offset {old} was read: it is read from its first"
                " message on, at offset {offset}",
                queue=self._queue,
                old=offset,
                offset=first,
            )
            return first
        self._is_doubted = self._was_missing = False
        self._proven = newest
        self._due_ms = now_ms + LOOK_MS
        return None

    def _forget(self) -> None:
        self._marks.pop(self._queue, None)
        self._proven = None
        self._is_doubted = self._was_missing = False

    async def _is_another(self, address: str) -> tuple[bool | None, int]:
        """Whether the queue is not the one that was read, and where it begins then.

        The former is None if nothing can be said yet.
        """
        api, seen = self._instance.api, self._proven
        if seen is not None:
            earliest_ms = await api.earliest_store_time(address, self._queue)
            if earliest_ms < 0:
                return None, 0
            if earliest_ms <= seen.store_timestamp:
                return False, 0
        first = await api.min_offset(address, self._queue)
        if seen is None:
            return self._was_missing, first
        if first > seen.queue_offset:
            return False, first  # the message was deleted because it was old
        return not await self._is_there(address, seen), first

    async def _is_there(self, address: str, seen: Seen) -> bool:
        """Whether the message is still at its place."""
        # Of no group: a pull of the reader's group would change its progress.
        header = pull_header(self._queue, seen.queue_offset, 1)
        reply = await self._instance.api.pull(address, header, TIMEOUT_MS)
        if reply.code != ResponseCode.SUCCESS:
            return False
        message, _ = decode_message(reply.body_bytes, decompress_body=False)
        stored = (message.commit_log_offset, message.store_timestamp)
        return stored == (seen.commit_log_offset, seen.store_timestamp)
