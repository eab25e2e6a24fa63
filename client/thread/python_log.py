# SPDX-License-Identifier: Apache-2.0
"""What the client logs goes to Python's `logging`, each line once.

Modules log with `twisted.logger`, as servers do. In a program that has not begun a log of Twisted,
Twisted writes critical events to standard error by itself; the client's own would appear there a
second time. So the client's events, and all others of its thread, are passed on to the logger of
their namespace, and kept from there. They still reach a log of Twisted that the program begins.

A client for Twisted logs where the program does: to Twisted's log if that has begun, and to
`logging` otherwise.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Final

from twisted.logger import (
    ILogObserver,
    LogEvent,
    LogLevel,
    formatEvent,
    globalLogBeginner,
    globalLogPublisher,
)
from zope.interface import implementer

THREAD: Final = "txrocketmq-reactor"
"""The name of the client's thread."""
ROOT: Final = "txrocketmq"
_LEVELS: Final = {
    LogLevel.debug: logging.DEBUG,
    LogLevel.info: logging.INFO,
    LogLevel.warn: logging.WARNING,
    LogLevel.error: logging.ERROR,
    LogLevel.critical: logging.ERROR,  # what fails here does not end the program
}


def is_own(event: LogEvent) -> bool:
    """Whether an event is the client's: by its namespace, or by the thread in which it happened."""
    namespace = str(event.get("log_namespace", ""))
    return namespace.startswith(f"{ROOT}.") or threading.current_thread().name == THREAD


@implementer(ILogObserver)
class PythonLog:
    """Passes the client's events on to Python's loggers."""

    def __init__(self) -> None:
        self.is_for_threads = False
        """Whether a client runs in a thread; otherwise a log of Twisted has precedence."""

    def __call__(self, event: LogEvent) -> None:
        if not is_own(event) or (_first_observer() is None and not self.is_for_threads):
            return
        level = _LEVELS.get(event.get("log_level", LogLevel.info), logging.INFO)
        namespace = str(event.get("log_namespace", ROOT))
        if not namespace.startswith(ROOT):  # of Twisted's own, in the client's thread
            if level < logging.WARNING:
                return
            namespace = f"{ROOT}.{namespace}"
        logger = logging.getLogger(namespace)
        if not logger.isEnabledFor(level):
            return
        failure: Any = event.get("log_failure")
        error = (
            None
            if failure is None
            else (
                failure.type,
                failure.value,
                failure.getTracebackObject(),
            )
        )
        text = formatEvent(event) or "it failed"
        logger.log(level, "%s", text, exc_info=error)


_observer: Final = PythonLog()


def begin(*, in_thread: bool) -> None:
    """Begins to pass events on, unless that has begun."""
    _observer.is_for_threads |= in_thread
    globalLogPublisher.removeObserver(_observer)
    globalLogPublisher.addObserver(_observer)
    first = _first_observer()
    if first is not None and not isinstance(first, _Others):
        others = _Others(first)
        globalLogPublisher.removeObserver(first)
        globalLogPublisher.addObserver(others)
        globalLogBeginner._temporaryObserver = others  # noqa: SLF001 - which takes it away


def _first_observer() -> Any:
    """Returns Twisted's observer of the time before a log begins, or None after that."""
    return getattr(globalLogBeginner, "_temporaryObserver", None)


@implementer(ILogObserver)
class _Others:
    """Passes events of others to Twisted's observer of the time before a log begins."""

    def __init__(self, first: ILogObserver) -> None:
        self._first = first

    def __call__(self, event: LogEvent) -> None:
        if not is_own(event):
            self._first(event)
