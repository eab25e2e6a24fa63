# SPDX-License-Identifier: Apache-2.0
"""The log offsets before which messages belong to deleted topics, so that they stay deleted.

A topic that is deleted loses its queues at once, but its messages stay in the log until they
expire. If the topic is created again its queues begin at 0 again, and a recovery that builds queues
from the log would take the old messages for new ones. So a small file with the name of the topic,
in the folder `deleted` of the store, says where the log ended when the topic was deleted. It is
written before the queues are removed, is made durable before any later message (see flush.py), and
is removed by the first start at which the log begins behind that offset.

Java: has no counterpart; 5.4.0 may serve the old messages after a crash.
"""

from __future__ import annotations

import os
from typing import Final

from txrocketmq.broker.store.disk.files import Files

FOLDER: Final = "deleted"
_DIGITS: Final = 20


class DeletedTopics:
    """The marks of one store."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._directory = os.path.join(root, FOLDER)
        self._ends: dict[str, int] = {}
        """By topic: the log offset at which it was deleted."""
        self.unreadable: list[str] = []
        """Files that contain no valid offset."""
        self.not_durable: list[str] = []
        """The paths of files that are still to be synced."""

    def load(self, log_start: int, log_end: int) -> None:
        """Reads the files, for a log between these offsets.

        Offsets behind the end of the log are durably set back to it, as whatever is written there
        is new. Raises OSError when that fails.
        """
        self._ends = {}
        self.unreadable = []
        for entry in self._files.entries(self._directory):
            path = os.path.join(self._directory, entry.name)
            text = b"" if entry.is_directory else self._files.read(path)
            if not (text.isdigit() and len(text) == _DIGITS):
                self.unreadable.append(path)  # damaged, of somebody else, or never durable
                continue
            end = int(text)
            if end <= log_start:
                self._files.remove(path)
                continue
            if end > log_end:
                end = log_end
                self._write(entry.name, end)
                self._files.sync(path)
            self._ends[entry.name] = end
        self.not_durable.clear()

    def note(self, topic: str, log_end: int) -> None:
        """Notes that a topic is deleted while the log ends there. Raises OSError without room."""
        self._ends[topic] = log_end
        if log_end:
            self._files.make_directory(self._directory)
            self.not_durable.append(self._write(topic, log_end))

    def end_of(self, topic: str) -> int:
        """Messages of the topic before this log offset were deleted; 0 if none were."""
        return self._ends.get(topic, 0)

    def _write(self, topic: str, log_end: int) -> str:
        path = os.path.join(self._directory, topic)
        self._files.write(path, b"%0*d" % (_DIGITS, log_end))
        return path
