# SPDX-License-Identifier: Apache-2.0
"""Walks: requests that go through all topics, groups or queues, served a slice at a time.

    @serves(admin.GET_BROKER_CONSUME_STATS)
    def everything(self, request: Request[...]) -> Reply[NoHeader] | PendingReply:
        return self._walks.answer(self._everything(request.header))

A walk is a generator that yields after each small step and returns the reply, or the promise of
it. It runs for two milliseconds; then whatever else there is comes first: sends, pulls, other
walks. Between two steps the tables may change, so a walk goes by a copy of their names, and passes
over what is gone. A walk that yields what it has to wait for, mostly a ColdRead, goes on when that
is there (patience.py). What a broker looks through by itself from time to time goes the same way:
`run`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.call import Peer, PendingReply, Response
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.formats import MAX_FRAME_BYTES
from txrocketmq.remoting.serialize.json import encode_around

SLICE_S = 0.002
"""How long a walk goes on, in seconds, while everything else waits."""
MAX_WALKS = 64
"""How many walks may be under way; a further request that needs one is SYSTEM_BUSY (2)."""

T = TypeVar("T")
Walk = Steps[Response]

PIECE_BYTES = 32 * 1024
"""Pieces of a body are joined when they have this many bytes together."""


class Walks:
    """Runs walks in turns.

    `later` calls a function when all that is ready has been served; `timer` returns the seconds of
    a clock that nobody sets. What walks have to read is read with `patience`.
    """

    def __init__(
        self,
        later: Callable[[Callable[[], None]], object],
        timer: Callable[[], float],
        patience: Patience | None = None,
    ) -> None:
        self._later = later
        self.timer = timer
        self.patience = Patience() if patience is None else patience
        self._under_way: deque[UnderWay] = deque()
        self._is_due = False
        """Whether `_go_on` will be called."""
        self._awaiting = 0
        """How many walks wait for a read, without those of `begin`."""

    def answer(self, walk: Walk) -> Response:
        """Returns the reply of a short walk, or a promise of the reply of a long one.

        Raises what the first steps raise, and ResponseError when too many walks are under way.
        """
        if len(self._under_way) + self._awaiting >= MAX_WALKS:
            walk.close()
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"{MAX_WALKS} full scans are running already; try again later",
            )
        return self._promised(walk, self._begin)

    def soon(self, walk: Walk) -> Response:
        """Returns the reply of a request that is short as a rule, or the promise of it.

        Unlike `answer` it refuses nothing, and a short one does not wait for other walks. Raises
        what the first steps raise.
        """
        answer = self._promised(walk, self._take)
        if isinstance(answer, PendingReply):
            answer.is_work = True  # even if the walk itself was short
        return answer

    def run(self, steps: Steps[object], failed: Callable[[Exception], None]) -> None:
        """Takes steps that nobody waits for, in turns with all walks, however many those are."""

        def ended(outcome: object) -> None:
            if isinstance(outcome, Exception):
                failed(outcome)

        self._begin(UnderWay(steps, ended))

    def begin(
        self,
        steps: Steps[T],
        ended: Callable[[T | Exception], None],
        peer: Peer | None = None,
    ) -> UnderWay:
        """Takes steps at once, for a slice, and what is left in turns; returns how far that is.

        `ended` is called with the outcome, unless the peer, if one is given, has gone. This is for
        requests of which there are many, so none is refused.
        """
        under_way = UnderWay(steps, ended, peer)
        self._take(under_way)
        return under_way

    def _promised(self, walk: Walk, begin: Callable[[UnderWay], None]) -> Response:
        """Begins a walk; returns its reply if it ends at once, or raises its error."""
        at_once: list[Response | Exception] = []
        under_way = UnderWay(walk, at_once.append)
        begin(under_way)
        if not at_once:
            pending = PendingReply(is_work=True)
            under_way.ended = partial(_resolve, pending)
            return pending
        if isinstance(at_once[0], Exception):
            raise at_once[0]
        return at_once[0]

    def _begin(self, under_way: UnderWay) -> None:
        if self._under_way:
            self._under_way.append(under_way)
        else:
            self._take(under_way)

    def _take(self, under_way: UnderWay) -> None:
        """Takes some steps."""
        timer, steps = self.timer, under_way.steps
        end_s = timer() + SLICE_S
        try:
            awaited = next(steps)
            while awaited is None and timer() < end_s:
                awaited = next(steps)
        except StopIteration as end:
            under_way.end(end.value)
        except Exception as error:  # noqa: BLE001 - it is the outcome
            under_way.end(error)
        else:
            if awaited is None:
                self._add(under_way)
            else:
                self._wait(under_way, awaited)

    def _add(self, under_way: UnderWay) -> None:
        under_way.is_in_turns = True
        self._under_way.append(under_way)
        if not self._is_due:
            self._is_due = True
            self._later(self._go_on)

    def _wait(self, under_way: UnderWay, awaited: object) -> None:
        """Goes on with a walk when what it has to wait for is there."""
        is_counted = under_way.peer is None
        self._awaiting += is_counted

        def go_on(error: ResponseError | None) -> None:
            self._awaiting -= is_counted
            if error is None:
                self._add(under_way)
                return
            under_way.steps.close()
            under_way.end(error)

        self.patience.wait(under_way.peer, awaited, go_on)

    def _go_on(self) -> None:
        under_way = self._under_way.popleft()
        try:
            if under_way.peer is not None and not under_way.peer.connected:
                under_way.steps.close()
            else:
                self._take(under_way)
        finally:
            self._is_due = bool(self._under_way)
            if self._is_due:
                self._later(self._go_on)


class UnderWay:
    """Steps that are not all taken yet, and what is called with their outcome."""

    __slots__ = ("ended", "has_ended", "is_in_turns", "peer", "steps")

    def __init__(
        self, steps: Steps[Any], ended: Callable[[Any], object], peer: Peer | None = None
    ) -> None:
        self.steps = steps
        self.ended = ended
        self.peer = peer
        self.has_ended = self.is_in_turns = False

    def end(self, outcome: object) -> None:
        """Tells the outcome."""
        self.has_ended = True
        self.ended(outcome)


def _resolve(pending: PendingReply, outcome: Response | Exception) -> None:
    if isinstance(outcome, PendingReply):
        outcome.then(pending.resolve)
    else:
        pending.resolve(outcome)


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
