# SPDX-License-Identifier: Apache-2.0
"""Long polling: pulls that found nothing wait here for a message, or for their time to be over.

An arrival only marks its queue; `run_woken` then looks at the pulls of all marked queues, so that a
burst of messages wakes each pull once, after the producers have their answers. A pull with a tag
filter is woken only by a message that its filter lets through. Counterpart of
PullRequestHoldService, ManyPullRequest and NotifyMessageArrivingListener.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from txrocketmq.remoting.call import Peer

MAX_PARKED = 100_000
"""Pulls that may wait at once; one more is answered at once, as if its time were over."""

TagCodes = frozenset[int] | None
"""Hashes of the tags that are wanted; None: all."""

Matches = Callable[[str, int, int, int, frozenset[int]], bool]
"""Whether units of (topic, queue_id, from, to) carry one of these tag codes."""


@dataclass(slots=True, eq=False)
class ParkedPull:
    """A pull that waits at `offset`; `resume` runs it again, for the last time."""

    peer: Peer
    topic: str
    queue_id: int
    offset: int
    deadline_ms: int
    tag_codes: TagCodes
    resume: Callable[[], None]


class LongPolling:
    """Parked pulls by queue. `wake_soon` is called when `run_woken` has something to do."""

    def __init__(
        self,
        max_offset: Callable[[str, int], int],
        matches: Matches,
        wake_soon: Callable[[], None],
    ) -> None:
        self._max_offset = max_offset
        self._matches = matches
        self._wake_soon = wake_soon
        self._parked: dict[tuple[str, int], list[ParkedPull]] = {}
        self._woken: dict[tuple[str, int], int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def park(self, pull: ParkedPull) -> bool:
        """Takes a pull in; False when there are too many already."""
        if self._count >= MAX_PARKED:
            return False
        self._parked.setdefault((pull.topic, pull.queue_id), []).append(pull)
        self._count += 1
        return True

    def arrived(self, topic: str, queue_id: int, max_offset: int) -> None:
        """Messages are in a queue, up to `max_offset`; cheap when nobody waits for it."""
        key = (topic, queue_id)
        if key in self._parked:
            if not self._woken:
                self._wake_soon()
            self._woken[key] = max_offset

    def run_woken(self) -> None:
        """Resumes the pulls that what arrived is for."""
        woken, self._woken = self._woken, {}
        for key, max_offset in woken.items():
            self._resume(key, lambda pull, top=max_offset: self._has_news(pull, top))  # type: ignore[misc]

    def tick(self, now_ms: int) -> None:
        """Resumes those whose time is over, and those that an arrival was missed for."""
        for key in list(self._parked):
            top = self._max_offset(*key)
            self._resume(
                key,
                lambda pull, top=top: pull.deadline_ms <= now_ms or self._has_news(pull, top),  # type: ignore[misc]
            )

    def disconnected(self, peer: Peer, now_ms: int) -> None:
        """Forgets the pulls of a peer that has gone."""
        for key, pulls in list(self._parked.items()):
            self._keep(key, [pull for pull in pulls if pull.peer is not peer])

    def resume_all(self, topic: str, queue_id: int) -> None:
        """Resumes every pull of a queue (its topic is deleted, an offset is reset)."""
        self._resume((topic, queue_id), lambda _: True)

    def _resume(self, key: tuple[str, int], wanted: Callable[[ParkedPull], bool]) -> None:
        pulls = self._parked.get(key)
        if not pulls:
            return
        waiting: list[ParkedPull] = []
        ready: list[ParkedPull] = []
        for pull in pulls:
            (ready if wanted(pull) else waiting).append(pull)
        if ready:
            self._keep(key, waiting)
            for pull in ready:
                pull.resume()

    def _keep(self, key: tuple[str, int], waiting: list[ParkedPull]) -> None:
        self._count -= len(self._parked[key]) - len(waiting)
        if waiting:
            self._parked[key] = waiting
        else:
            del self._parked[key]

    def _has_news(self, pull: ParkedPull, top: int) -> bool:
        if top <= pull.offset:
            return False
        if pull.tag_codes is None:
            return True
        if self._matches(pull.topic, pull.queue_id, pull.offset, top, pull.tag_codes):
            return True
        pull.offset = top  # seen, and not for this one
        return False
