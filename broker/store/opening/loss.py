# SPDX-License-Identifier: Apache-2.0
"""Opens a store that has lost messages only if the loss was accepted.

When going on would lose messages that are known to have been stored, the start is refused, and
nothing is changed. If what is missing cannot be brought back, create the empty file `accept_loss`
in the store: the next start goes on without the messages and removes the file. Files that are then
in the way are moved to `lost/TIME` in the store, where they stay.

Java: has no counterpart. 4.9.7 and 5.4.0 go on silently.
"""

from __future__ import annotations

import os
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats.errors import StoreLoss
from txrocketmq.broker.store.index.index_file import index_file_name

WORD: Final = "accept_loss"
LOST: Final = "lost"


class Loss:
    """The losses found by one start; `warnings` are whole sentences."""

    def __init__(self, files: Files, root: str, now_ms: int) -> None:
        self._files = files
        self._root = root
        self._word = os.path.join(root, WORD)
        self._time = index_file_name(now_ms)
        self.is_accepted = files.exists(self._word)
        self._was_used = False
        self.warnings: list[str] = []

    def weigh(self, what: str, instead: str) -> None:
        """Accepts a loss with a warning, if that is permitted; otherwise raises StoreLoss.

        `what` is a sentence without its full stop that says what is missing and what it costs;
        `instead` says what could be brought back.
        """
        if not self.is_accepted:
            raise StoreLoss(what, instead, self._word)
        self._was_used = True
        self.warnings.append(f"{what}; the start went on without it, since {self._word} was there.")

    def move_aside(self, path: str) -> str:
        """Moves a file or directory of the store to `lost`; returns its new path."""
        target = self.target_of(path)
        self._files.move(path, target)
        return target

    def keep(self, path: str, data: memoryview) -> str:
        """Copies bytes that are to be cleared to `lost`; returns the path of the copy."""
        target = self.target_of(path)
        self._files.write(target, data)
        self._files.sync(target)
        return target

    def make_durable(self, gone: str) -> None:
        """Makes it durable that this file is gone, and all that went from its folder before.

        A power cut may bring such files back, when there are others. Of this one, it then is an
        empty file; to sync one that has stayed would be no promise about the names beside it.
        """
        self._files.write(gone, b"")
        self._files.sync(gone)
        self._files.remove(gone)

    def obeyed(self) -> None:
        """Removes the file that accepts losses, as it counts for one start."""
        if self.is_accepted:
            self._files.remove(self._word)
            if not self._was_used:
                self.warnings.append(
                    f"Nothing was missing, so {self._word} was not needed; it has been removed."
                )

    def target_of(self, path: str) -> str:
        root = self._root
        if os.path.relpath(path, root).startswith(os.pardir):
            # The log is elsewhere, perhaps on another disk, and cannot be renamed across disks.
            root = os.path.dirname(os.path.dirname(path))
        target = os.path.join(root, LOST, self._time, os.path.relpath(path, root))
        self._files.make_directory(os.path.dirname(target))
        return target


def written_length(data: memoryview) -> int:
    """The length of the data without the zeros at their end."""
    step = 1 << 20
    for start in range((len(data) - 1) // step * step, -1, -step):
        chunk = bytes(data[start : start + step]).rstrip(b"\0")
        if chunk:
            return start + len(chunk)
    return 0


def is_written(files: Files, file: MappedFile) -> bool:
    """Whether anything but zeros is in a file; of one that was made in advance, nothing is read.

    Its beginning does not tell: a power cut may have taken it, and left what is behind.
    """
    return files.has_data(file.path, 0) and written_length(file.view) > 0
