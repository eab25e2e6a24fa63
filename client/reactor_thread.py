# SPDX-License-Identifier: Apache-2.0
"""A reactor of the client's own, in a thread: what the faces without Twisted run on.

It is made and never installed, so that a program may have another one, or none. All clients of a
process share it; it starts with the first of them and ends with the last. Functions of the program
run in threads beside it. What is logged goes to Python's logger `txrocketmq`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import CoroutineType
from typing import Any, ClassVar, Final

from twisted.internet.defer import Deferred
from twisted.logger import (
    FilteringLogObserver,
    ILogFilterPredicate,
    LogEvent,
    PredicateResult,
    STDLibLogObserver,
    globalLogPublisher,
)
from twisted.python.failure import Failure
from zope.interface import provider

from txrocketmq.client.course import Course
from txrocketmq.client.crew import Ended, Outbox, ThreadCrew
from txrocketmq.client.handover import Handover
from txrocketmq.client.instances import ClientInstances
from txrocketmq.remoting.transport.clock import Clock

MAX_THREADS: Final = 128
"""Functions of the program that run at the same time, those of all its clients together."""
END_S: Final = 10


class ReactorThread:
    """See the module; `take` and `leave` count those who use it."""

    _lock: ClassVar = threading.Lock()
    _shared: ClassVar[ReactorThread | None] = None

    def __init__(self) -> None:
        self.reactor: Any = new_reactor()
        self.instances = ClientInstances(self.reactor)
        self.functions = ThreadPoolExecutor(MAX_THREADS, "txrocketmq-function")
        self._handover = Handover(self.reactor.callFromThread)
        self._users = 0
        self._pid = os.getpid()
        self._is_over = False
        self._thread = threading.Thread(
            target=self.reactor.run,
            kwargs={"installSignalHandlers": False},
            name="txrocketmq-reactor",
            daemon=True,
        )
        self._thread.start()

    @classmethod
    def take(cls) -> ReactorThread:
        """The thread of this process, which is to be given back by `leave`."""
        with cls._lock:
            if cls._shared is None:
                _log_to_logging()
                cls._shared = cls()
            return cls._shared._counted()  # noqa: SLF001 - of this class

    def _counted(self) -> ReactorThread:
        self._users += 1
        return self

    def leave(self) -> None:
        """One less uses it; the last one ends it."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if ReactorThread._shared is self:
                ReactorThread._shared = None
        self._is_over = True
        self.reactor.callFromThread(self.reactor.stop)
        self.functions.shutdown(wait=False)
        if not self.is_current:
            self._thread.join(END_S)

    @classmethod
    def forget(cls) -> None:
        """After a fork: the thread is the parent's."""
        cls._lock = threading.Lock()
        cls._shared = None

    @property
    def is_current(self) -> bool:
        """Whether this is asked in the thread itself."""
        return threading.current_thread() is self._thread

    @property
    def is_alive(self) -> bool:
        """Whether it is there: it is not in a process that was forked."""
        return self._pid == os.getpid() and not self._is_over

    def begin(self, work: Callable[[], Any], settle: Callable[[Any], None]) -> Callable[[], None]:
        """Begins work in the thread: a function, whose result may be a coroutine.

        `settle` is called there with the result, or with a Failure. The result cancels the work.
        """
        if not self.is_alive:
            raise RuntimeError(
                "the client's thread is not there: a client that was made before a fork cannot be"
                " used after it; make one in the new process"
            )
        running: list[Deferred[Any] | Course] = []

        def run() -> None:
            try:
                result = work()
            except BaseException:  # noqa: BLE001 - it is raised where somebody waits for it
                settle(Failure())
                return
            if isinstance(result, CoroutineType):
                course = Course(result, settle)
                running.append(course)
                course.go_on()
            elif isinstance(result, Deferred):
                running.append(result)
                result.addBoth(settle)
            else:
                settle(result)

        self._handover.call(run)
        return lambda: self._handover.call(_cancel_all, running)

    def ask(self, work: Callable[[], Any]) -> Any:
        """Does work in the thread and waits for it; raises what it raises."""
        if self.is_current:
            raise RuntimeError(
                "this would wait for itself: a hook or a selector runs on the client's own thread,"
                " and may not call the client"
            )
        future: Future[Any] = Future()
        cancel = self.begin(work, lambda outcome: settle_future(future, outcome))
        try:
            return future.result()
        except KeyboardInterrupt:
            cancel()
            raise

    def call_beside(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Calls a function of the program in a thread of its own; to be called in the thread."""
        result: Deferred[Any] = Deferred()

        def done(future: Future[Any]) -> None:
            self._handover.call(settle_deferred, result, future)

        self.functions.submit(function, *arguments).add_done_callback(done)
        return result

    def crew(
        self,
        function: Callable[..., Any],
        most: int,
        ended: Ended,
        clock: Clock,
    ) -> ThreadCrew:
        """Calls a function of the program in such threads, in up to `most` of them."""
        return ThreadCrew(function, most, self.functions.submit, self.outbox(ended), clock)

    def outbox(self, ended: Ended) -> Outbox:
        """Brings what has ended elsewhere to the thread."""
        return Outbox(self._handover.call, ended)


def new_reactor() -> Any:
    """A reactor that is not installed: of the kind that is best here."""
    if sys.platform == "linux":
        from twisted.internet.epollreactor import EPollReactor  # noqa: PLC0415 - not elsewhere

        reactor: Any = EPollReactor()
    else:
        from twisted.internet.selectreactor import SelectReactor  # noqa: PLC0415 - not on Linux

        reactor = SelectReactor()
    reactor._registerAsIOThread = False  # noqa: SLF001 - that thread is the program's own reactor's
    pool = reactor.getThreadPool()  # for looking up names
    pool.threadFactory = _daemon
    return reactor


def _daemon(*arguments: Any, **named: Any) -> threading.Thread:
    return threading.Thread(*arguments, **named, daemon=True)


def settle_future(future: Future[Any], outcome: Any) -> None:
    """Gives a future of the standard library a result or a Failure."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(outcome, Failure):
        future.set_exception(outcome.value)
    else:
        future.set_result(outcome)


def settle_deferred(deferred: Deferred[Any], future: Any) -> None:
    """Gives a Deferred what a future has, of the standard library or of asyncio."""
    if deferred.called:
        return
    if future.cancelled():
        deferred.cancel()
        return
    error = future.exception()
    if error is not None:
        deferred.errback(Failure(error))
    else:
        deferred.callback(future.result())


def _cancel_all(running: list[Deferred[Any] | Course]) -> None:
    for each in running:
        each.cancel()


@provider(ILogFilterPredicate)
def _own(event: LogEvent) -> Any:
    is_own = str(event.get("log_namespace", "")).startswith("txrocketmq.")
    return PredicateResult.yes if is_own else PredicateResult.no


_observer = FilteringLogObserver(STDLibLogObserver("txrocketmq"), [_own])


def _log_to_logging() -> None:
    globalLogPublisher.removeObserver(_observer)
    globalLogPublisher.addObserver(_observer)


os.register_at_fork(after_in_child=ReactorThread.forget)
