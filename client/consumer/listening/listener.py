# SPDX-License-Identifier: Apache-2.0
"""The listeners that a push consumer calls with messages, and what they may return.

A listener is a function, or a coroutine function, of some messages of one queue and their context.
`orderly` marks one that gets the messages of a queue in their order, one batch after the other.

Java: MessageListenerConcurrently and MessageListenerOrderly with their contexts and statuses.
"""

from __future__ import annotations

import enum
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from txrocketmq.client.consumer.listening.listener_failures import ListenerFailures
from txrocketmq.client.thread.executor import Crew, Elsewhere, Ended, Outbox, ThreadCrew
from txrocketmq.remoting.arguments.kinds import shown
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

_ORDERLY: Final = "_txrocketmq_orderly"

log = Logger()


class ConsumeStatus(enum.Enum):
    """Whether messages were consumed, or are to be delivered again later."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"
    """The messages are delivered again, after longer delays, and become dead letters in the end."""


class ConsumeOrderlyStatus(enum.Enum):
    """Whether messages that are consumed in order were consumed.

    COMMIT and ROLLBACK are for listeners that set `auto_commit` of the context to False: such a
    listener returns SUCCESS until it decides with COMMIT or ROLLBACK about everything since its
    last decision.
    """

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    """The messages are delivered again after a moment, before anything else of their queue."""
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


@dataclass(slots=True)
class ConsumeContext:
    """The context of a call; the listener may change the last two fields."""

    queue: MessageQueue
    delay_level: int = 0
    """The delay level after which messages that failed are delivered again; 0 means later each
    time, -1 never."""
    ack_index: int | None = None
    """The index of the last message that succeeded, if not all did; None means that all did."""


@dataclass(slots=True)
class ConsumeOrderlyContext:
    """The context of a call in order; the listener may change the last two fields."""

    queue: MessageQueue
    auto_commit: bool = True
    """Whether SUCCESS commits; if not, the listener has to return COMMIT."""
    suspend_ms: int = -1
    """How long the queue rests after messages that failed, 10 to 30,000; -1 means as configured."""


Listener = Callable[
    [list[MessageExt], ConsumeContext],
    "ConsumeStatus | Awaitable[ConsumeStatus | None] | None",
]
"""Consumes messages of one queue. Returning None is success, raising anything RECONSUME_LATER."""

OrderlyListener = Callable[
    [list[MessageExt], ConsumeOrderlyContext],
    "ConsumeOrderlyStatus | Awaitable[ConsumeOrderlyStatus | None] | None",
]
"""Consumes messages in order. Raising anything is SUSPEND_CURRENT_QUEUE_A_MOMENT."""

Around = Callable[[Callable[[], Any], list[MessageExt], MessageQueue], Any]
"""Makes a call of the listener with these messages, and returns its answer."""

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", ConsumeStatus, ConsumeOrderlyStatus)


def orderly(listener: F) -> F:
    """Marks a listener, as a decorator, that consumes the messages of each queue in order.

    Raises TypeError for what is no function, or takes no mark, as a bound method.
    """
    try:
        setattr(listener, _ORDERLY, True)
    except AttributeError:
        raise TypeError(
            f"listener must be a function, not {shown('listener', listener)}: mark the function in"
            " the class, or give orderly=True to the consumer"
        ) from None
    return listener


def is_orderly(listener: Callable[..., Any]) -> bool:
    """Whether a listener is marked with `orderly`."""
    return bool(getattr(listener, _ORDERLY, False))


def tell(listener: Callable[..., Any], *news: Any) -> None:
    """Notifies a function of the program: nobody waits for it, and an error is logged."""
    telling = maybeDeferred(listener, *news)
    telling.addErrback(lambda failure: log.failure("a listener of queues failed", failure))


class Calls:
    """Calls a listener: where the client runs or, if it may block, in one of some threads.

    Coroutine functions are always called where the client runs, since they only wait.
    """

    def __init__(
        self,
        clock: Clock,
        listener: Callable[..., Any],
        threads: int,
        name_of: Callable[[str], str] | None = None,
        group: str = "",
    ) -> None:
        """`name_of` returns the name of a topic as the program uses it; `group` is for the log."""
        self.failures = ListenerFailures(clock, group)
        self._clock = clock
        self._listener = listener
        self._name_of = name_of
        self.around: Around | None = None
        """Wraps each call of the listener, for hooks; None if there are none."""
        self._pool: ThreadPool | None = None
        self.is_calling = False
        """Whether the listener is being called in the client's own thread at this moment."""
        if threads and not is_coroutine(listener) and not isinstance(listener, Elsewhere):
            pool: Any = ThreadPool(0, threads, "consume")
            pool.threadFactory = _daemon
            self._pool = pool

    def start(self) -> None:
        """Starts the threads, if listeners run in threads."""
        if self._pool is not None:
            self._pool.start()

    def stop(self) -> None:
        """Ends the threads as soon as they have nothing left to do."""
        self.failures.stop()
        if self._pool is not None and self._pool.started:
            self._pool.adjustPoolsize(0, 0)
            # It waits for calls that run, so nobody may wait for its own thread.
            _daemon(target=self._pool.stop).start()

    def crew(self, most: int, ended: Ended) -> Crew | None:
        """Returns a crew for up to `most` calls at once, or None if calls are made here."""
        if isinstance(self._listener, Elsewhere):
            return self._listener.crew(most, ended, self._clock)
        if self._pool is None:
            return None
        outbox = Outbox(self._clock.reactor.callFromThread, ended)
        submit = self._pool.callInThread
        return ThreadCrew(self._listener, most, submit, outbox, self._clock)

    def prepare(self, messages: Sequence[MessageExt]) -> None:
        """Names the topics as the program uses them, before a crew has the messages."""
        if self._name_of is not None:
            self._rename(messages, self._name_of)

    def call(self, messages: list[MessageExt], context: Any) -> Any:
        """Calls the listener; returns its answer or an awaitable, or raises what it raises."""
        if self.around is None:
            return self.call_unseen(messages, context)
        if self._name_of is not None:
            self._rename(messages, self._name_of)
        call = partial(self.call_unseen, messages, context)
        return self.around(call, messages, context.queue)

    def call_unseen(self, messages: list[MessageExt], context: Any) -> Any:
        """Calls the listener without the hooks."""
        if self._name_of is not None:
            self._rename(messages, self._name_of)
        if self._pool is None:
            self.is_calling = True
            try:
                return self._listener(messages, context)
            finally:
                self.is_calling = False
        return deferToThreadPool(
            self._clock.reactor, self._pool, self._listener, messages, context
        ).addCallback(_awaited)

    async def status(self, answer: Any, failed: S) -> S | None:
        """Returns the status that the listener answered with, or waits for it; None is success.

        Any other answer counts as `failed`, as null does in Java. That is logged once, because it
        will be the same with the next message.
        """
        if hasattr(answer, "__await__"):
            answer = await answer
        if answer is None or isinstance(answer, type(failed)):
            return answer
        its = getattr(self._listener, "__qualname__", type(self._listener).__name__)
        self.failures.tell_answer(its, answer, type(failed))
        return failed

    @staticmethod
    def _rename(messages: Sequence[MessageExt], name_of: Callable[[str], str]) -> None:
        for message in messages:
            message.topic = name_of(message.topic)


def _daemon(*arguments: Any, **named: Any) -> threading.Thread:
    """Makes a thread that does not keep the program from ending if a listener hangs."""
    return threading.Thread(*arguments, **named, daemon=True)


def is_coroutine(listener: Callable[..., Any]) -> bool:
    """Whether a listener is a coroutine function, or an object that is called as one."""
    called = getattr(listener, "__call__", None)  # noqa: B004 - of an object's class
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(called)


def _awaited(answer: Any) -> Any:
    """Wraps the answer of a plain function if it is a Deferred."""
    return maybeDeferred(lambda: answer) if isinstance(answer, Deferred) else answer
