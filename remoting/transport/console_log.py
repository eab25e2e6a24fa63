# SPDX-License-Identifier: Apache-2.0
"""Log lines on the console: time, level, where, what.

2026-11-21 08:15:30.123 INFO broker.service: registered with 127.0.0.1:9876
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    formatEvent,
    globalLogBeginner,
    globalLogPublisher,
)
from zope.interface import provider

_NAMES = {"warn": "WARN", "critical": "ERROR"}


def _one_line(text: str) -> str:
    """No peer's text starts a line of its own, which could look like one of ours."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def format_line(event: LogEvent) -> str:
    """One event as text; a failure's traceback follows on lines of its own."""
    seconds = event.get("log_time", 0.0)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    level = event.get("log_level", LogLevel.info).name
    where = str(event.get("log_namespace", "-")).removeprefix("txrocketmq.")
    line = (
        f"{stamp}.{int(seconds * 1000) % 1000:03d} {_NAMES.get(level, level.upper())} {where}: "
        f"{_one_line(formatEvent(event))}"
    )
    failure = event.get("log_failure")
    return f"{line}\n{failure.getTraceback().rstrip()}" if failure is not None else line


def _is_noise(event: LogEvent) -> bool:
    """Twisted's own remarks on ports and its main loop; its warnings are none."""
    space = str(event.get("log_namespace", ""))
    quiet = space.startswith(("twisted.", "log_legacy"))
    return (
        quiet and event.get("log_level", LogLevel.info) < LogLevel.warn and not event.get("isError")
    )


def _write_line(out: TextIO, line: str) -> None:
    try:
        out.write(line + "\n")
    except UnicodeEncodeError:  # a peer's text, or a console that knows ASCII only
        encoding = out.encoding or "ascii"
        out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    out.flush()


def start_logging(stream: TextIO | None = None, level: LogLevel = LogLevel.info) -> None:
    """Sends the process's log to a stream, standard output unless told."""
    out = stream or sys.stdout

    @provider(ILogObserver)
    def observe(event: LogEvent) -> None:
        if _is_noise(event):
            return
        try:
            _write_line(out, format_line(event))
        except (OSError, ValueError):  # nobody reads any more
            globalLogPublisher.removeObserver(filtered)

    filtered = FilteringLogObserver(observe, [LogLevelFilterPredicate(level)])
    globalLogBeginner.beginLoggingTo([filtered], redirectStandardIO=False, discardBuffer=True)
