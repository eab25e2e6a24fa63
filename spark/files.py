# SPDX-License-Identifier: Apache-2.0
"""The files of a store as they are read from outside: from a local disk, or through `pyarrow.fs`.

A store may belong to a broker that is writing it. Reading takes no lock, maps nothing (a mapped
file that is deleted or shortened ends the process), keeps no deleted file open, and leaves the
broker's page cache alone: see `LocalFiles`.

`files_of` chooses by the scheme of a path. Everything here is picklable and cheap to make.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from txrocketmq.remoting.operating_system import forget, read_cached, read_no_further
from txrocketmq.spark.errors import OptionError, StoreError

FILE_NAME: Final = re.compile("[0-9]{20}")
"""Of numbered files."""
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Schemes as Hadoop spells them, and those of pyarrow for the same."""
_REMOTE: Final = ("s3", "gs", "hdfs", "abfs", "abfss")
_VALID: Final = "a local directory, file:, s3:, gs:, hdfs:, abfs:"
_CHUNK_BYTES: Final = 4 << 20
"""What is told apart as cached by the system or not."""
_MAX_READ_BYTES: Final = 64 << 20
"""The largest file that `read` takes whole: configuration, never a log."""
_OPEN_REMOTE_FILES: Final = 8
_PARALLEL_READS: Final = 8
"""Each waits for the network most of its time."""
_NO_SUCH_FLAG: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


Piece = tuple[int, int]
"""Of a file: offset and length."""


class Entry(NamedTuple):
    """What a directory holds; `size` in bytes, 0 of a directory."""

    name: str
    size: int
    is_dir: bool


class NumberedFile(NamedTuple):
    """A file of the log or of a queue: one of several whose bytes are numbered through."""

    first_offset: int
    """Of its first byte."""
    size: int
    path: str

    @property
    def end(self) -> int:
        """Offset of the byte after its last one."""
        return self.first_offset + self.size


Tree = dict[str, list[Entry]]
"""What directories hold, by their paths."""


class Files(Protocol):
    """Reading of files by path. Paths are those of `files_of` with names joined by "/"."""

    is_remote: bool
    """Whether a read has the latency of a network: read more at once, and ahead."""

    def __hash__(self) -> int: ...

    def list(self, path: str) -> list[Entry]:
        """What the directory holds, by name; FileNotFoundError when there is none."""
        ...

    def tree(self, path: str) -> Tree:
        """What the directory and all those below it hold, by their paths; empty without one."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this path."""
        ...

    def read(self, path: str) -> bytes:
        """A small file whole; FileNotFoundError, StoreError when it is not small."""
        ...

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        """Fills the view from this offset of the file on; returns how many bytes it got.

        Less than asked only at the end of the file. FileNotFoundError when there is no file.
        """
        ...

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        """Reads pieces of a file, one after the other, into the view, which they fill end to end.

        Returns how many bytes it got, up to the first piece that the file has not wholly.
        FileNotFoundError when there is no file.
        """
        ...


@dataclass(frozen=True)
class LocalFiles:
    """Files of this machine.

    With `spares_cache`, for a store whose broker is running: what a read had to fetch from the
    disk is dropped from the page cache afterwards, so that a scan of old messages does not push
    out the new ones that consumers are about to pull. What was cached before, stays.
    """

    spares_cache: bool = False
    is_remote = False

    def list(self, path: str) -> list[Entry]:
        entries = []
        with os.scandir(path) as found:
            for each in found:
                try:
                    is_dir = each.is_dir()
                    entries.append(Entry(each.name, 0 if is_dir else each.stat().st_size, is_dir))
                except FileNotFoundError:
                    continue  # deleted since
        return sorted(entries)

    def tree(self, path: str) -> Tree:
        try:
            found = {path: self.list(path)}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        for each in found[path]:
            if each.is_dir:
                found |= self.tree(f"{path}/{each.name}")
        return found

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110 - paths are text here, as for remote files

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return _whole(path, file.read(_MAX_READ_BYTES + 1))

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if self.spares_cache:
                return _read_sparing(descriptor, offset, view)
            return _read_all(descriptor, offset, view)
        finally:
            os.close(descriptor)

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        read = _read_sparing if self.spares_cache else _read_all
        got = 0
        try:
            for offset, length in pieces:
                count = read(descriptor, offset, view[got : got + length])
                got += count
                if count < length:
                    break
        finally:
            os.close(descriptor)
        return got


def _read_all(descriptor: int, offset: int, view: memoryview) -> int:
    got = 0
    while got < len(view):
        count = os.preadv(descriptor, [view[got:]], offset + got)
        if count == 0:
            break
        got += count
    return got


def _read_sparing(descriptor: int, offset: int, view: memoryview) -> int:
    """As _read_all; chunks that were not cached are dropped from the cache again.

    The system's own read-ahead is switched off: it would cache what is read next.
    """
    read_no_further(descriptor)
    got = 0
    while got < len(view):
        at = offset + got
        length = min(_CHUNK_BYTES - at % _CHUNK_BYTES, len(view) - got)
        chunk = view[got : got + length]
        cached = _read_cached(descriptor, at, chunk)
        count = cached + _read_all(descriptor, at + cached, chunk[cached:])
        if cached < count:
            forget(descriptor, at, count)
        got += count
        if count < length:
            break
    return got


