# SPDX-License-Identifier: Apache-2.0
"""A reactor of the client's own, in a thread: what the faces without Twisted run on.

It is made and never installed, so that a program may have another one, or none. All clients of a
process share it; it starts with the first of them and ends with the last. Functions of the program
run in threads beside it; when the program ends, no more calls begin. What is logged goes to
Python's loggers (python_log.py).
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from types import CoroutineType
from typing import Any, ClassVar, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.client.thread import python_log
from txrocketmq.client.thread.coroutine import Course
from txrocketmq.client.thread.executor import Ended, Ending, Outbox, ThreadCrew
from txrocketmq.client.thread.function_threads import FunctionThreads
from txrocketmq.client.thread.handover import Handover
from txrocketmq.client.thread.instances import ClientInstances
from txrocketmq.client.thread.pending_calls import Begin, Cancellable
from txrocketmq.client.thread.thread_call import ThreadCall
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.reactor.own_reactor import new_reactor

MAX_THREADS: Final = 128
"""How many functions of the program run at the same time, for all its clients together."""
MAX_WAITING: Final = 1_024
"""How many calls may wait to begin before callers that do not wait for results are held up."""
END_S: Final = 10


class ReactorThread:
    """See the module; `take` and `leave` count those who use it."""

    _lock: ClassVar = threading.Lock()
    _shared: ClassVar[ReactorThread | None] = None

    def __init__(self) -> None:
        self.reactor: Any = new_reactor()
        self.instances = ClientInstances(self.reactor)
        self.functions = FunctionThreads(MAX_THREADS, "txrocketmq-function")
        self._ending = Ending()
        self._handover = Handover(self.reactor.callFromThread)
        self._users = 0
        self._gone = ""
        """Why the thread does not run any more; each call looks here."""
        self._thread = threading.Thread(
            target=self._run,
            name=python_log.THREAD,
            daemon=True,
        )
        self._thread.start()

    def _run(self) -> None:
        self.reactor.run(installSignalHandlers=False)
        self._handover.close()
        self.reactor.close()

    @classmethod
    def take(cls) -> ReactorThread:
        """Returns the thread of this process; `leave` must be called for it in the end."""
        with cls._lock:
            if cls._shared is None:
                python_log.begin(in_thread=True)
                cls._shared = cls()
            return cls._shared._counted()  # noqa: SLF001 - of this class

    def _counted(self) -> ReactorThread:
        self._users += 1
        return self

    def leave(self) -> None:
        """Counts one user less; when none is left, the thread ends."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            self._gone = "shut down"
            if ReactorThread._shared is self:
                ReactorThread._shared = None
        self._handover.call(self.reactor.stop)
        self.functions.shutdown()
        if not self.is_current:
            self._thread.join(END_S)

    @classmethod
    def forget(cls) -> None:
        """Forgets the thread after a fork, because it is the parent's."""
        FunctionThreads.forget()
        cls._lock = threading.Lock()
        shared, cls._shared = cls._shared, None
        if shared is not None:
            shared._gone = "created before os.fork()"  # noqa: SLF001 - of this class

    @classmethod
    def end_calls(cls) -> None:
        """Lets no more functions of the program begin, because it ends; waits for a moment."""
        shared = cls._shared
        if shared is not None:
            shared._ending.has_begun = True  # noqa: SLF001 - of this class
        FunctionThreads.end_program()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.current_thread() is self._thread

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it does not in a process that was forked."""
        return not self._gone

    def begin(self, work: Callable[[], Any], settle: Callable[[Any], None] | None) -> ThreadCall:
        """Begins a function, whose result may be a coroutine; see `hand_over`."""
        return self.hand_over(begin_work, settle, (work,), {})

    def hand_over(
        self,
        begin: Begin,
        settle: Callable[[Any], None] | None,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> ThreadCall:
        """Begins something in the thread; see `Begin`. Raises RuntimeError if it has ended.

        `settle` is called there with the result, or with a Failure. Without it, the caller waits
        with `result_of`.
        """
        if self._gone:
            raise RuntimeError(
                f"the client is not running, since it was {self._gone}: create a new one"
            )
        handover = self._handover
        call = ThreadCall(handover, is_awaited=settle is None)
        handover.call(call.begin, begin, settle, arguments, named)
        return call

    @property
    def is_behind(self) -> bool:
        """Whether so many calls wait to begin that callers should wait as well."""
        return self._handover.waiting >= MAX_WAITING

    def ask(self, work: Callable[[], Any]) -> Any:
        """Does work in the thread and returns its result, or raises its error."""
        self.check_other()
        return self.result_of(self.begin(work, None))

    def check_other(self) -> None:
        """Raises RuntimeError if the caller runs in this thread, which would wait for itself."""
        if self.is_current:
            raise RuntimeError(
                "this would wait for itself: a hook or a selector runs on the client's own thread,"
                " and may not call the client"
            )

    def result_of(self, call: ThreadCall) -> Any:
        """Returns the result of what was handed over without `settle`; Ctrl-C cancels it."""
        try:
            return call.result()
        except KeyboardInterrupt:
            call.cancel()
            call.wait(END_S)  # the cancelled call may have to clean up
            raise

    def call_beside(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Calls a function of the program in a thread of its own; to be called in the thread.

        When the program ends, it is not called, and nobody hears of it.
        """
        result: Deferred[Any] = Deferred()
        if self._ending.has_begun:
            return result

        def done(future: Future[Any]) -> None:
            self._handover.call(settle_deferred, result, future)

        run = copy_context().run  # in which hooks may have set something for the function
        self.functions.submit(run, function, *arguments).add_done_callback(done)
        return result

    def crew(
        self,
        function: Callable[..., Any],
        most: int,
        ended: Ended,
        clock: Clock,
    ) -> ThreadCrew:
        """Makes a crew that calls a function of the program in up to `most` threads."""
        outbox = self.outbox(ended)
        return ThreadCrew(function, most, self.functions.submit, outbox, clock, self._ending)

    def call_there(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function in the thread soon, unless that has ended. Any thread may call it."""
        self._handover.call(function, *arguments)

    def outbox(self, ended: Ended) -> Outbox:
        """Makes an outbox that passes ended errands to the thread."""
        return Outbox(self._handover.call, ended)


def settle_future(future: Future[Any], outcome: Any) -> None:
    """Sets the result or the Failure of a future of the standard library."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(outcome, Failure):
        future.set_exception(outcome.value)
    else:
        future.set_result(outcome)


def settle_deferred(deferred: Deferred[Any], future: Any) -> None:
    """Passes the outcome of a future, of the standard library or of asyncio, to a Deferred."""
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


def begin_work(settle: Callable[[Any], None], work: Callable[[], Any]) -> Cancellable | None:
    """Calls a function, whose result may be a coroutine or a Deferred; see `Begin`."""
    result = work()
    if isinstance(result, CoroutineType):
        return Course(result, settle).begun()
    if isinstance(result, Deferred):
        return result.addBoth(settle)
    settle(result)
    return None


os.register_at_fork(after_in_child=ReactorThread.forget)

# What atexit calls comes after other threads of the program have ended, which may wait for more
# calls. Nothing public is earlier.
getattr(threading, "_register_atexit", atexit.register)(ReactorThread.end_calls)
