# SPDX-License-Identifier: Apache-2.0
"""Threads in which functions of the program run, such as listeners.

At the end of the program, calls that run may still end within END_S; a listener that hangs does not
keep the program, as it would in the threads of `concurrent.futures`, which Python waits for. So one
Ctrl-C is enough, and the messages of a call that was cut off are delivered again.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar, Final
from weakref import WeakSet

from twisted.logger import Logger

END_S: Final = 3.0
"""How long the end of a program waits for calls that run, from the shutdown of the client on."""

log = Logger()


class FunctionThreads:
    """Up to `most` threads, which are started as they are needed and end after `shutdown`."""

    _all: ClassVar[WeakSet[FunctionThreads]] = WeakSet()

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._numbers = itertools.count()
        self._work: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        """Only threads wait for this: one that woke the others whenever it has nothing to do would
        be woken by them in turn, for ever."""
        self._is_idle = threading.Condition(self._lock)
        self._threads = 0
        self._idle = 0
        self._closed_s: float | None = None
        self._all.add(self)

    @property
    def running(self) -> int:
        """How many calls run."""
        return self._threads - self._idle

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Calls a function in a thread. Raises RuntimeError if there can be none."""
        future: Future[Any] = Future()
        work = (future, function, arguments)
        with self._lock:
            if self._closed_s is not None:
                raise RuntimeError("the client was shut down")
            self._work.append(work)
            if len(self._work) <= self._idle:
                self._has_work.notify()
            elif self._threads < self._most:
                try:
                    self._start_thread()
                except RuntimeError:
                    self._work.remove(work)
                    raise
        return future

    def shutdown(self) -> None:
        """Takes no more calls; the threads end with those that there are."""
        with self._lock:
            self._closed_s = time.monotonic()
            self._has_work.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Waits until no call runs, but not longer; returns whether that is so."""
        with self._lock:
            return self._is_idle.wait_for(lambda: not self.running, timeout_s)

    @classmethod
    def end_program(cls) -> None:
        """Waits for the calls that run, for as long as the end of the program may take."""
        for each in list(cls._all):
            closed_s = each._closed_s  # noqa: SLF001 - of this class
            left_s = END_S if closed_s is None else closed_s + END_S - time.monotonic()
            if not each.wait(max(left_s, 0)):
                log.warn(
                    "the program ends although {count} calls of its functions still run",
                    count=each.running,
                )

    @classmethod
    def forget(cls) -> None:
        """Forgets all threads after a fork, because they are the parent's."""
        cls._all = WeakSet()

    def _start_thread(self) -> None:
        name = f"{self._name}_{next(self._numbers)}"
        threading.Thread(target=self._run, name=name, daemon=True).start()
        self._threads += 1

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._work and not self._wait_for_work():
                    return
                future, function, arguments = self._work.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
                    future.set_exception(error)
            del future, function, arguments  # otherwise they would be kept until the next call

    def _wait_for_work(self) -> bool:
        """Waits for a call, with the lock; returns whether there is one, and the thread goes on."""
        self._idle += 1
        if not self.running:
            self._is_idle.notify_all()
        while not self._work and self._closed_s is None:
            self._has_work.wait()
        self._idle -= 1
        if not self._work:
            self._threads -= 1
        return bool(self._work)
