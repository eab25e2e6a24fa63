# SPDX-License-Identifier: Apache-2.0
"""Reads lines of standard input in a thread, so that connections stay alive meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

CHUNK_BYTES: Final = 256 * 1024
MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""The length of the longest line, in bytes, which is that of the largest body."""


class LineSplitter:
    """Cuts chunks into lines without their ends; empty ones are left out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that a chunk completes. Raises ValueError for one that is too long."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line of the input is longer than {MAX_LINE_BYTES} bytes")
        return _without_ends(lines)

    def end(self) -> list[bytes]:
        """Returns the last line if the input does not end with a newline."""
        rest, self._rest = self._rest, b""
        return _without_ends([rest])


async def portions(reactor: Any, descriptor: int) -> AsyncIterator[list[bytes]]:
    """Yields the lines of a file, as many at once as there are; one portion is read ahead."""
    reader = _Reader(reactor, descriptor)
    thread = threading.Thread(target=reader.run, name="lines", daemon=True)
    thread.start()
    while True:
        lines = await reader.next()
        if lines is None:
            return
        if lines:
            yield lines


class _Reader:
    """Reads in a thread, which hands over each portion and waits until that is taken."""

    def __init__(self, reactor: Any, descriptor: int) -> None:
        self._reactor = reactor
        self._descriptor = descriptor
        self._taken = threading.Semaphore(1)
        self._waiting: Deferred[list[bytes] | None] | None = None
        self._portion: list[bytes] | Failure | None = None
        self._is_there = False

    def next(self) -> Deferred[list[bytes] | None]:
        """Fires with the next portion, or with None at the end."""
        result: Deferred[list[bytes] | None] = Deferred()
        self._waiting = result
        if self._is_there:
            self._hand_over()
        return result

    def run(self) -> None:
        """Reads until the end, or until nobody takes what was read; runs in the thread."""
        splitter = LineSplitter()
        try:
            while chunk := os.read(self._descriptor, CHUNK_BYTES):
                self._pass_on(splitter.feed(chunk))
            self._pass_on(splitter.end())
            self._pass_on(None)
        except (OSError, ValueError) as error:
            self._pass_on(Failure(error))

    def _pass_on(self, portion: list[bytes] | Failure | None) -> None:
        self._taken.acquire()
        self._reactor.callFromThread(self._arrived, portion)

    def _arrived(self, portion: list[bytes] | Failure | None) -> None:
        self._portion, self._is_there = portion, True
        if self._waiting is not None:
            self._hand_over()

    def _hand_over(self) -> None:
        waiting, self._waiting = self._waiting, None
        portion, self._portion, self._is_there = self._portion, None, False
        self._taken.release()
        assert waiting is not None
        if isinstance(portion, Failure):
            waiting.errback(portion)
        else:
            waiting.callback(portion)


def _without_ends(lines: list[bytes]) -> list[bytes]:
    return [line for each in lines if (line := each.removesuffix(b"\r"))]