def _read_cached(descriptor: int, offset: int, view: memoryview) -> int:
    """How many bytes could be read without waiting for the disk: those in the page cache."""
    try:
        return read_cached(descriptor, view, offset)
    except BlockingIOError:
        return 0
    except OSError as error:
        if error.errno not in _NO_SUCH_FLAG:
            raise
        return _read_all(descriptor, offset, view)  # this file system does not tell


@dataclass(frozen=True)
class ArrowFiles:
    """Files behind `pyarrow.fs`; `uri` says which server and with what credentials."""

    uri: str
    is_remote = True

    def list(self, path: str) -> list[Entry]:
        found = _file_system(self.uri).get_file_info(fs.FileSelector(path))
        return sorted(
            Entry(each.base_name, each.size or 0, each.type == fs.FileType.Directory)
            for each in found
        )

    def tree(self, path: str) -> Tree:
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        found: dict[str, set[Entry]] = {}
        for each in _file_system(self.uri).get_file_info(selector):
            is_dir = each.type == fs.FileType.Directory
            entry = Entry(each.base_name, each.size or 0, is_dir)
            found.setdefault(each.path.rpartition("/")[0], set()).add(entry)
            if is_dir:
                found.setdefault(each.path, set())
        return {name: sorted(entries) for name, entries in found.items()}

    def exists(self, path: str) -> bool:
        return bool(_file_system(self.uri).get_file_info(path).type != fs.FileType.NotFound)

    def read(self, path: str) -> bytes:
        with _file_system(self.uri).open_input_file(path) as file:
            return _whole(path, file.read_at(_MAX_READ_BYTES + 1, 0))

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        got = self._read_into(path, offset, view)
        if got == len(view):
            return got
        # The file may have grown since it was opened.
        _opened.cache_clear()
        return got + self._read_into(path, offset + got, view[got:])

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        ends = list(accumulate(length for _, length in pieces))
        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            counts = pool.map(
                lambda piece, end: self.read_into(path, piece[0], view[end - piece[1] : end]),
                pieces,
                ends,
            )
            for count, (_, length), end in zip(counts, pieces, ends, strict=True):
                if count < length:
                    return end - length + count
        return len(view)

    def _read_into(self, path: str, offset: int, view: memoryview) -> int:
        try:
            file = _opened(self.uri, path)
            length = min(len(view), file.size() - offset)
            if length <= 0:
                return 0
            data = file.read_at(length, offset)
        except FileNotFoundError:
            raise
        except OSError:
            _opened.cache_clear()
            if not self.exists(path):  # deleted since it was opened
                raise FileNotFoundError(errno.ENOENT, "no such file", path) from None
            raise
        view[: len(data)] = data
        return len(data)


def listed_or_none(files: Files, path: str) -> list[Entry]:
    """What the directory holds, by name; nothing where there is no directory."""
    try:
        return files.list(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def numbered(path: str, entries: Iterable[Entry]) -> list[NumberedFile]:
    """The numbered files among what a directory holds, in order; without such as have no byte."""
    return [
        NumberedFile(int(each.name), each.size, f"{path}/{each.name}")
        for each in entries
        if FILE_NAME.fullmatch(each.name) and each.size
    ]


def _file_system(uri: str) -> Any:
    return _from_uri(uri)[0]


@lru_cache(maxsize=_OPEN_REMOTE_FILES)
def _opened(uri: str, path: str) -> Any:
    """Kept open, since opening asks the server for the size; reads are independent of it."""
    return _file_system(uri).open_input_file(path)


@lru_cache(maxsize=_OPEN_REMOTE_FILES)
def _from_uri(uri: str) -> tuple[Any, str]:
    return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]


def _whole(path: str, data: bytes) -> bytes:
    if len(data) > _MAX_READ_BYTES:
        raise StoreError(f"{path} is larger than {_MAX_READ_BYTES} bytes: no configuration file")
    return data


def files_of(uri: str, *, option: str = "storePath") -> tuple[Files, str]:
    """The files that a URI or a local path is among, and its path there, without a final "/".

    `option` is what it was given by, for errors.

    Of S3, `?endpoint_override=host:port&scheme=http&region=...` and `key:secret@` before the
    bucket are understood as pyarrow does; else the environment says. Raises OptionError for a
    scheme that is unknown and StoreError when pyarrow cannot make use of the URI.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme or not rest.startswith("/"):
        return LocalFiles(), _stripped(uri)
    scheme = _ALIASES.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        return LocalFiles(), _stripped(unquote(urlsplit(uri).path))
    if scheme not in _REMOTE:
        raise OptionError.of(option, shown(uri), _VALID)
    parts = urlsplit(scheme + colon + rest)
    # One file system for all stores of a bucket, whatever the path.
    root = parts._replace(path="/").geturl()
    try:
        _, base = _from_uri(root)
    except (pa.ArrowException, ValueError, OSError) as error:
        why = str(error).replace(root, shown(root))
        raise StoreError(f"{shown(uri)} cannot be opened: {why}") from None
    return ArrowFiles(root), _stripped(_stripped(base) + unquote(parts.path))


def _stripped(path: str) -> str:
    return path.rstrip("/") or path[:1]


def shown(uri: str) -> str:
    """The URI for people: without credentials and options."""
    parts = urlsplit(uri)
    if not parts.scheme or not parts.netloc:
        return uri
    host, path = parts.netloc.rpartition("@")[2], parts.path
    if not host.startswith("[") and not host.partition(":")[2].isdecimal() and ":" in host:
        # No port but the beginning of a secret with a slash, which should be %2F.
        host, path = "", path.rpartition("@")[2]
    return f"{parts.scheme}://{host}{path}"
