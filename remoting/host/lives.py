# SPDX-License-Identifier: Apache-2.0
"""The lives of all parts of a server: its service walks the list, and names no part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Beat, Gauge, InThread, Life, Opening, Periodic, Tick

Went = Callable[[str, object], None]
"""Is told that some kind of work went wrong, and why, or that it works again (None)."""
Failed = Callable[[str, Exception], None]
"""Is told what failed, such as "writing topics.json", and why."""
Step = Callable[[], object]


class Lives:
    """The lives, in the order in which they are given.

    `work_of` returns what is done for beats of other kinds than those of life.py; None means that
    it does not have the kind either. Tables are written `in_thread` while the server runs.
    """

    def __init__(
        self,
        lives: Sequence[Life],
        clock: Clock,
        *,
        went: Went,
        in_thread: InThread,
        work_of: Callable[[Periodic], Step | None] = lambda _: None,
    ) -> None:
        self._lives = lives
        self._clock = clock
        self._went = went
        self._in_thread = in_thread
        self._other_work_of = work_of

    def load(self) -> None:
        """Loads the files of all tables; raises what they raise."""
        for life in self._lives:
            if life.table is not None:
                life.table.load()
            life.loads()

    def open(self, opening: Opening) -> list[str]:
        """Has all parts look at what was loaded; returns their warnings."""
        return [warning for life in self._lives for warning in life.opens(opening)]

    def begin(self) -> None:
        """Lets the parts hear of each other, and begins what they do again and again."""
        for life in self._lives:
            for heard in life.hears:
                heard.begin()
            for what, listeners in life.troubles.items():
                listeners.append(partial(self._went, what))
            if life.table is not None:
                saving = life.table.saving
                saving.in_thread = self._in_thread
                saving.later = partial(self._clock.later, 0)
                saving.on_end = partial(self._went, f"writing {saving.name}")
        for life in self._lives:
            for beat in life.beats:
                self._clock.every(beat.period_ms, self._work_of(beat), first_ms=beat.first_ms)

    def _work_of(self, beat: Periodic) -> Step:
        now_ms, steady_ms = self._clock.now_ms, self._clock.steady_ms
        if isinstance(beat, Beat):
            return beat.work
        if isinstance(beat, Tick):
            tick = beat.tick
            return lambda: tick(now_ms(), steady_ms())
        work = self._other_work_of(beat)
        if work is None:
            raise TypeError(f"{beat} is no kind of beat")
        return work

    def forget(self, peer: Peer, steady_ms: int) -> None:
        """Has all parts forget a peer whose connection has ended."""
        for life in self._lives:
            if life.forgets is not None:
                life.forgets(peer, steady_ms)

    def gauges(self) -> list[Gauge]:
        """The gauges of all parts."""
        return [gauge for life in self._lives for gauge in life.gauges]

    def stop(self, now_ms: int, failed: Failed, failures: tuple[type[Exception], ...]) -> None:
        """Ends all parts, the last one first, so that what is only in memory is written.

        One of these `failures` does not stop the rest; any other exception is a defect, and is
        raised.
        """
        for life in reversed(self._lives):
            for what, work in life.stops():
                try:
                    work(now_ms)
                except failures as error:
                    failed(what, error)
