# SPDX-License-Identifier: Apache-2.0
"""The reactor that servers and the client's thread run, made for short turns.

Servers install it, and clients do not, since their programs may have a reactor of their own. A
request that is served, or a call that waits, takes a turn or two of it, so each turn leaves out
what nobody needs here. There is no context for Twisted's older log. The time is that of the
monotonic clock. Work that is due before the reactor waits again, such as writing what was gathered,
needs no delayed call.

Where gevent has patched the process, threads are greenlets and `select` has no epoll: the reactor
then waits with the select of gevent, which lets other greenlets run.

It is woken by an eventfd where there is one. This stays open until the last reference to it is
gone: otherwise a lock would have to keep threads from waking a reactor that ends, and the thread
that was woken would wait for that lock.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from twisted.internet.interfaces import IReadDescriptor
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger
from zope.interface import implementer

log = Logger()

_HAS_COUNTERS: Final = hasattr(os, "eventfd")


@implementer(IReadDescriptor)
class Waker:
    """Wakes a reactor from any thread, by a pair of sockets, which every system has."""

    def __init__(self) -> None:
        self._reads, self._writes = socket.socketpair()
        for each in (self._reads, self._writes):
            each.settimeout(0)

    def __del__(self) -> None:
        self._reads.close()
        self._writes.close()

    def wakeUp(self) -> None:  # noqa: N802 - as Twisted calls it
        """Wakes the reactor; may be called in any thread."""
        with suppress(BlockingIOError):  # the buffer is full, so the reactor is being woken anyway
            self._writes.send(b"x")

    def fileno(self) -> int:
        """The descriptor that the reactor watches."""
        return self._reads.fileno()

    def doRead(self) -> None:
        """Empties the socket; called in the reactor's thread."""
        with suppress(BlockingIOError):
            self._reads.recv(8_192)

    def logPrefix(self) -> str:  # noqa: N802 - IReadDescriptor
        """The name in logs."""
        return "waker"

    def connectionLost(self, reason: object) -> None:
        """Does nothing: it is closed when nobody refers to it any more."""


class CounterWaker(Waker):
    """Wakes a reactor by an eventfd of Linux."""

    def __init__(self) -> None:
        self._counter = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __del__(self) -> None:
        os.close(self._counter)

    def wakeUp(self) -> None:  # noqa: N802 - as Twisted calls it
        """See Waker."""
        os.eventfd_write(self._counter, 1)

    def fileno(self) -> int:
        """See Waker."""
        return self._counter

    def doRead(self) -> None:
        """See Waker."""
        try:
            os.eventfd_read(self._counter)
        except BlockingIOError:  # two threads have woken it at the same time
            return


class OwnReactor(PosixReactorBase):
    """See the module; `PosixReactorBase` is the base of Twisted's reactors on POSIX systems."""

    _registerAsIOThread = False  # noqa: N815 - Twisted's
    """Not set, because Twisted's I/O thread is that of the program's own reactor."""

    def __init__(self) -> None:
        self.seconds = time.monotonic
        self._turn_ends: list[Callable[[], object]] = []
        super().__init__()

    def installWaker(self) -> None:  # noqa: N802 - Twisted's
        """See Twisted's."""
        if self.waker is None:
            self.waker = CounterWaker() if _HAS_COUNTERS else Waker()
            self._internalReaders.add(self.waker)
            self.addReader(self.waker)

    def wakeUp(self) -> None:  # noqa: N802 - Twisted's
        """Wakes the reactor; may be called in any thread."""
        waker = self.waker  # `close` may take it away meanwhile
        if waker is not None:
            waker.wakeUp()

    def at_end_of_turn(self, call: Callable[[], object]) -> None:
        """Calls a function in this thread once, when everything due is done, before it waits again.

        Do not stop the reactor in it, because it would wait first.
        """
        self._turn_ends.append(call)

    def runUntilCurrent(self) -> None:  # noqa: N802 - Twisted's
        """See Twisted's."""
        super().runUntilCurrent()
        while self._turn_ends:
            calls, self._turn_ends = self._turn_ends, []
            for call in calls:
                try:
                    call()
                except Exception:  # noqa: BLE001 - the others have nothing to do with it
                    log.failure("the last work of a turn failed")

    def close(self) -> None:
        """Lets go of the waker after the reactor has ended; Twisted would keep it open."""
        waker, self.waker = self.waker, None
        if waker is not None:
            self._internalReaders.discard(waker)
            self.removeReader(waker)


def new_reactor() -> Any:
    """Makes a reactor of the kind that is best on this system, and does not install it."""
    kind: Any = _kind()
    reactor = kind()
    pool = reactor.getThreadPool()  # for looking up names
    pool.threadFactory = _daemon
    return reactor


def install_reactor() -> None:
    """Installs the reactor in the process of a server, unless it has one already."""
    if "twisted.internet.reactor" not in sys.modules:
        from twisted.internet.main import installReactor  # noqa: PLC0415 - not in clients

        installReactor(new_reactor())


def _kind() -> type[OwnReactor]:
    _check_gevent()
    if not hasattr(select, "epoll"):
        from twisted.internet.selectreactor import SelectReactor  # noqa: PLC0415 - seldom needed

        return type("OwnSelectReactor", (OwnReactor, SelectReactor), {})

    from twisted.internet.epollreactor import EPollReactor  # noqa: PLC0415 - not elsewhere

    class OwnEPollReactor(OwnReactor, EPollReactor):
        def doPoll(self, timeout: float | None) -> None:  # noqa: N802 - Twisted's
            ready = self._poller.poll(-1 if timeout is None else timeout, len(self._selectables))
            selectables, read_or_write = self._selectables, self._doReadOrWrite
            for fd, event in ready:
                selectable = selectables.get(fd)  # None: what came before has closed it
                if selectable is not None:
                    read_or_write(selectable, fd, event)  # type: ignore[no-untyped-call]

        doIteration = doPoll  # noqa: N815 - Twisted's

        def close(self) -> None:
            super().close()
            self._poller.close()

    return OwnEPollReactor


def _check_gevent() -> None:
    """Raises RuntimeError where greenlets would never run while the reactor waits."""
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        return
    if not monkey.is_module_patched("select"):
        raise RuntimeError(
            "gevent has patched threading but not select, so the client would stop all greenlets:"
            " call gevent.monkey.patch_all() instead, before anything else is imported"
        )


def _daemon(*arguments: Any, **named: Any) -> threading.Thread:
    return threading.Thread(*arguments, **named, daemon=True)
