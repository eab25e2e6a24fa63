# SPDX-License-Identifier: Apache-2.0
"""Files that the store has given up and that have yet to be unlinked, which may take long.

To unmap a log file of 1 GiB and to free its blocks takes a second, and a topic may have thousands
of queue files; so whoever runs the store takes a job with `begin`, runs it in a thread, and brings
it back with `finish`, as those of flush.py:

    job = removals.begin()
    if job is not None:
        job.run()              # in a thread
        removals.finish(job)   # where the store lives

The directories of deleted queues and topics go with their last file. What cannot be unlinked is
left, and tried again by the next job after `try_again`; so are the files behind it in its row, for
a row with a gap looks like one that has lost a file.

A crash before that costs nothing: the files are there at the next start. What had expired is given
up again; a queue that was deleted a moment before is there again. Log and index never use a name
twice; a queue that is deleted and made anew does, so `settle` makes its directory free before that.

Java: MappedFile.destroy, which unlinks in the thread of CleanCommitLogService.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress

from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.mapped_file import MappedFile

Left = dict[str, list[MappedFile]]
"""By directory: the files that are to be unlinked, oldest first."""


class RemovalJob:
    """Files to unlink, and directories to remove after them. `run` may be called in any thread."""

    def __init__(
        self, files: Files, left: Left, directories: dict[str, None], notes: Iterable[str] = ()
    ) -> None:
        self._files = files
        self._notes = list(notes)
        self._changed = threading.Condition()
        self._left = left
        self._directories = directories
        self._busy_in = ""
        """The directory in which something is being removed just now."""
        self.refused: list[MappedFile] = []
        """What could not be unlinked."""
        self.refused_directories: list[str] = []
        """What could not be removed, for such a file in it or for itself."""
        self.errors: list[OSError | MemoryError] = []
        self._stuck: set[str] = set()
        """Directories with a file that could not be unlinked: those behind it wait for it."""

    def run(self) -> None:
        """Unlinks the files, one after the other, then removes the directories."""
        if not self._are_notes_durable():
            return
        while True:
            with self._changed:
                if not self._left and not self._directories:
                    return
                if self._left:
                    directory, files = next(iter(self._left.items()))
                    file = files.pop(0)
                    if not files:
                        del self._left[directory]
                else:
                    directory, file = next(iter(self._directories)), None
                    del self._directories[directory]
                self._busy_in = directory
            try:
                self._remove(directory, file)
            finally:
                with self._changed:
                    self._busy_in = ""
                    self._changed.notify_all()

    def _are_notes_durable(self) -> bool:
        """Syncs what says that the files may go; if that fails, all of them are refused."""
        try:
            while self._notes:
                with suppress(FileNotFoundError):
                    self._files.sync(self._notes[-1])
                self._notes.pop()
        except OSError as error:
            with self._changed:
                self.errors.append(error)
                self.refused += [file for files in self._left.values() for file in files]
                self.refused_directories += self._directories
                self._left.clear()
                self._directories.clear()
            return False
        return True

    def settle(self, directory: str) -> None:
        """As Removals.settle, of what this job has not done; waits for what it does there now."""
        parent = os.path.dirname(directory)
        with self._changed:
            self._directories.pop(directory, None)
            self._directories.pop(parent, None)
            left = self._left.pop(directory, [])
            self._changed.wait_for(lambda: self._busy_in not in (directory, parent))
        for file in left:
            self._remove(directory, file)
        if any(os.path.dirname(file.path) == directory for file in self.refused):
            raise self.errors[0]

    def _remove(self, directory: str, file: MappedFile | None) -> None:
        if file is not None and directory in self._stuck:
            self.refused.append(file)
            return
        try:
            if file is not None:
                file.close()
                self._files.remove(file.path)
            elif any(each.path.startswith(directory + "/") for each in self.refused):
                self.refused_directories.append(directory)
            else:
                self._files.remove_directory(directory)
        except (OSError, MemoryError) as error:
            self.errors.append(error)
            if file is not None:
                self.refused.append(file)
                self._stuck.add(directory)
            else:
                self.refused_directories.append(directory)


class Removals:
    """What is to be unlinked of one store."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._left: Left = {}
        self._directories: dict[str, None] = {}
        self.notes: set[str] = set()
        """Files that are to be durable before anything is unlinked."""
        self._refused: list[MappedFile] = []
        self._refused_directories: list[str] = []
        self._job: RemovalJob | None = None
        self.trouble: OSError | MemoryError | None = None
        """Why something could not be removed; None when nothing is left that could not."""

    @property
    def is_empty(self) -> bool:
        """Whether all that was given up is unlinked, or could not be."""
        return not self._left and not self._directories and self._job is None

    def add(self, files: Iterable[MappedFile]) -> None:
        """Takes files that have left their row; slices of them that are held stay readable."""
        stuck = {os.path.dirname(each.path) for each in self._refused}
        for file in files:
            directory = os.path.dirname(file.path)
            if directory in stuck:
                self._refused.append(file)
            else:
                self._left.setdefault(directory, []).append(file)

    def add_directory(self, path: str) -> None:
        """Takes a directory that goes after the files; it stays when something else is in it."""
        self._directories.pop(path, None)
        self._directories[path] = None

    def begin(self) -> RemovalJob | None:
        """A job for all that is to be removed; None without such, or while one is under way."""
        if self._job is not None or self.is_empty:
            return None
        self._job = RemovalJob(self._files, self._left, self._directories, self.notes)
        self._left, self._directories = {}, {}
        return self._job

    def finish(self, job: RemovalJob) -> None:
        """Takes note of a job that was run, and of what it was refused."""
        if job is self._job:
            self._job = None
            self._refused += job.refused
            self._refused_directories += job.refused_directories
            if job.errors:
                self.trouble = job.errors[0]
            elif not self._refused and not self._refused_directories:
                self.trouble = None

    def run_all(self) -> None:
        """Removes here and now all that is left; waits for nothing that a thread does."""
        if self._job is not None:
            self._job.run()
            self.finish(self._job)
        job = self.begin()
        if job is not None:
            job.run()
            self.finish(job)

    def try_again(self) -> None:
        """Gives what was refused to the next job, before what is newer."""
        refused, self._refused = self._refused, []
        newer, self._left = self._left, {}
        for files in (refused, *newer.values()):
            self.add(files)
        for path in self._refused_directories:
            self.add_directory(path)
        self._refused_directories = []

    def settle(self, directory: str) -> None:
        """Unlinks here and now what is left in a directory whose names may be used again.

        It stays, and so does the one above it. OSError when something in it cannot be unlinked.
        """
        self._refused_directories = [
            path
            for path in self._refused_directories
            if path not in (directory, os.path.dirname(directory))
        ]
        refused = [file for file in self._refused if os.path.dirname(file.path) == directory]
        if refused:
            self._refused = [file for file in self._refused if file not in refused]
            self._left[directory] = refused + self._left.get(directory, [])
        own = RemovalJob(self._files, self._left, self._directories)
        try:
            own.settle(directory)
        finally:
            self.add(own.refused)
        if self._job is not None:
            self._job.settle(directory)
