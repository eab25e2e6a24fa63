# SPDX-License-Identifier: Apache-2.0
"""Pops that found nothing wait here for messages, or for the end of their time.

One waits for a topic and its group, at one queue or at any (-1). A message of the topic wakes one
of each group; so does one of the group's retry topics, and a queue popped in order that is free
again. Whoever is woken pops; if more is left than it may have, it wakes the next, and if it finds
nothing for itself it waits on. So a burst of messages wakes no crowd. Counterpart of
PopLongPollingService and PopRequest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from txrocketmq.broker.config import BrokerConfig
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.message.pop import retry_topic_v1, retry_topic_v2

ANY_QUEUE: Final = -1
EARLY_MS: Final = 50
"""A request is answered so long before the time at which its client stops waiting."""
SLICE: Final = 200
"""So many requests are run again in one turn."""
_SECOND_MS: Final = 1_000

Place = tuple[str, str]
"""Topic and group."""
Woken = tuple[Place, int | None]
"""Who is to look, and at which queue."""


class PollingResult(Enum):
    """What becomes of a request that would wait; the names are the original's."""

    POLLING_SUC = auto()
    POLLING_FULL = auto()
    POLLING_TIMEOUT = auto()
    NOT_POLLING = auto()


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits; `resume` runs it again."""

    peer: Peer
    topic: str
    group: str
    queue_id: int
    deadline_ms: int
    """Steady time."""
    resume: Callable[[], None]


class PopPolling:
    """The waiting pops. `wake_soon` calls `run_woken` in a later turn of the reactor."""

    def __init__(
        self, config: BrokerConfig, wake_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self._config = config
        self._wake_soon = wake_soon
        self._is_waking = False
        self._waiting: dict[Place, dict[int, dict[Waiting, None]]] = {}
        """By topic and group, then by queue id, in the order in which they came."""
        self._places: dict[str, dict[Place, None]] = {}
        """By topics whose messages wake: the topic itself, and the group's retry topics."""
        self._by_peer: dict[Peer, dict[Waiting, None]] = {}
        self._by_second: dict[int, dict[Waiting, None]] = {}
        """By the second of their deadline; those that are ready are there no more."""
        self._count = 0
        self._woken: set[Woken] = set()
        self._to_look: deque[Woken] = deque()
        """The same in order: to take the first out of a long dict looks for it each time."""
        self._ready: deque[Waiting] = deque()

    def __len__(self) -> int:
        return self._count

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """How many wait at one queue (-1: at any)."""
        return len(self._waiting.get((topic, group), {}).get(queue_id, ()))

    def hold(
        self, request: Waiting, born_ms: int, poll_ms: int, now_ms: int, steady_ms: int
    ) -> PollingResult:
        """Takes a request in that was made at `born_ms` by its client's clock, for `poll_ms`."""
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

    def arrived(self, topic: str, queue_id: int, max_offset: int) -> None:
        """Messages are in a queue; cheap when nobody waits for them."""
        places = self._places.get(topic)
        if places is not None:
            for place in places:
                # A retry topic's queue is none of the topic's, so any waiting request will do.
                self._note((place, queue_id if place[0] == topic else None))
            self._wake()

    def notify(self, topic: str, group: str, queue_id: int) -> None:
        """Something is left, or free again, for a group at a queue (-1: at any)."""
        if (topic, group) in self._waiting:
            self._note(((topic, group), queue_id))
            self._wake()

    def run_woken(self) -> None:
        """Resumes those whose time is over, and one for each that was told of; a slice of them."""
        self._is_waking = False
        for _ in range(SLICE):
            if self._ready:
                self._resume(self._ready.popleft())
            elif self._to_look:
                place, queue_id = key = self._to_look.popleft()
                self._woken.remove(key)
                for found in self._choose(place, queue_id):
                    self._resume(found)
            else:
                return
        if self._ready or self._to_look:
            self._wake()

    def tick(self, steady_ms: int) -> None:
        """Resumes those whose time is over."""
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
        """Forgets the requests of a peer that has gone."""
        for request in list(self._by_peer.get(peer, ())):
            self._forget(request)

    def _note(self, woken: Woken) -> None:
        if woken not in self._woken:
            self._woken.add(woken)
            self._to_look.append(woken)

    def _wake(self) -> None:
        if not self._is_waking:
            self._is_waking = True
            self._wake_soon(self.run_woken)

    def _choose(self, place: Place, queue_id: int | None) -> list[Waiting]:
        """Who is to look: one that waits at any queue, and one that waits at this one."""
        queues = self._waiting.get(place, {})
        if queue_id is None:
            wanted = [next(iter(queues.values()))] if queues else []
        else:
            ids = {ANY_QUEUE, queue_id}
            wanted = [queues[each] for each in ids if each in queues]
        return [next(iter(requests)) for requests in wanted]

    def _resume(self, request: Waiting) -> None:
        if request in self._by_peer.get(request.peer, ()):
            self._forget(request)
            request.resume()

    def _forget(self, request: Waiting) -> None:
        """Takes a request out of all tables."""
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
        del self._by_peer[request.peer][request]
        if not self._by_peer[request.peer]:
            del self._by_peer[request.peer]
        second = request.deadline_ms // _SECOND_MS
        in_second = self._by_second.get(second, {})
        in_second.pop(request, None)
        if not in_second:
            self._by_second.pop(second, None)
        self._count -= 1


def _wakes(place: Place) -> tuple[str, str, str]:
    topic, group = place
    return topic, retry_topic_v1(topic, group), retry_topic_v2(topic, group)
