# SPDX-License-Identifier: Apache-2.0
"""The files by which a store says how far it is durable, that it is open, and that it is in use.

Three timestamps: of the newest message that is durable in the log, in all queues, in the index.
Recovery after a crash starts where they point, which only works as long as every later message has
a later timestamp: when the clock is set back, `reset` takes them back as well. The abort file
exists while the store is open, so finding one at start means that the last run did not end well.
The lock file keeps a second broker out.

Java: StoreCheckpoint, DefaultMessageStore.createTempFile, isTempFileExist, lockFile.
"""

from __future__ import annotations

import os
from typing import Final

from txrocketmq.broker.store import formats
from txrocketmq.broker.store.errors import StoreLocked
from txrocketmq.broker.store.files import Files, Lock
from txrocketmq.broker.store.mapped_file import MappedFile
from txrocketmq.remoting.packing import fixed

_FIELDS: Final = fixed(formats.CHECKPOINT).struct
SLACK_MS: Final = 3_000
"""Log and queues are flushed one after the other; what lies between is less than this."""


class Checkpoint:
    """The checkpoint file. Timestamps are in ms; 0 means none yet."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._file = MappedFile(files, path, formats.CHECKPOINT_FILE_BYTES)
        self.physic_msg_timestamp_ms = 0
        self.logics_msg_timestamp_ms = 0
        self.index_msg_timestamp_ms = 0
        self.master_flushed_offset = 0
        self.confirm_physical_offset = 0

    @property
    def path(self) -> str:
        return self._file.path

    def load(self) -> None:
        """Reads the file, or makes it; OSError without room on the disk."""
        self._file.reserve(formats.CHECKPOINT_FILE_BYTES)
        (
            self.physic_msg_timestamp_ms,
            self.logics_msg_timestamp_ms,
            self.index_msg_timestamp_ms,
            self.master_flushed_offset,
            self.confirm_physical_offset,
        ) = _FIELDS.unpack_from(self._file.map(), 0)

    def save(self) -> None:
        """Writes the file; what is written is not durable before it is synced."""
        _FIELDS.pack_into(
            self._file.map(),
            0,
            self.physic_msg_timestamp_ms,
            self.logics_msg_timestamp_ms,
            self.index_msg_timestamp_ms,
            self.master_flushed_offset,
            self.confirm_physical_offset,
        )

    def reset(self, newest_ms: int) -> None:
        """Takes back, durably, what it says of messages after this time.

        The log lacks them, or messages to come will have been stored before them, by the clock.
        """
        self.physic_msg_timestamp_ms = min(self.physic_msg_timestamp_ms, newest_ms)
        self.logics_msg_timestamp_ms = min(self.logics_msg_timestamp_ms, newest_ms)
        self.index_msg_timestamp_ms = min(self.index_msg_timestamp_ms, newest_ms)
        self.save()
        self._files.sync(self._file.path)

    def close(self) -> None:
        """Forgets the mapping."""
        self._file.unmap()

    @property
    def min_timestamp_ms(self) -> int:
        """Messages up to then are durable in log and queues."""
        return max(min(self.physic_msg_timestamp_ms, self.logics_msg_timestamp_ms) - SLACK_MS, 0)


class Marks:
    """Abort and lock file of a store's directory."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._abort = os.path.join(root, "abort")
        self._lock_path = os.path.join(root, "lock")
        self._lock: Lock | None = None

    @property
    def path(self) -> str:
        """The abort file, which says where the log begins while the store is open."""
        return self._abort

    def lock(self) -> None:
        """Keeps other brokers out; StoreLocked when one is in."""
        self._lock = self._files.lock(self._lock_path, b"lock")
        if self._lock is None:
            raise StoreLocked(self._lock_path)

    def unlock(self) -> None:
        """Lets others in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def is_aborted(self) -> bool:
        """Whether the store was not closed by its last user, if this one has not opened it."""
        return self._files.exists(self._abort)

    @property
    def is_machine_down(self) -> bool:
        """Whether the machine was started since the store was left open: writes may be lost."""
        return self._files.modified_ms(self._abort) < self._files.booted_ms()

    @property
    def log_start(self) -> int | None:
        """Where the log began for the process that left the store open; None if it did not say.

        An original broker does not.
        """
        if not self.is_aborted:
            return None
        try:
            _, start = self._files.read(self._abort).decode("ascii").split(":")
            return int(start)
        except (OSError, ValueError):
            return None

    def open(self, log_start: int) -> None:
        """Marks the store as open, durably: else a power cut makes it one that was closed."""
        self.note_start(log_start)
        self._files.sync(self._abort)

    def note_start(self, log_start: int) -> None:
        """Notes where the log of the open store begins; durable when `path` is synced."""
        self._files.write(self._abort, f"{os.getpid()}:{log_start}".encode())

    def close(self) -> None:
        """Marks the store as closed in order."""
        self._files.remove(self._abort)
