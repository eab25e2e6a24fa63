# SPDX-License-Identifier: Apache-2.0
"""config/timercheck: how far timer messages are delivered and put into the wheel.

Java: timer.TimerCheckpoint.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import fixed

_FIELDS: Final = fixed(formats.TIMER_CHECK).struct
BY_ESCAPE: Final = -1
"""The state version of the progress of a slave that sends messages elsewhere (timer_escape.py)."""


class TimerProgress(NamedTuple):
    """The contents of the file.

    All that was due before `read_ms` is delivered; all messages of the timer topic before
    `queue_offset` are delivered or in the timer log, which is durable up to `log_end`. A
    `master_offset` beyond that is how far the master of this slave has come: messages before it are
    delivered if they were due before `read_ms`, but those that wait are not in the timer log here.
    """

    read_ms: int = 0
    log_end: int = 0
    queue_offset: int = 0
    state_version: int = 0
    timestamp_ms: int = 0
    counter: int = 0
    master_offset: int = 0

    def encode(self) -> bytes:
        """Encodes the progress for the file and for GET_TIMER_CHECK_POINT."""
        return _FIELDS.pack(
            self.read_ms, self.log_end, self.queue_offset,
            max(self.queue_offset, self.master_offset), self.state_version, self.timestamp_ms,
            self.counter,
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> TimerProgress | None:
        """Reads such bytes; None when what they say is impossible."""
        if len(data) < _FIELDS.size:
            return None
        read_ms, log_end, queue_offset, master_offset, *version = _FIELDS.unpack_from(data)
        if read_ms <= 0 or min(log_end, queue_offset, master_offset) < 0:
            return None
        beyond = master_offset if master_offset > queue_offset else 0
        found = cls(read_ms, log_end, min(queue_offset, master_offset), *version)
        return found._replace(master_offset=beyond)


class TimerCheck:
    """The file, which is created when it is first written."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self._file = MappedFile(files, path, formats.TIMER_CHECK_FILE_BYTES)

    def read(self) -> TimerProgress | None:
        """Reads the progress; None when there is no file, or its contents are impossible."""
        if not self._files.exists(self.path):
            return None
        return TimerProgress.decode(self._files.read(self.path))

    def write(self, progress: TimerProgress) -> None:
        """Writes the progress, which is durable when synced. Raises OSError without room."""
        self._files.make_directory(os.path.dirname(self.path))
        self._file.reserve(formats.TIMER_CHECK_FILE_BYTES)
        self._file.map()[: _FIELDS.size] = progress.encode()

    def close(self) -> None:
        """Drops the mapping."""
        self._file.unmap()
