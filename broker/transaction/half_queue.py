# SPDX-License-Identifier: Apache-2.0
"""A queue of half messages with its op queue: the progress in both, and what is open.

Java: the part of TransactionalMessageServiceImpl.check that reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from typing import Final

from txrocketmq.broker.store.disk.steps import items_in_memory
from txrocketmq.broker.store.get.jumps import HALF_MESSAGES, OP_MESSAGES, Jump
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.offset import NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.transaction.copies import Copies
from txrocketmq.broker.transaction.end_marks import Ended
from txrocketmq.broker.transaction.half_message import prepared_offset
from txrocketmq.broker.transaction.moves import Moves
from txrocketmq.broker.transaction.op_message import half_offsets
from txrocketmq.broker.work.progress import DurableProgress
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC, TRANS_OP_TOPIC

GROUP: Final = "CID_RMQ_SYS_TRANS"
"""The group under which the broker keeps its progress (MixAll.CID_SYS_RMQ_TRANS)."""
_offset_of: Final = itemgetter(1)
_MAX_OPS: Final = 256
"""How many op messages are read at once."""
_MAX_COPIES: Final = 64
"""How many half messages are read at once when copies are looked for."""
_MAX_EARLY: Final = 65_536
"""How many ends are remembered before copies are known; for others producers may be asked again."""


class HalfQueue:
    """A half queue with its op queue; `is_new` if a former life of the broker did not have it."""

    def __init__(
        self, queue_id: int, store: MessageStore, offsets: ConsumerOffsets, *, is_new: bool = False
    ) -> None:
        self.queue_id = queue_id
        self.moves = Moves()
        self.top = 0
        """The end of the queue when the round began; later messages are for the next round."""
        self.escaped_to = 0
        """Up to where a slave that acts as master has sent messages elsewhere in this round, as far
        as others took them."""
        self._store = store
        self._offsets = offsets
        self._kept = self._in_file()
        self._unknown: set[str] = set()
        """The topics without progress when the reader began: it begins at the first message."""
        self.ended = Ended(*self._begin())
        self._copies: Copies | None = None
        """Looks for copies; None before all op messages were read, and when it is done."""
        self._is_known = is_new
        """Whether it is known which messages are older copies of others."""
        self._early: list[int] = []
        """Offsets of messages that ended before that."""
        self._awaited = DurableProgress[tuple[int, int]](store)
        """Progress in both queues that can be saved once the log is durable."""

    def _in_file(self) -> tuple[int, int]:
        query, queue_id = self._offsets.query, self.queue_id
        return query(GROUP, TRANS_HALF_TOPIC, queue_id), query(GROUP, TRANS_OP_TOPIC, queue_id)

    def _begin(self) -> tuple[int, int]:
        """Returns where to begin in both queues, by the saved progress and by where they end."""
        topics, queue_id = (TRANS_HALF_TOPIC, TRANS_OP_TOPIC), self.queue_id
        found = []
        pairs = list(zip(topics, self._kept, strict=True))
        self._unknown = {topic for topic, kept in pairs if kept == NOT_FOUND}
        for topic, kept in pairs:
            found.append(min(max(kept, 0), self._store.max_offset(topic, queue_id)))
        return found[0], found[1]

    def begin_round(self) -> None:
        """Takes the queue's present end, and the saved progress if somebody else has set it."""
        if self._in_file() != self._kept:
            self._kept = self._in_file()
            self._awaited.forget()
            self.ended = Ended(*self._begin())
            self._copies, self._is_known = None, False
        self.top = self._store.max_offset(TRANS_HALF_TOPIC, self.queue_id)
        self.escaped_to = 0

    def escaped(self, arrived: Collection[int], end: int) -> None:
        """Notes that others have the messages at these offsets, and that all up to `end` were sent
        in this round.
        """
        self.ended.mark(list(arrived))
        self.ended.done_before(self.next_open(self.ended.half_offset))
        self.escaped_to = end

    def ended_alone(self, places: Sequence[tuple[int, int]]) -> bool:
        """Notes that the messages at these offsets, each with the queue, have ended; False, and
        notes nothing, if some of them may have copies: then each is to be ended by itself.
        """
        if not self._is_known or self.moves.first:
            return False
        self.ended.mark([*map(_offset_of, places)])
        return True

    def end(self, offset: int) -> list[int]:
        """Notes that the message known by this offset has ended; returns the offsets of all its
        copies, for which op messages have to be put.
        """
        if not self._is_known and len(self._early) < _MAX_EARLY:
            self._early.append(offset)
        offsets = self.moves.ended(offset)
        self.ended.mark(offsets)
        return offsets

    def read_copies(self) -> list[int] | None:
        """Reads some messages to find older copies; None as long as there are more to read.

        Returns the offsets for which op messages have to be put, since their messages ended under
        other offsets meanwhile. Raises NotInMemory when nothing could be read.
        """
        if self._is_known:
            return []
        if self._copies is None:
            if not self.read_ops():
                return None
            top = self._store.max_offset(TRANS_HALF_TOPIC, self.queue_id)
            self._copies = Copies(self.ended.half_offset, top, self._early)
        copies = self._copies
        for offset, half in items_in_memory(self._next_copies(copies)):
            before = copies.add(offset, half)
            if before is not None and half is not None:
                self.moves.moved(before, offset, prepared_offset(half, before))
                self.ended.mark([before])
        if copies.next(self._open(copies.offset)) < copies.end:
            return None
        self._copies, self._is_known = None, True
        early, self._early = self._early, []
        return [each for one in early for each in self.end(one) if each != one]

    def _next_copies(self, copies: Copies) -> Iterator[tuple[int, MessageExt | None]]:
        for _ in range(_MAX_COPIES):
            offset = copies.next(self._open(copies.offset))
            if offset >= copies.end:
                return
            yield offset, self.message(offset)

    def read_ops(self) -> bool:
        """Reads some op messages; returns whether all available ones were read.

        Raises NotInMemory when none could be read.
        """
        ended, half_top = self.ended, self._store.max_offset(TRANS_HALF_TOPIC, self.queue_id)
        least, at = self._store.min_offset(TRANS_OP_TOPIC, self.queue_id), ended.read_offset
        if at < least:
            self._jumped(OP_MESSAGES, TRANS_OP_TOPIC, at, least, least - at)
            ended.lost(least - at)
            at = ended.read_offset
        count = min(_MAX_OPS, self._store.max_offset(TRANS_OP_TOPIC, self.queue_id) - at)
        if count <= 0 or ended.is_full:
            return True
        units = list(self._store.queue_units(TRANS_OP_TOPIC, self.queue_id, at, count))
        self._store.check_records([(at, size) for at, size, _ in units])
        for physical_offset, size, code in units:
            record = self._store.message_at(physical_offset, size, is_checked=True)
            named = [] if record is None else half_offsets(record, code)
            if not ended.read(named, half_top):
                return True
        return ended.read_offset == at  # else there may be more

    def skip_lost(self) -> None:
        """Goes on behind half messages that the log has lost, after op messages were read."""
        least, at = self._store.min_offset(TRANS_HALF_TOPIC, self.queue_id), self.ended.half_offset
        if at < least:
            count = self.ended.open_before(least)
            self._jumped(HALF_MESSAGES, TRANS_HALF_TOPIC, at, least, count)
            self.ended.done_before(least)

    def _jumped(self, kind: str, topic: str, at: int, to: int, count: int) -> None:
        is_known = at > 0 or topic not in self._unknown
        self._store.jumps.found(Jump(kind, topic, self.queue_id, at, to, count, is_known=is_known))

    def next_open(self, offset: int) -> int:
        """The first half message at this offset or later that has not ended; or the top."""
        return min(self._open(offset), self.top)

    def _open(self, offset: int) -> int:
        least = self._store.min_offset(TRANS_HALF_TOPIC, self.queue_id)
        return self.ended.next_open(max(offset, least, self.ended.half_offset))

    def open_messages(self, offset: int, most: int) -> Iterator[tuple[int, MessageExt | None]]:
        """The messages from this offset on that have not ended, as far as the top: their offsets,
        and what `message` returns.
        """
        for _ in range(most):
            if offset >= self.top:
                return
            yield offset, self.message(offset)
            offset = self.next_open(offset + 1)

    def message(self, offset: int) -> MessageExt | None:
        """The half message at an offset; None when it cannot be read.

        Raises NotInMemory when it would have to be read from the disk.
        """
        for at, size, _ in self._store.queue_units(TRANS_HALF_TOPIC, self.queue_id, offset, 1):
            record = self._store.message_at(at, size)
            try:
                if record is not None:
                    return decode_message(record, decompress_body=False)[0]
            except MessageDecodeError:
                pass
        return None

    def settle(self) -> None:
        """Saves the progress as far as the log is durable, since it must not be ahead."""
        progress = self._awaited.latest(lambda: (self.ended.half_offset, self.ended.op_offset))
        if progress is None:
            return
        if progress == self._kept or (NOT_FOUND in self._kept and progress == (0, 0)):
            return
        if self._in_file() != self._kept:
            return  # somebody has set it: it counts from the next round on
        for topic, offset in zip((TRANS_HALF_TOPIC, TRANS_OP_TOPIC), progress, strict=True):
            self._offsets.commit(GROUP, topic, self.queue_id, offset)
        self._kept = progress
