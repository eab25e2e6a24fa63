# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the store directory: JSON, replaced as a whole, with a .bak.

What is written is whole on the disk before it takes the file's place, so a crash or a full disk
costs neither the file nor its .bak; the original, which writes into the file itself, can lose both.
Saving is done by the broker's thread or beside it; whichever comes last, the newest content stays.
Counterpart of ConfigManager.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.process.kept_json import read_kept
from txrocketmq.remoting.process.replaced_file import write_replacing
from txrocketmq.remoting.serialize.json import encode_pretty

_WITHOUT = {
    "topics.json": "topics that have queues are created again, with default permissions",
    "subscriptionGroup.json": "groups are created again with defaults when consumers connect",
    "consumerOffset.json": "all groups begin like new ones: what they have consumed is not known",
    "lmqConsumerOffset.json": "groups continue where consumerOffset.json says, or begin anew",
    "delayOffset.json": "all delayed messages that the store still has are delivered once more",
    "consumerFilter.json": "the bitmaps of messages that were stored before are not used",
    "transactionMetrics": "open half messages are counted from 0",
    "consumerOrderInfo.json": "queues popped in order are open again, and counts begin at 0",
    "messageRequestMode.json": "the modes that were set for groups are lost",
    "users.json": "there are only the users that the settings name, without policies",
    "acls.json": "users that are not Super may do nothing",
}
"""What a broker does without each file; errors say it, so that nobody removes one unknowingly."""


class JsonFileError(ValueError):
    """A file and its .bak cannot be read or have unexpected contents; the text says which file."""


class JsonFile:
    """One file of `config/`. One that is private holds passwords, so nobody else may read it."""

    def __init__(self, path: Path, *, is_private: bool = False) -> None:
        self.path = path
        self._is_private = is_private
        self.is_stale = False
        """Set by the owner when its data are newer than the file; cleared by saving."""
        self.warning = ""
        """What was wrong with the file when it was read; empty if nothing was."""
        self.is_missing = False
        """Whether there was neither the file nor its .bak when it was read."""
        self._written: bytes | None = None
        self._versions = itertools.count(1)
        self._written_version = 0
        self._lock = threading.Lock()

    @contextmanager
    def content(self) -> Iterator[Mapping[str, Any]]:
        """Yields the content of the file to a `with`: an object, empty without file and .bak.

        The .bak is used when the file is missing, empty or broken; then `warning` says so. That of
        a private file is not: it may have what was taken away by the last change. Raises
        JsonFileError when neither can be read, and when the body of the `with` fails, since then
        the content is not what the file should hold.
        """
        falls_back = not self._is_private
        try:
            path, content, self.warning = read_kept(
                self.path, is_private=self._is_private, falls_back=falls_back
            )
        except ValueError as error:
            raise JsonFileError(f"{error}. {self._advice}") from None
        self.is_missing = content is None and not self.warning
        if not falls_back and (self.warning or (self.is_missing and self._backup.exists())):
            raise JsonFileError(f"{self.warning or f'{self.path} is missing'}. {self._advice}")
        if content is None:
            content = {}
        if not isinstance(content, Mapping):
            raise JsonFileError(f"{path} does not hold an object. {self._advice}")
        try:
            yield content
        except (RemotingError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise JsonFileError(
                f"{path} does not hold what it should: {error}. {self._advice}"
            ) from error

    @property
    def _advice(self) -> str:
        without = f"without it and its .bak, {_WITHOUT.get(self.path.name, 'it begins empty')}"
        if not self._is_private:
            return f"Repair the file, or put back a copy; {without}."
        return (
            f"Repair the file, or put back a copy. {self._backup} may have what the last change has"
            f" taken away; {without}."
        )

    @property
    def _backup(self) -> Path:
        return self.path.with_name(self.path.name + ".bak")

    def save(self, content: Any) -> None:
        """Replaces the content, which is on disk on return; does nothing when it has not changed.

        Raises OSError; the file is then as it was.
        """
        self._save(encode_pretty(content), next(self._versions))
        self.is_stale = False

    def _save(self, data: bytes, version: int) -> None:
        with self._lock:
            if version < self._written_version:
                return
            if data != self._written:
                write_replacing(self.path, data, is_private=self._is_private)
            self._written, self._written_version = data, version

    def saving(self, encode: Callable[[], bytes]) -> Callable[[], None]:
        """Returns a function that saves the content, to be called in any thread.

        It calls `encode` there for the text, which must not use anything that changes meanwhile.
        The file is stale again if `encode` or the writing raises anything.
        """
        version = next(self._versions)
        self.is_stale = False

        def save() -> None:
            try:
                self._save(encode(), version)
            except Exception:
                self.is_stale = True
                raise

        return save
