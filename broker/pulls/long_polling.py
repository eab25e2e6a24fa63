# SPDX-License-Identifier: Apache-2.0
"""Long polling: pulls that found nothing wait here for a message, or until their time is over.

A request waits at an offset of a queue, with a deadline and a filter. An arrival only marks its
queue; `run_woken` then looks at the requests that wait there, so that a burst of messages wakes
each of them once, after the producers have their answers. A request with a filter is woken only by
a message that its filter accepts.

Nothing here iterates over all requests: they are found by queue, by the second of their deadline
and by their peer. When many wait for the same thing, they are handled in slices, one in each turn
of the reactor; so are the messages that arrived, if a filter has much to do with them. Filters that
are the same object judge each message once, however many requests have them.

Counterpart of PullRequestHoldService, ManyPullRequest and NotifyMessageArrivingListener.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from txrocketmq.broker.filter.expression import NotCompiled
from txrocketmq.broker.pulls.message_filter import ALL, MessageFilter
from txrocketmq.broker.store.get.get_result import PropertiesFilter
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.store.upkeep.record_dispatch import ArrivalListener, Arrivals
from txrocketmq.broker.work.life import SECOND_MS, Hears, Life, Tick
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import record_properties

MAX_HELD: Final = 100_000
"""How many requests may wait. A further one is answered at once, as if its time were over."""
SLICE: Final = 500
"""How many requests are looked at in one turn of the reactor at most."""
SLICE_S: Final = 0.003
"""How long requests are looked at and run in one turn, in seconds."""
_MAX_VERDICTS: Final = 10_000
"""How many verdicts of filters are kept; beyond this they begin anew."""
_CHECKED_QUEUES: Final = 1_000
"""How many queues one tick checks for arrivals that were not announced."""
_MOST_UNITS: Final = 2_000
"""A request for which more messages than this arrived is run again without asking its filter."""
_UNITS: Final = 200
"""How many units of one request are looked at without a pause."""
_SECOND_MS: Final = 1_000

Key = tuple[str, int]
"""A topic and a queue id."""


class Queues(Protocol):
    """What long polling needs of the store."""

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The offset after the queue's last message."""

    def queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> Iterable[Unit]:
        """The units of `count` messages of the queue from `offset` on."""

    def message_at(self, physical_offset: int, size: int | None = None) -> memoryview | None:
        """The record at a log offset; None when there is none."""


@dataclass(slots=True, eq=False)
class HeldRequest:
    """A request that waits at `offset`; `resume` runs it for the last time."""

    peer: Peer
    topic: str
    queue_id: int
    offset: int
    deadline_ms: int
    resume: Callable[[], None]
    filter: MessageFilter = ALL


@dataclass(slots=True)
class _HeldOfQueue:
    """The requests that wait for one queue; arrivals below the offset `top` were dealt with."""

    top: int
    requests: dict[HeldRequest, None] = field(default_factory=dict)


