# SPDX-License-Identifier: Apache-2.0
"""Remote files at one moment: each folder is listed once, and small reads are cached.

Planning a query and reading a split ask again and again what is in a folder, and bisect files by
reads of a few bytes; over a network each of these is a request. A file that was deleted since it
was listed raises FileNotFoundError when it is read; a file that was made since is not seen. Several
threads may ask at once. When pickled, it becomes the file system that it wraps.
"""

from __future__ import annotations

import posixpath
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final

from txrocketmq.spark.store.files import Entry, Files, NumberedFile, Piece, Tree, numbered

_BLOCK_BYTES: Final = 8000
"""How much is read around a small read: 400 units of a consume queue."""
_Numbered = list[NumberedFile]
_KEPT_BLOCKS: Final = 4096
"""How many of these blocks are kept: 32 MB at most."""


class ListedFiles:
    """Caches the listings and small reads of a remote file system."""

    is_remote = True

    def __init__(self, files: Files) -> None:
        self._files = files
        self._listed: dict[str, list[Entry] | None] = {}
        self._numbered: dict[str, _Numbered] = {}
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        return repr(self._files)

    def __reduce__(self) -> Any:
        return _same, (self._files,)

    def list(self, path: str) -> list[Entry]:
        if path not in self._listed:
            try:
                self._listed[path] = None if self._is_gone(path) else self._files.list(path)
            except FileNotFoundError:
                self._listed[path] = None
        found = self._listed[path]
        if found is None:
            raise FileNotFoundError(f"{path}: no such directory")
        return found

    def numbered(self, path: str) -> _Numbered:
        """Returns the numbered files of a directory, in order, without empty ones."""
        if path not in self._numbered:
            self._numbered[path] = numbered(path, self.list(path))
        return self._numbered[path]

    def _is_gone(self, path: str) -> bool:
        """Whether the listing of a directory above it tells that there is no such directory."""
        parent, name = posixpath.split(path)
        while parent != path:
            if parent in self._listed:
                return all(each.name != name for each in self._listed[parent] or ())
            path, (parent, name) = parent, posixpath.split(parent)
        return False

    def look_through(self, path: str) -> None:
        """Lists all directories below this one at once, for callers that need most of them."""
        if path not in self._listed:
            self._listed[path] = None
            self._listed.update(self._files.tree(path))

    def tree(self, path: str) -> Tree:
        return self._files.tree(path)

    def exists(self, path: str) -> bool:
        parent, name = posixpath.split(path)
        try:
            return any(each.name == name for each in self.list(parent))
        except FileNotFoundError:
            return False

    def modified_ms(self, path: str) -> int:
        return self._files.modified_ms(path)

    def read(self, path: str) -> bytes:
        return self._files.read(path)

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        first, last = offset // _BLOCK_BYTES, (offset + len(view) - 1) // _BLOCK_BYTES
        if last - first > 1 or not len(view):
            return self._files.read_into(path, offset, view)
        data = b"".join(self._block(path, number) for number in range(first, last + 1))
        found = data[offset - first * _BLOCK_BYTES :][: len(view)]
        view[: len(found)] = found
        return len(found)

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        return self._files.read_pieces(path, pieces, view)

    def _block(self, path: str, number: int) -> bytes:
        key = path, number
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        data = bytearray(_BLOCK_BYTES)
        got = self._files.read_into(path, number * _BLOCK_BYTES, memoryview(data))
        block = bytes(data[:got])
        with self._lock:
            self._blocks[key] = block
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        return block


def _same(files: Files) -> Files:
    return files
