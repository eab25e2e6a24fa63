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
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile

Left = OrderedDict[str, list[MappedFile]]
"""By directory: the files that are to be unlinked, the oldest first. They are taken from the front,
for which a plain dictionary would look through the places of all that have gone."""
Directories = OrderedDict[str, None]


class RemovalJob:
    """Files to unlink, and directories to remove after them. `run` may be called in any thread."""

    def __init__(
        self,
        files: Files,
        left: Left,
        directories: Directories,
        notes: Iterable[str] = (),
    ) -> None:
        self._files = files
        self._notes = list(notes)
        self._changed = threading.Condition()
        self._left = left
        self._directories = directories
        self._busy_in = ""
        """The directory in which something is being removed at this moment."""
        self.refused: list[MappedFile] = []
        """The files that could not be unlinked."""
        self.refused_directories: list[str] = []
        """The directories that could not be removed, if only because of a file in them."""
        self.errors: list[OSError | MemoryError] = []
        self._stuck: set[str] = set()
        """Directories with a file that could not be unlinked; the files behind it have to wait."""

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
        """Syncs the files that say what may go; if that fails, all removals are refused."""
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
        """Does what Removals.settle does, for the rest of this job; waits if it does so now."""
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
    """The files and directories of one store that are to be removed."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._left: Left = OrderedDict()
        self._directories: Directories = OrderedDict()
        self.notes: set[str] = set()
        """Paths of files that must be durable before anything is unlinked."""
        self._refused: list[MappedFile] = []
        self._refused_directories: list[str] = []
        self._job: RemovalJob | None = None
        self.trouble: OSError | MemoryError | None = None
        """Why something could not be removed; None when everything could."""

    @property
    def is_empty(self) -> bool:
        """Whether everything that was given up is unlinked or was refused."""
        return not self._left and not self._directories and self._job is None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to remove, not even what was refused."""
        return self.is_empty and not self._refused and not self._refused_directories

    def add(self, files: Iterable[MappedFile]) -> None:
        """Takes files that have left their row; held slices of them stay readable."""
        stuck = {os.path.dirname(each.path) for each in self._refused}
        for file in files:
            directory = os.path.dirname(file.path)
            if directory in stuck:
                self._refused.append(file)
            else:
                self._left.setdefault(directory, []).append(file)

    def add_directory(self, path: str) -> None:
        """Takes a directory to remove after the files; it stays if anything else is in it."""
        self._directories.pop(path, None)
        self._directories[path] = None

    def begin(self) -> RemovalJob | None:
        """Returns a job for all removals; None when there are none, or while a job is under way."""
        if self._job is not None or self.is_empty:
            return None
        self._job = RemovalJob(self._files, self._left, self._directories, self.notes)
        self._left, self._directories = OrderedDict(), OrderedDict()
        return self._job

    def finish(self, job: RemovalJob) -> None:
        """Takes note of a job that was run, and of what was refused to it."""
        if job is self._job:
            self._job = None
            self._refused += job.refused
            self._refused_directories += job.refused_directories
            if job.errors:
                self.trouble = job.errors[0]
            elif not self._refused and not self._refused_directories:
                self.trouble = None

    def run_all(self) -> None:
        """Removes everything that is left at once; does not wait for a job in a thread."""
        if self._job is not None:
            self._job.run()
            self.finish(self._job)
        job = self.begin()
        if job is not None:
            job.run()
            self.finish(job)

    def try_again(self) -> None:
        """Gives what was refused to the next job, before newer removals."""
        refused, self._refused = self._refused, []
        newer, self._left = self._left, OrderedDict()
        for files in (refused, *newer.values()):
            self.add(files)
        for path in self._refused_directories:
            self.add_directory(path)
        self._refused_directories = []

    def settle(self, directory: str) -> None:
        """Unlinks at once what is left in a directory whose names may be used again.

        The directory stays, and so does the one above it. Raises OSError when something in it
        cannot be unlinked.
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
