# SPDX-License-Identifier: Apache-2.0
"""Walks: requests that go through all topics, groups or queues, served a slice at a time.

    @serves(admin.GET_BROKER_CONSUME_STATS)
    def everything(self, request: Request[...]) -> Reply[NoHeader] | PendingReply:
        return self._walks.answer(self._everything(request.header))

A walk is a generator that yields after each small step and returns the reply, or the promise of
it. It runs for two milliseconds; then whatever else there is comes first: sends, pulls, other
walks. Between two steps the tables may change, so a walk goes by a copy of their names, and passes
over what is gone. A walk that yields a ColdRead goes on when that is done. What a broker looks
through by itself from time to time goes the same way: `run`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from txrocketmq.broker.store.disk.in_memory import ColdRead
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.cold_reads import InThread, at_once, unread
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.formats import MAX_FRAME_BYTES
from txrocketmq.remoting.serialize.json import encode_around

SLICE_S = 0.002
"""How long a walk goes on, in seconds, while everything else waits."""
MAX_WALKS = 64
"""How many walks may be under way; a further request that needs one is SYSTEM_BUSY (2)."""

T = TypeVar("T")
Answer = Reply[Any] | PendingReply
Walk = Steps[Answer]

PIECE_BYTES = 32 * 1024
"""Pieces of a body are joined when they have this many bytes together."""


class Walks:
    """Runs walks in turns.

    `later` calls a function when all that is ready has been served; `timer` returns the seconds of
    a clock that nobody sets. `in_thread` runs the reads that walks wait for.
    """

    def __init__(
        self, later: Callable[[Callable[[], None]], object], timer: Callable[[], float]
    ) -> None:
        self._later = later
        self.timer = timer
        self.in_thread: InThread = at_once
        self._under_way: deque[tuple[Walk, PendingReply]] = deque()
        self._is_due = False
        """Whether the next slice is to come: a step may itself begin another walk."""
        self._reading = 0
        """The number of walks that wait for the disk."""

    def answer(self, walk: Walk) -> Answer:
        """Returns the reply of a short walk, or a promise of the reply of a long one.

        Raises what the first steps raise, and ResponseError when too many walks are under way.
        """
        if len(self._under_way) + self._reading >= MAX_WALKS:
            walk.close()
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"{MAX_WALKS} full scans are running already; try again later",
            )
        pending = PendingReply(is_work=True)
        if self._under_way:
            self._under_way.append((walk, pending))
            return pending
        outcome = self._slice(walk)
        if isinstance(outcome, ColdRead):
            self._read(outcome, walk, pending)
        elif outcome is None:
            self._add(walk, pending)
        else:
            return outcome
        return pending

    def run(self, steps: Steps[object], failed: Callable[[Exception], None]) -> None:
        """Takes steps that nobody waits for, in turns with all walks, however many those are."""

        def ended(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, Exception):
                failed(outcome)

        pending = PendingReply()
        pending.then(ended)
        self._under_way.append((_answering(steps), pending))
        if len(self._under_way) == 1 and not self._is_due:
            self._go_on()

    def begin(self, steps: Steps[T], ended: Callable[[T | Exception], None]) -> bool:
        """Takes steps at once, for a slice, and what is left in turns; returns whether none is.

        `ended` is called with the outcome. This is for requests of which there are many, so none is
        refused.
        """

        def walk() -> Walk:
            outcome: T | Exception
            try:
                outcome = yield from steps
            except Exception as error:  # noqa: BLE001 - it is the outcome
                outcome = error
            ended(outcome)
            return Reply()

        begun = walk()
        found = self._slice(begun)
        if isinstance(found, ColdRead):
            self._read(found, begun, PendingReply())
        elif found is None:
            self._add(begun, PendingReply())
        return isinstance(found, Reply)

    def soon(self, walk: Walk) -> Answer:
        """Returns the reply of a request that is short as a rule, or the promise of it.

        Unlike `answer` it refuses nothing, and a short one does not wait for other walks. Raises
        what the first steps raise.
        """
        pending = PendingReply(is_work=True)

        def ended(outcome: Answer | Exception) -> None:
            if isinstance(outcome, PendingReply):
                outcome.then(pending.resolve)
            else:
                pending.resolve(outcome)

        self.begin(walk, ended)
        outcome = pending.outcome
        if isinstance(outcome, Exception):
            raise outcome
        return pending if outcome is None else outcome

    def _add(self, walk: Walk, pending: PendingReply) -> None:
        self._under_way.append((walk, pending))
        self._wake()

    def _wake(self) -> None:
        if self._under_way and not self._is_due:
            self._is_due = True
            self._later(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        if self._under_way:
            self._go_on()

    def _read(self, read: ColdRead, walk: Walk, pending: PendingReply) -> None:
        """Has the read done in a thread; then the walk goes on."""
        self._reading += 1

        def done() -> None:
            self._reading -= 1
            read.finish()
            if read.error is None:
                self._add(walk, pending)
            else:
                walk.close()
                pending.resolve(unread(read.error))

        self.in_thread(read.run, done)

    def _slice(self, walk: Walk) -> Answer | ColdRead | None:
        """Runs some steps; returns the answer if the walk has ended, the read it waits for, or
        None.
        """
        timer = self.timer
        end_s = timer() + SLICE_S
        try:
            read: ColdRead | None = next(walk)
            while read is None and timer() < end_s:
                read = next(walk)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        return read

    def _go_on(self) -> None:
        self._is_due = False
        if not self._under_way:
            return
        walk, pending = self._under_way.popleft()
        outcome: Answer | ColdRead | Exception | None
        try:
            outcome = self._slice(walk)
        except Exception as error:  # noqa: BLE001 - it is the answer
            outcome = error
        if outcome is None:
            self._under_way.append((walk, pending))
        self._wake()
        if isinstance(outcome, ColdRead):
            self._read(outcome, walk, pending)
        elif isinstance(outcome, PendingReply):
            outcome.then(pending.resolve)
        elif outcome is not None:
            pending.resolve(outcome)


def _answering(steps: Steps[object]) -> Walk:
    yield from steps
    return Reply()


class Pieces:
    """Joins bytes that come in small bits, neither into one large buffer nor into many tiny
    ones; no more of them than fit in a frame.
    """

    def __init__(self) -> None:
        self._joined: list[bytes] = []
        self._bits: list[bytes] = []
        self._size_bytes = 0
        self._left_bytes = MAX_FRAME_BYTES

    def add(self, bit: bytes) -> None:
        """Adds a bit. Raises ResponseError when they are more than any answer may have."""
        self._bits.append(bit)
        self._size_bytes += len(bit)
        self._left_bytes -= len(bit)
        if self._left_bytes < 0:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the answer is too long: it has more than {MAX_FRAME_BYTES} bytes, and readers"
                " take no more at once; ask for less, or for parts",
            )
        if self._size_bytes >= PIECE_BYTES:
            self._join()

    def _join(self) -> None:
        if self._bits:
            self._joined.append(b"".join(self._bits))
            self._bits, self._size_bytes = [], 0

    def end(self) -> list[bytes]:
        """Returns all bytes, in buffers that need not be joined."""
        self._join()
        return self._joined


class BodyPieces:
    """A JSON body with one long object or list, which is put together piece by piece.

    `content` has HOLE in its place, and `brackets` are those around its members: "{}" or "[]".
    """

    def __init__(self, content: Mapping[str, Any], brackets: str) -> None:
        before, after = encode_around(content)
        self._pieces = Pieces()
        self._pieces.add(before + brackets[0].encode())
        self._after = brackets[1].encode() + after
        self._is_first = True

    def add(self, piece: bytes) -> None:
        """Adds a member or an item."""
        if self._is_first:
            self._is_first = False
        else:
            self._pieces.add(b",")
        self._pieces.add(piece)

    def end(self) -> list[bytes]:
        """Returns the whole body, in buffers that need not be joined."""
        self._pieces.add(self._after)
        return self._pieces.end()
