# SPDX-License-Identifier: Apache-2.0
"""The reference of a kernel's table: places of sends and of ends, with which the bytes begin.

A place is learned from a header that was decoded and checked as usual. A later header with the same
key, so that only its holes differ (header_holes.py), is for the same place. A send is taken if its
place is known and no transform acts on its properties. If it was learned of an account, it is only
taken from the same origin, which stands for an address, and if it is signed as it should be. What
is in any way unusual is not taken; it goes the way of everything else. There are no partial
results: a batch is taken whole or not at all. Ends of transactions have places of their own, and
are taken if their half messages are in memory (ends.py).

This is the plain form in Python, by which compiled ones are judged: it is not made to be fast.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from txrocketmq.broker.kernel.ends import (
    MOST_HALF_BYTES,
    Ending,
    LogFinder,
    ReferenceEnds,
    TakenEnd,
)
from txrocketmq.broker.kernel.header_holes import Holes, end_holes_of, holes_of
from txrocketmq.broker.kernel.run import EndOfQueue, ReferenceRun, TakenMessage, TakenSend
from txrocketmq.broker.kernel.signatures import SigningAccounts
from txrocketmq.remoting import formats
from txrocketmq.remoting.message.properties import (
    KEYS,
    MAX_PROPERTIES_BYTES,
    TAGS,
    TRAN_MSG,
    UNIQ_KEY,
    WAIT,
)
from txrocketmq.remoting.message.record import BATCH_ENTRY_HEAD, PROPERTIES_LENGTH
from txrocketmq.remoting.primitives.packing import fixed

MOST_PLACES: Final = 4_096
"""How many places a table keeps; before it learns another one it forgets them all."""
MOST_COMMANDS: Final = 256
MOST_MESSAGES: Final = 1_024
"""How many requests and messages a run has at most: others have their turn then."""
MOST_ENTRIES: Final = 512
"""Batches of more messages than this are long ones, which are prepared in turns."""
_PREFIX: Final = fixed(formats.FRAME_PREFIX).struct
_HEADER_MASK: Final = 0xFFFFFF
_ENTRY_HEAD: Final = fixed(BATCH_ENTRY_HEAD).struct
_LENGTH: Final = fixed(PROPERTIES_LENGTH).struct


class HalfPlace(NamedTuple):
    """Where half messages are to go once they are committed.

    `before` and `behind` are the properties that say so, around the unique key.
    """

    queue_id: int
    before: bytes
    behind: bytes


class Learned(NamedTuple):
    """What is known of the sends of one place; `queue` is the index of their queue.

    `half` is the index of a HalfPlace if they are half messages, `account` the number of who signs
    them.
    """

    queue: int
    is_batch: bool
    is_oneway: bool
    flag: int
    sys_flag: int
    reconsume_times: int
    code: int
    half: int | None
    account: int | None


class ReferenceTable:
    """The table.

    A message with one of the properties `touched` is not taken, nor a batch with one of
    `touched_in_batch` in an entry, nor a half message with one of `touched_in_half`; `own` is the
    text of the properties that the broker adds.
    """

    def __init__(
        self, touched: list[bytes], touched_in_batch: list[bytes], touched_in_half: list[bytes],
        own: bytes,
    ) -> None:  # fmt: skip
        self._touched = frozenset(touched)
        self._touched_in_batch = frozenset(touched_in_batch)
        self._touched_in_half = frozenset(touched_in_half)
        self._own = own
        self._accounts = SigningAccounts()
        self._places: dict[tuple[Any, ...], Learned | Ending] = {}
        self._ends: ReferenceEnds | None = None
        self.queues: list[EndOfQueue] = []
        """The queues of all places."""
        self.halves: list[HalfPlace] = []

    def add_queue(self, queue: object, record_topic: bytes, magic: int, queue_id: int) -> int:
        """Adds a queue; returns its index."""
        self.queues.append(EndOfQueue(queue, record_topic, magic, queue_id))
        return len(self.queues) - 1

    def add_half(self, queue_id: int, before: bytes, behind: bytes) -> int:
        """Adds where half messages are to go; returns its index."""
        self.halves.append(HalfPlace(queue_id, before, behind))
        return len(self.halves) - 1

    def expect_ends(self, topic: bytes, touched: list[bytes]) -> None:
        """Has ends of transactions taken: see ReferenceEnds."""
        self._ends = ReferenceEnds(topic, touched)

    def add_target(self, queue: int, real: bytes, sys_flag: int) -> int:
        """Adds where half messages are to go: see ReferenceEnds. Raises ValueError as well if there
        is no such queue, or if no ends are expected.
        """
        if self._ends is None or not 0 <= queue < len(self.queues):
            raise ValueError("there is no such queue, or no ends are expected")
        return self._ends.add(queue, real, sys_flag)

    def learn_end(
        self, kind: int, header: bytes, group: bytes, is_commit: bool, oneway: bool, code: int,  # noqa: FBT001 - as in the compiled form
    ) -> bool:  # fmt: skip
        """Learns the place of an end; returns whether such headers are known now."""
        holes = end_holes_of(kind, header)
        if holes is None or holes.signed is not None or not group or self._ends is None:
            return False
        if holes_of(kind, header) is not None:  # it would be looked up as a send
            return False
        self._keep((0, *holes.key), Ending(group, is_commit, oneway, code))
        return True

    def add_account(self, key: bytes) -> int:
        """Adds an account by its secret, as HMAC uses it; returns its number."""
        return self._accounts.add(key)

    def wipe(self) -> None:
        """Forgets all places and accounts."""
        self._places.clear()
        self._accounts.wipe()

    def learn(  # noqa: PLR0913, PLR0917 - as in the compiled form
        self, kind: int, header: bytes, queue: int, is_batch: bool, oneway: bool, flag: int,  # noqa: FBT001 - as in the compiled form
        sys_flag: int, reconsume: int, code: int, half: int | None, origin: int,
        account: int | None,
    ) -> bool:  # fmt: skip
        """Learns the place of a header; returns whether such headers are known now."""
        holes = holes_of(kind, header)
        if holes is None or not 0 <= queue < len(self.queues):
            return False
        if half is not None and (is_batch or not 0 <= half < len(self.halves)):
            return False
        if not self._accounts.may_learn(holes.signed, origin, account):
            return False
        key = origin, *holes.key
        self._keep(key, Learned(
            queue, is_batch, oneway, flag, sys_flag, reconsume, code, half, account
        ))  # fmt: skip
        return True

    def _keep(self, key: tuple[Any, ...], place: Learned | Ending) -> None:
        if key not in self._places:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            self._places[key] = place

    def take(self, data: bytes, origin: int, log: LogFinder | None = None) -> ReferenceRun | None:
        """Takes the sends from an origin with which the bytes begin; None if there are none.

        With `log`, which returns the last file of the log, it takes ends of transactions, too.
        """
        run = ReferenceRun()
        while (
            run.commands < MOST_COMMANDS
            and run.messages < MOST_MESSAGES
            and len(data) - run.at >= _PREFIX.size
        ):
            length, mark = _PREFIX.unpack_from(data, run.at)
            header_at, end = run.at + _PREFIX.size, run.at + 4 + length
            header_end = header_at + (mark & _HEADER_MASK)
            if header_end > end or end > len(data) or end - run.at > formats.MAX_FRAME_BYTES:
                break
            header = data[header_at:header_end]
            holes = holes_of(mark >> 24, header)
            if holes is None:
                if header_end != end or not self._take_end(run, mark >> 24, header, origin, log):
                    break
                run.at = end
                continue
            place = self._places.get((origin, *holes.key))
            if not isinstance(place, Learned):
                break
            if not self._accounts.accepts(holes.signed, place.account, data[header_end:end]):
                break
            send = self._send(place, holes, data[header_end:end])
            if send is None or not run.takes(send, MOST_MESSAGES):
                break
            run.add(send, self.queues[place.queue], end)
        return run if run.commands else None

    def _take_end(
        self, run: ReferenceRun, kind: int, header: bytes, origin: int, log: LogFinder | None
    ) -> bool:
        """Takes the end that has this header; returns whether it did."""
        holes = end_holes_of(kind, header)
        place = None if holes is None else self._places.get((origin, *holes.key))
        if holes is None or log is None or self._ends is None or not isinstance(place, Ending):
            return False
        file = log()
        taken = None if file is None else self._ends.take(file, holes, place, pairs_of)
        if taken is None or run.half_bytes + taken.half.size > MOST_HALF_BYTES:
            return False
        half, pairs = taken.half, taken.pairs
        messages = [_message(half.body, taken.properties, pairs, half.flag)]
        send = TakenSend(
            taken.queue, place.code, place.is_oneway, taken.sys_flag, half.reconsume_times,
            holes.opaque, half.born_timestamp, None, waits=False,
            messages=messages if place.is_commit else [], batch_bytes=0, half=None, queue_id=0,
            origin=half,
        )  # fmt: skip
        ended = TakenEnd(
            half.queue_id, half.queue_offset, half.born_timestamp, taken.target, place.is_commit
        )
        run.end(send, self.queues[taken.queue], ended, taken.half.size)
        return True

    def _send(self, place: Learned, holes: Holes, body: bytes) -> TakenSend | None:
        half = None if place.half is None else self.halves[place.half]
        pairs = pairs_of(holes.properties, self._touched if half is None else self._touched_in_half)
        if pairs is None or not body:
            return None
        if half is not None and pairs.get(TRAN_MSG.encode(), b"").lower() != b"true":
            return None
        key, wait = pairs.get(UNIQ_KEY.encode()), pairs.get(WAIT.encode(), b"true")
        if not wait.isascii() or not (key is None or key.isalnum()):  # of bytes: only ASCII is
            return None
        if place.is_batch:
            messages = self._entries(body)
        else:
            messages = self._single(holes.properties, pairs, body, place.flag, half)
        if not messages:
            return None
        return TakenSend(
            place.queue, place.code, place.is_oneway, place.sys_flag, place.reconsume_times,
            holes.opaque, holes.born_timestamp_ms, key, wait.lower() == b"true", messages,
            len(body) if place.is_batch else 0, place.half,
            self.queues[place.queue].queue_id if half is None else half.queue_id,
        )  # fmt: skip

    def _single(
        self, text: bytes, pairs: dict[bytes, bytes], body: bytes, flag: int,
        half: HalfPlace | None,
    ) -> list[TakenMessage]:  # fmt: skip
        key = pairs.get(UNIQ_KEY.encode())
        if key is None:
            return []
        waiting = b"" if half is None else half.before + key + half.behind
        properties = text + (b"" if text.endswith(b"\x02") else b"\x02") + waiting + self._own
        if len(properties) > MAX_PROPERTIES_BYTES:
            return []
        return [_message(body, properties, pairs, flag)]

    def _entries(self, body: bytes) -> list[TakenMessage] | None:
        made: list[TakenMessage] = []
        at = 0
        try:
            while at < len(body):
                _, _, _, flag, body_bytes = _ENTRY_HEAD.unpack_from(body, at)
                body_at = at + _ENTRY_HEAD.size
                text_at = body_at + body_bytes + _LENGTH.size
                if body_bytes < 0 or len(made) == MOST_ENTRIES:
                    return None
                (text_bytes,) = _LENGTH.unpack_from(body, text_at - _LENGTH.size)
                at = text_at + text_bytes
                if text_bytes < 0 or at > len(body):
                    return None
                text = body[text_at:at]
                pairs = pairs_of(text, self._touched_in_batch)
                if pairs is None:
                    return None
                made.append(_message(body[body_at : body_at + body_bytes], text, pairs, flag))
        except struct.error:
            return None
        return made


def pairs_of(text: bytes, touched: frozenset[bytes]) -> dict[bytes, bytes] | None:
    """Returns the properties of a text; None if one is touched, or if anything is unusual.

    That is a name that comes twice, a name or a value that is missing, and what is not UTF-8.
    """
    pairs = [pair.split(b"\x01") for pair in text.split(b"\x02")]
    if pairs[-1] == [b""]:
        pairs.pop()
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        return None
    found = {name: value for name, value in pairs}  # noqa: C416 - lists are no pairs for mypy
    if len(found) != len(pairs) or not touched.isdisjoint(found):
        return None
    try:
        text.decode()
    except UnicodeDecodeError:
        return None
    return found


def _message(body: bytes, properties: bytes, pairs: dict[bytes, bytes], flag: int) -> TakenMessage:
    key, keys, tags = (_text(pairs.get(name.encode())) for name in (UNIQ_KEY, KEYS, TAGS))
    return TakenMessage(body, properties, key, keys, tags, flag)


def _text(value: bytes | None) -> Any:
    return None if value is None else value.decode()
