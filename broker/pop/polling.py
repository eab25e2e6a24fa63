# SPDX-License-Identifier: Apache-2.0
"""Pops that found nothing wait here for messages, or until their time is over.

A request waits for a topic and its group, at one queue or at any (-1). A message of the topic wakes
one request of each group; so does a message of the group's retry topics, and a queue popped in
order that is free again. A woken request pops; if messages are left over it wakes the next one, and
if it finds nothing for itself it waits on. So a burst of messages wakes no crowd. Counterpart of
PopLongPollingService and PopRequest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.upkeep.record_dispatch import ArrivalListener, Arrivals
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.message.pop import retry_topic_v1, retry_topic_v2
from txrocketmq.remoting.primitives.listeners import tell_all

ANY_QUEUE: Final = -1
EARLY_MS: Final = 50
"""How long before its client stops waiting a request is answered, in ms."""
SLICE: Final = 200
"""How many requests are run again in one turn of the reactor at most."""
SLICE_S: Final = 0.003
"""How long requests are run in one turn, in seconds."""
_SECOND_MS: Final = 1_000

TopicGroup = tuple[str, str]
"""A topic and a group."""
Woken = tuple[TopicGroup, int | None]
"""A place where a request is to be woken, and for which queue; None: for any queue."""


class PollingResult(Enum):
    """What becomes of a request that asks to wait; the names are the original's."""

    POLLING_SUC = auto()
    POLLING_FULL = auto()
    POLLING_TIMEOUT = auto()
    NOT_POLLING = auto()


@dataclass(slots=True, eq=False)
class PopRequest:
    """A request that waits; `resume` runs it again."""

    peer: Peer
    topic: str
    group: str
    queue_id: int
    deadline_ms: int
    """The steady time at which it is answered at the latest."""
    resume: Callable[[], None]


class Watch:
    """Hears of what arrives for a place while a pop looks at its queues in several turns.

    What arrives in a queue that it has passed is not found by it, and wakes nobody yet.
    """

    def __init__(self, watches: dict[str, dict[Watch, None]], place: TopicGroup) -> None:
        self._watches = watches
        self._topics = _wakes(place)
        self.has_missed = False
        for topic in self._topics:
            watches.setdefault(topic, {})[self] = None

    def end(self) -> None:
        """Hears no more."""
        for topic in self._topics:
            its = self._watches.get(topic, {})
            its.pop(self, None)
            if not its:
                self._watches.pop(topic, None)


