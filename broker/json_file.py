# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the store directory: JSON, replaced whole, the one before kept as .bak.

Written as 5.4 does: the old file becomes .bak, then the new one is written; so after a crash at any
point one of the two is whole. Counterpart of ConfigManager.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from txrocketmq.remoting.serialize.json import JsonError, decode_body, encode_pretty


class JsonFileError(ValueError):
    """Neither the file nor its .bak can be read; the text says which file and why."""


class JsonFile:
    """One file of `config/`; `compact` ones are written on one line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._backup = path.with_name(path.name + ".bak")
        self._written: bytes | None = None

    def load(self) -> Any:
        """The content; of the .bak where the file is missing, empty or broken; None without both.

        Raises JsonFileError when there is something, and none of it can be read.
        """
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
                return decode_body(data)
            except JsonError as error:
                wrong.append(f"{path}: {error}")
        if wrong:
            raise JsonFileError(
                "; ".join(wrong) + ". Repair or remove the file: what it held will be made anew."
            )
        return None

    def save(self, content: Any) -> None:
        """Replaces the content, on disk when this returns; nothing is done when nothing changed.

        Raises OSError.
        """
        data = encode_pretty(content)
        if data == self._written:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            self.path.replace(self._backup)
        with self.path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._written = data
