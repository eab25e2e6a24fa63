# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the store directory: JSON, replaced whole, the one before kept as .bak.

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

from txrocketmq.remoting.config_file import write_replacing
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.serialize.json import JsonError, decode_body, encode_pretty

_ADVICE = "Repair or remove the file: what it held will be made anew."


class JsonFileError(ValueError):
    """A file, and its .bak, that cannot be read or holds something else; the text says which."""


class JsonFile:
    """One file of `config/`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_stale = False
        """Set by the owner when there is something newer, cleared by what saves it."""
        self._backup = path.with_name(path.name + ".bak")
        self._written: bytes | None = None
        self._versions = itertools.count(1)
        self._written_version = 0
        self._lock = threading.Lock()

    @contextmanager
    def content(self) -> Iterator[Mapping[str, Any]]:
        """The content, to be taken apart within: an object, empty without file and .bak.

        That of the .bak where the file is missing, empty or broken. Raises JsonFileError when there
        is something, and none of it can be read; and for what fails within, since then it is not
        what the file should hold.
        """
        path, content = self._load()
        if not isinstance(content, Mapping):
            raise JsonFileError(f"{path} does not hold an object. {_ADVICE}")
        try:
            yield content
        except (RemotingError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise JsonFileError(
                f"{path} does not hold what it should: {error}. {_ADVICE}"
            ) from error

    def _load(self) -> tuple[Path, Any]:
        wrong: list[str] = []
        for path in (self.path, self._backup):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                wrong.append(f"{path}: {error.strerror}")
                continue
            if not data.strip():
                continue
            try:
                return path, decode_body(data)
            except JsonError as error:
                wrong.append(f"{path}: {error}")
        if wrong:
            raise JsonFileError("; ".join(wrong) + f". {_ADVICE}")
        return self.path, {}

    def save(self, content: Any) -> None:
        """Replaces the content, on disk when this returns; nothing is done when nothing changed.

        Raises OSError; the file is then as it was.
        """
        self._save(content, next(self._versions))
        self.is_stale = False

    def _save(self, content: Any, version: int) -> None:
        data = encode_pretty(content)
        with self._lock:
            if version < self._written_version:
                return
            if data != self._written:
                write_replacing(self.path, data)
            self._written, self._written_version = data, version

    def saving(self, content: Any) -> Callable[[], None]:
        """What saves the content, in any thread; the file is stale again if it raises OSError."""
        version = next(self._versions)
        self.is_stale = False

        def save() -> None:
            try:
                self._save(content, version)
            except OSError:
                self.is_stale = True
                raise

        return save
