# SPDX-License-Identifier: Apache-2.0
"""Logs what listeners raise: each kind of error once with its traceback, the rest as a count.

A listener that fails usually fails with every message, so errors of the same type from the same
line are folded: the first is logged at once, and the others of a minute with one line at its end.
The logger is `txrocketmq.client.listener`, which programs may configure.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import PurePath
from types import TracebackType
from typing import Final, NamedTuple

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.topics import DLQ_PREFIX

LOGGER: Final = "txrocketmq.client.listener"
PERIOD_MS: Final = 60_000
"""For how long further errors of a kind are counted before they are told."""
MAX_KINDS: Final = 64
"""How many kinds of errors are told apart at a time; further ones are counted together."""
_AROUND: Final = ("txrocketmq.client.", "twisted.", "concurrent.", "asyncio.", "threading")
"""Modules whose frames come before those of the program."""

Kind = tuple[str, str, int]
"""The type of an error, and the file and the line that raised it."""
_OTHERS: Final[Kind] = ("errors of other kinds", "", 0)

log = Logger(LOGGER)


class Fate(NamedTuple):
    """What becomes of messages that failed, and how many of them become dead letters."""

    then: str = "be delivered again"
    dead_letters: int = 0


_AGAIN: Final = Fate()


class ListenerFailures:
    """The errors of the listener of one consumer."""

    def __init__(self, clock: Clock, group: str) -> None:
        self._clock = clock
        self._group = group
        self._counts: dict[Kind, int] = {}
        """The kinds of this period, with the number of those that were not told."""
        self._dead_letters: dict[Kind, int] = {}
        """How many messages of those that were not told became dead letters."""
        self._period: IDelayedCall | None = None
        self._has_stopped = False
        self._has_told_answer = False

    def tell(
        self,
        messages: Sequence[MessageExt],
        queue: MessageQueue,
        error: Exception,
        fate: Fate = _AGAIN,
    ) -> None:
        """Logs an error, or counts it, with what becomes of the messages: see `fate`."""
        found = _own_frames(error.__traceback__)
        kind = _kind_of(error, found)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = _OTHERS
        if kind in self._counts:
            self._counts[kind] += 1
            self._dead_letters[kind] = self._dead_letters.get(kind, 0) + fate.dead_letters
            if self._has_stopped:
                self._tell_counts()
            return
        self._counts[kind] = 0
        if self._period is None and not self._has_stopped:
            self._period = self._clock.later(PERIOD_MS, self._end_period)
        log.error(
            "the listener of group {group} failed with {what}, which will {then}: {error}",
            group=self._group,
            what=_described(messages, queue),
            then=fate.then,
            error=f"{type(error).__qualname__}: {error}"[:300],
            log_failure=Failure(error, type(error), found),
        )

    def fate(self, messages: Sequence[MessageExt], most: int, delay_level: int = 0) -> Fate:
        """Returns what becomes of messages that failed, if each is delivered again `most` times.

        `delay_level` is what the listener has set: below 0, none of them is delivered again.
        """
        last = sum(delay_level < 0 or each.reconsume_times >= most for each in messages)
        if not last:
            return _AGAIN
        topic = f"the topic {DLQ_PREFIX}{self._group}"
        if last < len(messages):
            then = f"be delivered again, but for {last} of them, which will be in {topic}"
            return Fate(then, last)
        return Fate(f"be {'a dead letter' if last == 1 else 'dead letters'} in {topic}", last)

    def tell_answer(self, listener: str, answer: object, valid: type[enum.Enum]) -> None:
        """Logs once that the listener has returned something that is no status."""
        if self._has_told_answer:
            return
        self._has_told_answer = True
        log.error(
            "the listener {listener} of group {group} returned {answer!r:.80}: these messages count"
            " as failed, and so do all for which it returns anything but None, which is success, or"
            " one of {valid}. This is logged once",
            listener=listener,
            group=self._group,
            answer=answer,
            valid=", ".join(f"{valid.__name__}.{each.name}" for each in valid),
        )

    def stop(self) -> None:
        """Tells what was counted, because the consumer stops.

        Calls that are still running may fail later. That is told at once, without a traceback if
        the kind was told before.
        """
        if self._period is not None and self._period.active():
            self._period.cancel()
        self._period = None
        self._has_stopped = True
        self._tell_counts()

    def _end_period(self) -> None:
        """Tells what was counted; kinds that came again are counted on, and others forgotten."""
        counted = [kind for kind, count in self._counts.items() if count]
        self._tell_counts()
        self._counts = dict.fromkeys(counted, 0)
        self._period = None
        if self._counts:
            self._period = self._clock.later(PERIOD_MS, self._end_period)

    def _tell_counts(self) -> None:
        for kind, count in self._counts.items():
            if count:
                name, path, line = kind
                self._counts[kind] = 0
                dead = self._dead_letters.pop(kind, 0)
                log.error(
                    "the listener of group {group} failed {times} with {name}{where}{dead}",
                    group=self._group,
                    times="once more" if count == 1 else f"{count} more times",
                    name=name,
                    where=f" at {PurePath(path).name}:{line}" if path else "",
                    dead=f"; dead letters in {DLQ_PREFIX}{self._group}: {dead}" if dead else "",
                )


def _described(messages: Sequence[MessageExt], queue: MessageQueue) -> str:
    """Says which messages a call had: the topic, the queue, the offset and the attempt."""
    first = messages[0]
    what = "a message" if len(messages) == 1 else f"{len(messages)} messages, the first one"
    return (
        f"{what} of topic {first.topic}, queue {queue.queue_id} of {queue.broker_name}, offset"
        f" {first.queue_offset}, attempt {first.reconsume_times + 1}"
    )


def _own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Returns a traceback from the program's first frame on."""
    frames = traceback
    while frames is not None:
        if not str(frames.tb_frame.f_globals.get("__name__", "")).startswith(_AROUND):
            return frames
        frames = frames.tb_next
    return traceback


def _kind_of(error: Exception, traceback: TracebackType | None) -> Kind:
    last = traceback
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return type(error).__qualname__, "", 0
    return type(error).__qualname__, last.tb_frame.f_code.co_filename, last.tb_lineno
