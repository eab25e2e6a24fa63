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

from txrocketmq.broker.store.disk.files import Files, Lock
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.errors import StoreLocked
from txrocketmq.remoting.primitives.packing import fixed

_FIELDS: Final = fixed(formats.CHECKPOINT).struct
_REPLICA: Final = "replica"
_KINDS: Final[list[list[str]]] = [[], [_REPLICA]]
SLACK_MS: Final = 3_000
"""How long, in ms, the flushes of log and queues may lie apart at most."""


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
        """Reads the file, or creates it; raises OSError when the disk has no room."""
        self._file.reserve(formats.CHECKPOINT_FILE_BYTES)
        (
            self.physic_msg_timestamp_ms,
            self.logics_msg_timestamp_ms,
            self.index_msg_timestamp_ms,
            self.master_flushed_offset,
            self.confirm_physical_offset,
        ) = _FIELDS.unpack_from(self._file.map(), 0)

    def save(self) -> None:
        """Writes the file; it is durable only after a sync."""
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
        """Durably lowers the timestamps that are later than this time.

        The log lacks such messages, or messages to come would get earlier timestamps.
        """
        self.physic_msg_timestamp_ms = min(self.physic_msg_timestamp_ms, newest_ms)
        self.logics_msg_timestamp_ms = min(self.logics_msg_timestamp_ms, newest_ms)
        self.index_msg_timestamp_ms = min(self.index_msg_timestamp_ms, newest_ms)
        self.save()
        self._files.sync(self._file.path)

    def close(self) -> None:
        """Drops the mapping."""
        self._file.unmap()

    @property
    def min_timestamp_ms(self) -> int:
        """All messages up to this time are durable in log and queues."""
        return max(min(self.physic_msg_timestamp_ms, self.logics_msg_timestamp_ms) - SLACK_MS, 0)


class MarkerFiles:
    """The abort file and the lock file of a store's directory."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._abort = os.path.join(root, "abort")
        self._lock_path = os.path.join(root, "lock")
        self._lock: Lock | None = None
        self.is_replica = False
        """Whether this process has marked the store as that of a replica."""

    @property
    def path(self) -> str:
        """The abort file, which exists while the store is open and says where the log begins."""
        return self._abort

    def lock(self) -> None:
        """Takes the lock that keeps other brokers out; raises StoreLocked if one holds it."""
        self._lock = self._files.lock(self._lock_path, b"lock")
        if self._lock is None:
            raise StoreLocked(self._lock_path)

    def unlock(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def is_aborted(self) -> bool:
        """Whether the last user did not close the store, or this process has it open."""
        return self._files.exists(self._abort)

    @property
    def is_machine_down(self) -> bool:
        """Whether the machine was restarted since the store was left open: writes may be lost."""
        return self._files.modified_ms(self._abort) < self._files.booted_ms()

    @property
    def log_start(self) -> int | None:
        """Where the log began for the process that left the store open; None if it did not say.

        An original broker does not say it.
        """
        if not self.is_aborted:
            return None
        try:
            _, start, *kind = self._fields()
            return int(start) if kind in _KINDS else None
        except (OSError, ValueError):
            return None

    @property
    def was_replica(self) -> bool:
        """Whether the process that left the store open took its log from a master in pieces."""
        try:
            return self.is_aborted and _REPLICA in self._fields()[2:]
        except (OSError, ValueError):
            return False

    def open(self, log_start: int, *, is_replica: bool = False) -> None:
        """Marks the store as open, durably, or else it would look closed after a power cut."""
        self.is_replica = is_replica
        self.note_start(log_start)
        self._files.sync(self._abort)

    def note_start(self, log_start: int) -> None:
        """Notes where the log of the open store begins; durable when `path` is synced."""
        kind = f":{_REPLICA}" if self.is_replica else ""
        self._files.write(self._abort, f"{os.getpid()}:{log_start}{kind}".encode())

    def _fields(self) -> list[str]:
        return self._files.read(self._abort).decode("ascii").split(":")

    def close(self) -> None:
        """Marks the store as closed in order."""
        self._files.remove(self._abort)
