# SPDX-License-Identifier: Apache-2.0
"""The log of a process, one line for each event: time, level, place, text.

It goes to the console or to a file.

    2026-11-21 08:15:30.123 INFO broker.service: registered with 127.0.0.1:9876

As JSON each line is an object with the same, and with the values that the text was made of:

    {"time": "2026-11-21T08:15:30.123Z", "level": "INFO", "logger": "broker.service", "message":
    "registered with 127.0.0.1:9876", "address": "127.0.0.1:9876"}
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import Any, TextIO

import orjson
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

from txrocketmq.remoting.primitives.plain_text import plain

_NAMES = {"warn": "WARN", "critical": "ERROR"}
_OF_TWISTED = frozenset({"isError", "system", "format", "why", "failure"})
"""What events of Twisted's older log contain besides the values of their text."""


def format_line(event: LogEvent) -> str:
    """Returns an event as text; a failure's traceback follows on lines of its own, indented.

    Control characters are escaped, and no text of a peer begins a line that looks like one of ours.
    """
    seconds = event.get("log_time", 0.0)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    line = (
        f"{stamp}.{int(seconds * 1000) % 1000:03d} {_level(event)} {_where(event)}: "
        f"{plain(formatEvent(event))}"
    )
    failure = event.get("log_failure")
    if failure is None:
        return line
    traceback = plain(failure.getTraceback().rstrip(), keep="\n")
    return f"{line}\n{indent(traceback, '  ')}"


def format_json(event: LogEvent) -> str:
    """Returns an event as a JSON object, with a failure's traceback as a member."""
    stamp = datetime.fromtimestamp(event.get("log_time", 0.0), UTC)
    known = {
        "time": stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": _level(event),
        "logger": _where(event),
        "message": formatEvent(event),
    }
    fields = {
        name: value if isinstance(value, (int, float, bool)) else str(value)
        for name, value in event.items()
        if not name.startswith("log_") and name not in {*known, "traceback", *_OF_TWISTED}
    }
    failure = event.get("log_failure")
    if failure is not None:
        fields["traceback"] = failure.getTraceback().rstrip()
    return orjson.dumps({**known, **fields}, default=str).decode()


def _level(event: LogEvent) -> str:
    level: str = event.get("log_level", LogLevel.info).name
    return _NAMES.get(level, level.upper())


def _where(event: LogEvent) -> str:
    return str(event.get("log_namespace", "-")).removeprefix("txrocketmq.")


FORMATS: dict[str, Callable[[LogEvent], str]] = {"text": format_line, "json": format_json}


def _is_noise(event: LogEvent) -> bool:
    """Returns whether this is one of Twisted's remarks on ports or its main loop, not a warning."""
    space = str(event.get("log_namespace", ""))
    quiet = space.startswith(("twisted.", "log_legacy"))
    return (
        quiet and event.get("log_level", LogLevel.info) < LogLevel.warn and not event.get("isError")
    )


def _write_line(out: TextIO, line: str) -> None:
    try:
        out.write(line + "\n")
    except UnicodeEncodeError:  # a peer's text, or a console for ASCII only
        encoding = out.encoding or "ascii"
        out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    out.flush()


class LogFileStream:
    """A file of log lines as a stream: at `limit_bytes` it becomes FILE.1, that FILE.2, and so on.

    A line that cannot be written, since the disk is full, is lost; the next one is tried again.
    """

    encoding = "utf-8"

    def __init__(self, path: str, limit_bytes: int, kept: int) -> None:
        """Opens or creates the file, and appends to it. Raises OSError."""
        from twisted.python.logfile import LogFile  # noqa: PLC0415 - only with --log-file

        target = Path(path).absolute()
        self._file = LogFile(
            target.name, str(target.parent), rotateLength=limit_bytes, maxRotatedFiles=kept
        )

    def write(self, text: str) -> None:
        """Writes a line."""
        data = text.encode("utf-8", "backslashreplace")
        try:
            self._file.write(data)
        except OSError:
            return

    def flush(self) -> None:
        """Does nothing: each line is written through at once."""


class _Shown:
    """The lowest level that the log of the process shows; None if other code decides that."""

    level: LogLevel | None = None


_shown = _Shown()


def is_shown(level: LogLevel) -> bool:
    """Returns whether events of this level are shown; frequent ones need not be made otherwise."""
    return _shown.level is None or level >= _shown.level


def start_logging(
    stream: TextIO | LogFileStream | None = None,
    level: LogLevel = LogLevel.info,
    form: str = "text",
) -> None:
    """Sends the log of the process to a stream, by default standard output.

    `form` is a key of FORMATS, and `level` the lowest level that is shown.
    """
    out: Any = stream or sys.stdout
    formatted = FORMATS[form]

    @provider(ILogObserver)
    def observe(event: LogEvent) -> None:
        if _is_noise(event):
            return
        try:
            _write_line(out, formatted(event))
        except (OSError, ValueError):  # nobody reads any more
            globalLogPublisher.removeObserver(filtered)

    _shown.level = level
    filtered = FilteringLogObserver(observe, [LogLevelFilterPredicate(level)])
    globalLogBeginner.beginLoggingTo([filtered], redirectStandardIO=False, discardBuffer=True)
