# SPDX-License-Identifier: Apache-2.0
"""Reads files in windows, into buffers that are used again.

Fresh memory costs more than reading into it, since the system clears each page. So a process keeps
its buffers, at most two for each active reader, and a window is valid until the one after the next
is read. For a remote file, a thread fetches the next window while the current one is processed. A
pace delays the reading of bytes and never changes which bytes are in a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np

from txrocketmq.spark.arrow.walk import Buffer
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.store.files import Files, Piece

_HEAD_BYTES: Final = 1 << 20
"""Room before a window that is fetched ahead, for the rest of the window before it."""
_KEPT_BUFFERS: Final = 2

_free: list[Buffer] = []
"""Buffers that no reader uses now."""


class _Ahead(NamedTuple):
    path: str
    at: int
    length: int
    buffer: Buffer
    got: Future[int]


class Windows:
    """Reads files of one store, each place once and mostly in order. Call `close` at the end."""

    def __init__(self, files: Files, window_bytes: int, pace: Pace | None = None) -> None:
        self.window_bytes = window_bytes
        self._pace = pace
        self._files = files
        self._mine: list[Buffer] = []
        self._pool = ThreadPoolExecutor(1, "read-ahead") if files.is_remote else None
        self._ahead: _Ahead | None = None
        self._is_ahead_wanted = True
        self._buffer = self._another()
        self._current: Buffer = self._buffer[:0]

    def read(self, path: str, at: int, length: int, until: int) -> Buffer:
        """Returns the bytes of a file from `at` on, `length` or some more; fewer at the file's end.

        `until` is how far the file will be read, for fetching ahead. The window before the last one
        is overwritten. Raises FileNotFoundError when there is no file.
        """
        view = self._from_ahead(path, at, length)
        if view is None:
            self._drop_ahead()
            if length > self.window_bytes:
                buffer = np.empty(length, np.uint8)  # one long record
            else:
                buffer = self._buffer[_HEAD_BYTES : _HEAD_BYTES + length]
            view = buffer[: self._read_into(path, at, buffer.data)]
        self._current = view
        if self._pool is not None:
            self._fetch(path, at + len(view), min(self.window_bytes, until - at - len(view)))
        return view

    def pieces(self, path: str, pieces: Sequence[Piece]) -> Buffer:
        """Returns pieces of a file end to end; fewer bytes if the file does not have all of one."""
        self._drop_ahead()
        length = sum(length for _, length in pieces)
        buffer = np.empty(length, np.uint8) if length > self.window_bytes else self._buffer[:length]
        return buffer[: self._read_pieces(path, pieces, buffer.data)]

    def close(self) -> None:
        """Gives the buffers back for other readers."""
        self._drop_ahead()
        if self._pool is not None:
            self._pool.shutdown()
        self._current = self._buffer = np.empty(0, np.uint8)
        while self._mine and len(_free) < _KEPT_BUFFERS:
            _free.append(self._mine.pop())
        self._mine.clear()

    def _read_into(self, path: str, at: int, view: memoryview) -> int:
        if self._pace is None:
            return self._files.read_into(path, at, view)
        got = 0
        for start, end in self._pace.steps(len(view)):
            if self._is_ahead_wanted:
                got += self._files.read_into(path, at + start, view[start:end])
            if got < end:
                break
        return got

    def _read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        if self._pace is None:
            return self._files.read_pieces(path, pieces, view)
        got = 0
        for at, length in pieces:
            read = self._read_into(path, at, view[got : got + length])
            got += read
            if read < length:
                break
        return got

    def _another(self) -> Buffer:
        size = _HEAD_BYTES + self.window_bytes
        for at, buffer in enumerate(_free):
            if len(buffer) == size:
                self._mine.append(_free.pop(at))
                return self._mine[-1]
        _free.clear()  # these have another size
        self._mine.append(np.empty(size, np.uint8))
        return self._mine[-1]

    def _fetch(self, path: str, at: int, length: int) -> None:
        if length <= 0 or self._pool is None:
            return
        buffer = next((each for each in self._mine if each is not self._buffer), None)
        if buffer is None:
            buffer = self._another()
        view = buffer[_HEAD_BYTES : _HEAD_BYTES + length].data
        got = self._pool.submit(self._read_into, path, at, view)
        self._ahead = _Ahead(path, at, length, buffer, got)

    def _from_ahead(self, path: str, at: int, length: int) -> Buffer | None:
        """Returns the fetched window after what is left of the current one, if it fits."""
        ahead = self._ahead
        if ahead is None or ahead.path != path:
            return None
        left = ahead.at - at
        if not 0 <= left <= min(_HEAD_BYTES, len(self._current)) or left + ahead.length < length:
            return None
        self._ahead = None
        got = ahead.got.result()
        if left:
            ahead.buffer[_HEAD_BYTES - left : _HEAD_BYTES] = self._current[-left:]
        self._buffer = ahead.buffer
        return ahead.buffer[_HEAD_BYTES - left : _HEAD_BYTES + got]

    def _drop_ahead(self) -> None:
        """Waits for an unwanted window that is being fetched, since its buffer is needed."""
        if self._ahead is not None:
            self._is_ahead_wanted = False
            self._ahead.got.exception()
            self._ahead = None
            self._is_ahead_wanted = True
