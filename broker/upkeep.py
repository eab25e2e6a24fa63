# SPDX-License-Identifier: Apache-2.0
"""Upkeep: what a broker examines from time to time by itself, in steps.

Counters are sampled; expired locks, silent clients and old pops in order are forgotten; queues
follow the log when it has lost a file; routes of other brokers are requested. All of this grows
with topics, groups and clients, so it takes turns with all other work (`broker/work/walks.py`).
Java: the scheduled executors of BrokerStatsManager, ClientHousekeepingService,
ConsumeQueueStore.CleanConsumeQueueService, TopicRouteInfoManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.journal import Journal
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.store.disk.steps import Steps


class Upkeep:
    """Begins each kind of upkeep; `failed` is called when one of them fails unexpectedly."""

    def __init__(
        self,
        parts: Parts,
        journal: Journal,
        steady_ms: Callable[[], int],
        failed: Callable[[str, Exception], None],
    ) -> None:
        self._parts = parts
        self._journal = journal
        self._steady_ms = steady_ms
        self._failed = failed
        self._is_making = False

    def sample(self, day: int) -> None:
        """Samples the counters that are due; `day` is the local date's ordinal."""
        self._run("sampling the counters", self._parts.stats.tick(self._steady_ms(), day))

    def expire(self) -> None:
        """Forgets expired locks, silent clients, and what was popped in order long ago."""
        parts, steady_ms = self._parts, self._steady_ms()
        self._run("forgetting locks", parts.locks.expire(steady_ms))
        for members in (parts.consumers, parts.producers):
            self._run("forgetting clients", self._expired(members.expire(steady_ms)))
        self._run("writing consumerOrderInfo.json", parts.pop.save())

    def follow_log(self) -> None:
        """Lets queues and index begin where the log does."""
        steps = self._parts.store.follow_log()
        if steps is not None:
            self._run("deleting what refers to expired messages", steps)

    def make_files(self) -> None:
        """Makes files of light queues that came into being."""
        steps = None if self._is_making else self._parts.store.make_files()
        if steps is not None:
            self._is_making = True
            self._run("making files of light queues", self._made(steps))

    def _made(self, steps: Steps[None]) -> Steps[None]:
        what = "making files of light queues"
        try:
            yield from steps
            self._journal.went(what, None)
        except OSError as error:
            self._journal.went(what, error)
        finally:
            self._is_making = False

    def refresh_routes(self) -> None:
        """Asks name servers again for the queues of other brokers."""
        self._run("asking for routes", self._parts.routes.refresh())

    def _expired(self, steps: Steps[list[Any]]) -> Steps[None]:
        while True:
            with self._journal.because("their heartbeats did not come"):
                try:
                    next(steps)
                except StopIteration as end:
                    gone = end.value
                    break
            yield
        for peer in gone:
            peer.close()
            yield

    def _run(self, what: str, steps: Steps[Any]) -> None:
        self._parts.walks.run(steps, lambda error: self._failed(what, error))