class PopPolling:
    """The waiting pops.

    `wake_soon` calls `run_woken` in a later turn of the reactor, and `timer` returns the seconds of
    a clock that nobody sets.
    """

    def __init__(
        self,
        config: BrokerConfig,
        wake_soon: Callable[[Callable[[], None]], object],
        timer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._config = config
        self._wake_soon = wake_soon
        self._timer = timer
        self._is_waking = False
        self._waiting: dict[TopicGroup, dict[int, dict[PopRequest, None]]] = {}
        """Requests by topic and group, and then by queue id, in the order in which they came."""
        self._places: dict[str, dict[TopicGroup, None]] = {}
        """The places that the messages of a topic wake: those of the topic itself, and those of
        which it is a retry topic."""
        self._by_peer: dict[Peer, dict[PopRequest, None]] = {}
        self._by_second: dict[int, dict[PopRequest, None]] = {}
        """Requests by the second of their deadline, without those that are ready."""
        self._count = 0
        self._woken: set[Woken] = set()
        self._to_look: deque[Woken] = deque()
        """The members of `_woken` in order."""
        self._arrived: OrderedDict[tuple[str, int], None] = OrderedDict()
        """The topics and queues in which messages have arrived."""
        self._to_wake: deque[TopicGroup] = deque()
        self._waking: tuple[str, int] = "", ANY_QUEUE
        """The places that are to be woken for an arrival, and its topic and queue."""
        self._ready: deque[PopRequest] = deque()
        self._gone: deque[PopRequest] = deque()
        """Requests of peers that have gone, which are yet to be forgotten."""
        self._watches: dict[str, dict[Watch, None]] = {}

    def __len__(self) -> int:
        return self._count

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """How many requests wait at one queue (-1: at any queue)."""
        return len(self._waiting.get((topic, group), {}).get(queue_id, ()))

    def hold(
        self, request: PopRequest, born_ms: int, poll_ms: int, now_ms: int, steady_ms: int
    ) -> PollingResult:
        """Lets a request wait for `poll_ms` from `born_ms` on, by its client's clock."""
        if poll_ms <= 0:
            return PollingResult.NOT_POLLING
        if self._count >= self._config.max_pop_polling_size:
            return PollingResult.POLLING_FULL
        left_ms = born_ms + poll_ms - EARLY_MS - now_ms
        if left_ms < 0:
            return PollingResult.POLLING_TIMEOUT
        place = request.topic, request.group
        queue = self._waiting.get(place, {}).get(request.queue_id, ())
        if len(queue) > self._config.pop_polling_size:
            return PollingResult.POLLING_FULL
        request.deadline_ms = steady_ms + min(left_ms, poll_ms)
        if place not in self._waiting:
            for topic in _wakes(place):
                self._places.setdefault(topic, {})[place] = None
        self._waiting.setdefault(place, {}).setdefault(request.queue_id, {})[request] = None
        self._by_peer.setdefault(request.peer, {})[request] = None
        second = request.deadline_ms // _SECOND_MS
        self._by_second.setdefault(second, {})[request] = None
        self._count += 1
        return PollingResult.POLLING_SUC

    @property
    def listeners(self) -> tuple[ArrivalListener, ArrivalListener]:
        """What tells the requests that wait, and the watches, of new messages."""
        return (
            ArrivalListener(self._places, self._all_arrived),
            ArrivalListener(self._watches, self._missed),
        )

    def _all_arrived(self, rows: Arrivals) -> None:
        for queue, *_ in rows:
            self.arrived(queue.topic, queue.queue_id, queue.max_offset)

    def _missed(self, rows: Arrivals) -> None:
        for queue, *_ in rows:
            for watch in self._watches.pop(queue.topic, ()):
                watch.has_missed = True

    def arrived(self, topic: str, queue_id: int, max_offset: int) -> None:
        """Wakes requests for messages in a queue; cheap, however many groups wait for them."""
        if topic in self._places:
            self._arrived[topic, queue_id] = None
            self._wake()

    def watch(self, topic: str, group: str) -> Watch:
        """Begins to watch what arrives for a pop that is still looking; see Watch."""
        return Watch(self._watches, (topic, group))

    def notify(self, topic: str, group: str, queue_id: int) -> None:
        """Wakes a request: a group has messages left, or a queue (-1: any) is free again."""
        if (topic, group) in self._waiting:
            self._note(((topic, group), queue_id))
            self._wake()

    def run_woken(self) -> None:
        """Resumes requests whose time is over, and those that were woken; a slice of them."""
        self._is_waking = False
        try:
            self._run_slice()
        finally:  # what raises is over, and the others go on
            if self._ready or self._to_look or self._to_wake or self._arrived or self._gone:
                self._wake()

    def _run_slice(self) -> None:
        end_s = self._timer() + SLICE_S
        for count in range(SLICE):
            if count and self._timer() >= end_s:
                break
            if self._ready:
                self._resume(self._ready.popleft())
            elif self._gone:
                self._forget(self._gone.popleft())
            elif self._to_look:
                place, queue_id = key = self._to_look.popleft()
                self._woken.remove(key)
                self._wake_at(place, queue_id)
            elif self._to_wake:
                self._wake_for_arrival(self._to_wake.popleft())
            elif self._arrived:
                self._waking, _ = self._arrived.popitem(last=False)
                self._to_wake.extend(self._places.get(self._waking[0], ()))
            else:
                break

    def _wake_for_arrival(self, place: TopicGroup) -> None:
        topic, queue_id = self._waking
        # The queues of a retry topic are not those of the topic, so any waiting request will do.
        self._wake_at(place, queue_id if place[0] == topic else None)

    def _wake_at(self, place: TopicGroup, queue_id: int | None) -> None:
        tell_all(partial(self._resume, found) for found in self._choose(place, queue_id))

    def tick(self, steady_ms: int) -> None:
        """Resumes requests whose time is over."""
        this_second = steady_ms // _SECOND_MS
        late = [second for second in self._by_second if second < this_second]
        for second in late:
            self._ready.extend(self._by_second.pop(second))
        now = self._by_second.get(this_second, {})
        due = [request for request in now if request.deadline_ms <= steady_ms]
        for request in due:
            del now[request]
        self._ready.extend(due)
        if self._ready:
            self.run_woken()

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
        """Forgets the requests of a peer that has gone, soon."""
        gone = self._by_peer.pop(peer, None)
        if gone:
            self._gone.extend(gone)
            self._wake()

    def _note(self, woken: Woken) -> None:
        if woken not in self._woken:
            self._woken.add(woken)
            self._to_look.append(woken)

    def _wake(self) -> None:
        if not self._is_waking:
            self._is_waking = True
            self._wake_soon(self.run_woken)

    def _choose(self, place: TopicGroup, queue_id: int | None) -> list[PopRequest]:
        """Chooses whom to wake: a request that waits at any queue, and one at this queue."""
        queues = self._waiting.get(place, {})
        if queue_id is None:
            wanted = [next(iter(queues.values()))] if queues else []
        else:
            ids = {ANY_QUEUE, queue_id}
            wanted = [queues[each] for each in ids if each in queues]
        return [next(iter(requests)) for requests in wanted]

    def _resume(self, request: PopRequest) -> None:
        if request in self._by_peer.get(request.peer, ()):
            self._forget(request)
            request.resume()

    def _forget(self, request: PopRequest) -> None:
        """Removes a request from all tables."""
        place = request.topic, request.group
        queues = self._waiting[place]
        del queues[request.queue_id][request]
        if not queues[request.queue_id]:
            del queues[request.queue_id]
        if not queues:
            del self._waiting[place]
            for topic in _wakes(place):
                del self._places[topic][place]
                if not self._places[topic]:
                    del self._places[topic]
        of_peer = self._by_peer.get(request.peer)
        if of_peer is not None:
            of_peer.pop(request, None)
            if not of_peer:
                del self._by_peer[request.peer]
        second = request.deadline_ms // _SECOND_MS
        in_second = self._by_second.get(second, {})
        in_second.pop(request, None)
        if not in_second:
            self._by_second.pop(second, None)
        self._count -= 1


def _wakes(place: TopicGroup) -> tuple[str, str, str]:
    topic, group = place
    return topic, retry_topic_v1(topic, group), retry_topic_v2(topic, group)
