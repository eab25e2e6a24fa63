# SPDX-License-Identifier: Apache-2.0
"""Until when the messages of each full file of the timer log are due: a small file of our own.

A file of that log whose messages are all delivered need not be read when a store is opened. These
are no more than notes: a note counts only for a file of the log that begins and ends like the one
that it was written for; what is missing, or has a wrong checksum, is found out again.

Java: has no counterpart; original brokers leave the file alone.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

import orjson

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.remoting.primitives.checksum import crc32

_VERSION: Final = 1

Mark = int
"""The checksum of the first and the last unit of a file."""


class TimerDues:
    """Notes about files of the timer log, by the offsets at which these begin."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self._table: dict[int, tuple[int, Mark]] = {}
        self._is_changed = False

    def load(self) -> None:
        """Loads the notes; there are none when the file is missing or invalid."""
        self._table = {}
        self._is_changed = False
        if not self._files.exists(self.path):
            return
        try:
            values: dict[str, Any] = orjson.loads(self._files.read(self.path))
            rows = values["files"]
            if values["version"] != _VERSION or values["check"] != _check(rows):
                return
            self._table = {begin: (due_ms, mark) for begin, due_ms, mark in rows}
        except (ValueError, TypeError, KeyError):
            return

    def latest_ms(self, begin: int, mark: Mark) -> int | None:
        """Until when the messages of a file are due, in ms; None when that is not known."""
        due_ms, its_mark = self._table.get(begin, (None, None))
        return due_ms if its_mark == mark else None

    def note(self, begin: int, due_ms: int, mark: Mark) -> None:
        """Notes until when the messages of a full file are due."""
        if self._table.get(begin) != (due_ms, mark):
            self._table[begin] = due_ms, mark
            self._is_changed = True

    def forget_from(self, position: int) -> None:
        """Forgets the files from this position on, as their contents have changed."""
        for begin in [each for each in self._table if each >= position]:
            del self._table[begin]
            self._is_changed = True

    def keep(self, begins: Collection[int]) -> None:
        """Saves the notes about these files, if anything has changed.

        If that fails, the times will only be found out again.
        """
        if not self._is_changed:
            return
        self._is_changed = False
        self._table = {each: self._table[each] for each in sorted(begins) if each in self._table}
        rows = [[begin, *found] for begin, found in self._table.items()]
        values = {"version": _VERSION, "files": rows, "check": _check(rows)}
        with suppress(OSError):
            self._files.write(self.path, orjson.dumps(values))


def _check(rows: Any) -> int:
    return crc32(orjson.dumps(rows))
