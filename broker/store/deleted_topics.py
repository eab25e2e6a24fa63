# SPDX-License-Identifier: Apache-2.0
"""Up to which offset of the log the messages of deleted topics are, so they stay deleted.

A topic that is deleted loses its queues at once, and its messages stay in the log until they
expire. When the topic is made anew its queues begin at 0 again, and a recovery that builds queues
from the log would take the messages of its former life for those of the new one. So a small file
with the name of the topic, in the folder `deleted` of the store, says where the log ended when the
topic was deleted. It is written before the queues go, is made durable before any message that
comes later (see flush.py), and goes with the start that finds the log to begin behind it.

Java: has no counterpart; 5.4.0 may serve messages of the former life after a crash.
"""

from __future__ import annotations

import os
from typing import Final

from txrocketmq.broker.store.files import Files

FOLDER: Final = "deleted"
_DIGITS: Final = 20


class DeletedTopics:
    """The marks of one store."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._directory = os.path.join(root, FOLDER)
        self._ends: dict[str, int] = {}
        """By topic: where in the log its former life ends."""
        self.unreadable: list[str] = []
        """Files that do not say where a life ended."""
        self.not_durable: list[str] = []
        """The files that are to be synced."""

    def load(self, log_start: int, log_end: int) -> None:
        """Reads the marks, for a log that runs from there to there.

        Marks behind its end are drawn back to it, durably: what is written there is new. OSError
        when that fails.
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
        """A topic is deleted when the log ends there. OSError without room."""
        self._ends[topic] = log_end
        if log_end:
            self._files.make_directory(self._directory)
            self.not_durable.append(self._write(topic, log_end))

    def end_of(self, topic: str) -> int:
        """Messages of the topic before this place of the log were deleted; 0: none were."""
        return self._ends.get(topic, 0)

    def _write(self, topic: str, log_end: int) -> str:
        path = os.path.join(self._directory, topic)
        self._files.write(path, b"%0*d" % (_DIGITS, log_end))
        return path