class LongPolling:
    """All held requests.

    `wake_soon` has `run_woken` called in a later turn of the reactor, and `timer` returns the
    seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        queues: Queues,
        wake_soon: Callable[[], None],
        timer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._queues = queues
        self._wake_soon = wake_soon
        self._timer = timer
        self._end_s = 0.0
        self._is_waking = False
        self._held: dict[Key, _HeldOfQueue] = {}
        self._by_peer: dict[Peer, dict[HeldRequest, None]] = {}
        self._by_second: dict[int, dict[HeldRequest, None]] = {}
        """The requests by the second of their deadline."""
        self._next_second = 0
        """All requests with a deadline before this second were resumed."""
        self._count = 0
        self._woken: dict[Key, int] = {}
        """Queues with arrivals, and the offset after the newest message of each."""
        self._to_look: deque[Key] = deque()
        """The queues of `_woken` in order: removing the first key of a long dict would be slow."""
        self._looked_at: deque[HeldRequest] = deque()
        """Requests that are to be looked at, since something arrived in their queues."""
        self._ready: deque[HeldRequest] = deque()
        self._unchecked: list[Key] = []
        self._to_end: list[Key] = []
        """Queues whose requests are all to be resumed."""
        self._gone: deque[HeldRequest] = deque()
        """Requests of peers that have gone, which are yet to be forgotten."""
        self._verdicts: dict[tuple[PropertiesFilter, int], bool] = {}
        """Whether a filter wants the message at a log offset, while requests are looked at."""
        self._text: tuple[int, str | None] = -1, None
        """The properties of the message that was looked at last, and its log offset."""

    def __len__(self) -> int:
        return self._count

    def hold(self, request: HeldRequest) -> bool:
        """Lets a request wait; returns False when too many requests wait already."""
        if self._count >= MAX_HELD:
            return False
        key = request.topic, request.queue_id
        of_queue = self._held.get(key)
        if of_queue is None:
            of_queue = self._held[key] = _HeldOfQueue(request.offset)
        elif request.offset < of_queue.top:
            of_queue.top = request.offset
        of_queue.requests[request] = None
        self._by_peer.setdefault(request.peer, {})[request] = None
        second = request.deadline_ms // _SECOND_MS
        self._by_second.setdefault(second, {})[request] = None
        if second < self._next_second:  # noqa: PLR1730 - for each pull that waits
            self._next_second = second
        self._count += 1
        return True

    @property
    def listener(self) -> ArrivalListener:
        """What tells the held pulls of new messages."""
        return ArrivalListener(self._held, self._all_arrived)

    def _all_arrived(self, rows: Arrivals) -> None:
        for queue, *_ in rows:
            self.arrived(queue.topic, queue.queue_id, queue.max_offset)

    def arrived(self, topic: str, queue_id: int, max_offset: int) -> None:
        """Notes that a queue has messages up to `max_offset`; cheap if nobody waits for it."""
        key = (topic, queue_id)
        if key in self._held:
            self._note(key, max_offset)
            self._wake()

    def run_woken(self) -> None:
        """Resumes requests that are due, and requests that select what arrived; a slice of them."""
        self._is_waking = False
        is_all = False
        try:
            is_all = self._run_slice()
        finally:  # what raises is over, and the others go on
            if not is_all and (
                self._ready or self._looked_at or self._to_look or self._gone or self._to_end
            ):
                self._wake()

    def _run_slice(self) -> bool:
        """Returns whether nothing is left to be done."""
        end_s = self._end_s = self._timer() + SLICE_S
        looked_at, is_all = self._looked_at, False
        for _ in range(SLICE):
            if self._ready:
                self._resume(self._ready.popleft())
            elif looked_at:
                request = looked_at.popleft()
                try:
                    has_news = self._has_news(request)
                except Exception:
                    self._ready.append(request)  # the answer to its pull says what is wrong
                    raise
                if has_news:
                    self._resume(request)
                elif has_news is None:
                    looked_at.append(request)  # all others have their turn first
            elif self._to_look:
                key = self._to_look.popleft()
                self._look(key, self._woken.pop(key))
                continue  # that takes no time
            elif self._gone:
                self._forget(self._gone.popleft())
            elif self._to_end:
                of_queue = self._held.get(self._to_end.pop())
                self._ready.extend(() if of_queue is None else of_queue.requests)
            else:
                is_all = True
                break
            if self._timer() >= end_s:
                break
        if self._verdicts and not looked_at:
            self._verdicts.clear()
        return is_all

    def tick(self, steady_ms: int) -> None:
        """Resumes requests whose time is over, and finds missed arrivals, some queues at a time."""
        self._take_due(steady_ms)
        if not self._unchecked:
            self._unchecked = list(self._held)
        for _ in range(min(_CHECKED_QUEUES, len(self._unchecked))):
            key = self._unchecked.pop()
            of_queue = self._held.get(key)
            if of_queue is not None and (top := self._queues.max_offset(*key)) > of_queue.top:
                self._note(key, top)
        self.run_woken()

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
        """Forgets the requests of a peer that has gone, soon."""
        gone = self._by_peer.pop(peer, None)
        if gone:
            self._gone.extend(gone)
            self._wake()

    def life(self, on_arrivals: list[ArrivalListener]) -> Life:
        """Requests end when messages arrive, when their time is over, or when their peers go."""
        return Life(
            "held pulls",
            hears=(Hears(on_arrivals, self.listener),),
            beats=(Tick(SECOND_MS, lambda _, steady_ms: self.tick(steady_ms)),),
            forgets=self.disconnected,
        )

    def resume_all(self, topic: str, queue_id: int) -> None:
        """Resumes every request for a queue (its topic is deleted, an offset is reset), a slice of
        them at once.
        """
        of_queue = self._held.get((topic, queue_id))
        if of_queue is not None:
            self._ready.extend(of_queue.requests)
            self.run_woken()

    def resume_held(self) -> None:
        """Resumes all requests, a slice of them at once: they are to be sent somewhere else."""
        self._to_end = list(self._held)
        self.run_woken()

    def _note(self, key: Key, top: int) -> None:
        if key not in self._woken:
            self._to_look.append(key)
        self._woken[key] = top

    def _wake(self) -> None:
        if not self._is_waking:
            self._is_waking = True
            self._wake_soon()

    def _take_due(self, steady_ms: int) -> None:
        """Marks the requests whose deadline has come as ready to be resumed."""
        this_second = steady_ms // _SECOND_MS
        seconds: Iterable[int] = range(self._next_second, this_second)
        if this_second - self._next_second > len(self._by_second):
            seconds = sorted(second for second in self._by_second if second < this_second)
        for second in seconds:
            self._ready.extend(self._by_second.get(second, ()))
        self._next_second = this_second
        self._ready.extend(
            request
            for request in self._by_second.get(this_second, ())
            if request.deadline_ms <= steady_ms
        )

    def _look(self, key: Key, top: int) -> None:
        of_queue = self._held.get(key)
        if of_queue is not None:
            of_queue.top = top
            self._looked_at.extend(of_queue.requests)

    def _resume(self, request: HeldRequest) -> None:
        if request in self._by_peer.get(request.peer, ()):
            self._forget(request)
            request.resume()

    def _forget(self, request: HeldRequest) -> None:
        """Removes a request from all tables."""
        key, second = (request.topic, request.queue_id), request.deadline_ms // _SECOND_MS
        del self._held[key].requests[request]
        if not self._held[key].requests:
            del self._held[key]
        of_peer = self._by_peer.get(request.peer)
        if of_peer is not None:
            of_peer.pop(request, None)
            if not of_peer:
                del self._by_peer[request.peer]
        del self._by_second[second][request]
        if not self._by_second[second]:
            del self._by_second[second]
        self._count -= 1

    def _has_news(self, request: HeldRequest) -> bool | None:
        """Whether a new message is wanted by the request; None if more are to be looked at.

        The request then waits behind the messages that are not for it.
        """
        topic, queue_id, offset = request.topic, request.queue_id, request.offset
        of_queue = self._held.get((topic, queue_id))
        if of_queue is None or request not in of_queue.requests or of_queue.top <= offset:
            return False
        count = of_queue.top - offset
        wanted = request.filter
        if wanted == ALL or count > _MOST_UNITS:
            return True
        for unit in self._queues.queue_units(topic, queue_id, offset, min(count, _UNITS)):
            if wanted.wants(unit):
                if wanted.by_properties is None or self._wants(wanted, unit):
                    return True
                request.offset += 1
                if self._timer() >= self._end_s:
                    return None if request.offset < of_queue.top else False
            else:
                request.offset += 1
        request.offset = offset + min(count, _UNITS)  # seen, and not for this one
        return None if count > _UNITS else False

    def _wants(self, wanted: MessageFilter, unit: Unit) -> bool:
        """Whether a filter wants a message by its properties; True if there is no telling."""
        assert wanted.by_properties is not None
        key = wanted.by_properties, unit.physical_offset
        found = self._verdicts.get(key)
        if found is None:
            text = self._properties(unit)
            try:
                found = text is None or wanted.by_properties.wants(text)
            except (NotCompiled, ResponseError):
                return True  # the request waits for the expression, or is refused
            if len(self._verdicts) >= _MAX_VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = found
        return found

    def _properties(self, unit: Unit) -> str | None:
        if self._text[0] != unit.physical_offset:
            record = self._queues.message_at(unit.physical_offset, unit.size_bytes)
            text = None if record is None else record_properties(record)
            self._text = unit.physical_offset, text
        return self._text[1]
