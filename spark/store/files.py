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
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from txrocketmq.remoting.process.operating_system import forget, read_cached, read_no_further
from txrocketmq.spark.arrow.errors import OptionError, StoreError

FILE_NAME: Final = re.compile("[0-9]{20}")
"""The names of numbered files."""
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Hadoop's names of URI schemes, and pyarrow's names of the same."""
_REMOTE: Final = ("s3", "gs", "hdfs", "abfs", "abfss")
_VALID: Final = "a local directory, file:, s3:, gs:, hdfs:, abfs:"
_CHUNK_BYTES: Final = 4 << 20
"""The unit in which a read tells what was in the page cache from what was not."""
_MAX_READ_BYTES: Final = 64 << 20
"""The largest file that `read` takes whole: configuration, never a log."""
_OPEN_REMOTE_FILES: Final = 64
_PARALLEL_READS: Final = 8
"""How many reads run at once; each spends most of its time waiting for the network."""
_NO_SUCH_FLAG: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


Piece = tuple[int, int]
"""A piece of a file: its offset and its length."""


class Entry(NamedTuple):
    """A file or directory in a directory; `size` in bytes, 0 for a directory."""

    name: str
    size: int
    is_dir: bool


class NumberedFile(NamedTuple):
    """A file of a commit log or queue, which together have one continuous numbering of bytes."""

    first_offset: int
    """The offset of the file's first byte in that numbering."""
    size: int
    path: str

    @property
    def end(self) -> int:
        """Offset after its last byte."""
        return self.first_offset + self.size


Tree = dict[str, list[Entry]]
"""The entries of several directories, by the paths of the directories."""


class Files(Protocol):
    """Reads files by path: the root that `files_of` gives, with names joined by "/"."""

    is_remote: bool
    """Whether reads wait for a network, so that it pays to read more at once, and ahead."""

    def __hash__(self) -> int: ...

    def list(self, path: str) -> list[Entry]:
        """Lists a directory, sorted by name. Raises FileNotFoundError when there is none."""
        ...

    def tree(self, path: str) -> Tree:
        """Lists a directory and all directories below it; empty when it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this path."""
        ...

    def modified_ms(self, path: str) -> int:
        """Returns when the file was written last; 0 when there is none, or nothing tells."""
        ...

    def read(self, path: str) -> bytes:
        """Reads a small file. Raises FileNotFoundError, and StoreError when it is too large."""
        ...

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        """Reads from this offset of the file into the view; returns how many bytes were read.

        They are fewer than the view holds only at the end of the file. Raises FileNotFoundError.
        """
        ...

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        """Reads pieces of a file into the view, which they fill end to end.

        Returns how many bytes were read; it stops at the first piece that the file does not wholly
        have. Raises FileNotFoundError when there is no file.
        """
        ...


@dataclass(frozen=True)
class LocalFiles:
    """Files of this machine.

    `spares_cache` is for a store whose broker is running: what a read had to fetch from the disk is
    then dropped from the page cache, so that scanning old messages does not evict the new ones that
    consumers are about to pull. What was cached before stays in the cache.
    """

    spares_cache: bool = False
    is_remote = False

    def list(self, path: str) -> list[Entry]:
        with _may_read(path):
            return _entries(path)

    def changed_ns(self, path: str) -> int:
        """Returns when a directory got or lost a file, in ns. Raises FileNotFoundError."""
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - as in exists

    def size_of(self, path: str) -> int:
        """Returns the size of a file; 0 if it is gone."""
        try:
            return os.stat(path).st_size  # noqa: PTH116 - as in exists
        except FileNotFoundError:
            return 0

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

    def modified_ms(self, path: str) -> int:
        try:
            return os.stat(path).st_mtime_ns // 1_000_000  # noqa: PTH116 - as above
        except FileNotFoundError:
            return 0

    def read(self, path: str) -> bytes:
        with _may_read(path), open(path, "rb") as file:  # noqa: PTH123 - as above
            return _whole(path, file.read(_MAX_READ_BYTES + 1))

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        descriptor = _opened_locally(path)
        try:
            if self.spares_cache:
                return _read_sparing(descriptor, offset, view)
            return _read_all(descriptor, offset, view)
        finally:
            os.close(descriptor)

    def open(self, path: str) -> OpenFile:
        """Opens a file for several small reads. Raises FileNotFoundError."""
        return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), spares_cache=self.spares_cache)

    def read_pieces(self, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        descriptor = _opened_locally(path)
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


def _entries(path: str) -> list[Entry]:
    entries = []
    with os.scandir(path) as found:
        for each in found:
            try:
                is_dir = each.is_dir()
                entries.append(Entry(each.name, 0 if is_dir else each.stat().st_size, is_dir))
            except FileNotFoundError:
                continue  # deleted since
    return sorted(entries)


@contextmanager
def _may_read(path: str) -> Iterator[None]:
    """Turns the error of a file or directory that may not be read into a sentence."""
    try:
        yield
    except PermissionError:
        raise _not_allowed(path) from None


def _opened_locally(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        raise _not_allowed(path) from None


def _not_allowed(path: str) -> StoreError:
    return StoreError(
        f"{path} may not be read by this process, whose user has the id {os.geteuid()}: give that"
        " user the right to read the store, and to list its directories, on each machine that reads"
    )


def _read_all(descriptor: int, offset: int, view: memoryview) -> int:
    got = 0
    while got < len(view):
        count = os.preadv(descriptor, [view[got:]], offset + got)
        if count == 0:
            break
        got += count
    return got


def _read_sparing(descriptor: int, offset: int, view: memoryview) -> int:
    """Reads like _read_all, and drops chunks from the page cache that were not cached before.

    The system's own read-ahead is switched off, since it would cache what is read next.
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
    """Reads what is in the page cache, without waiting for the disk; returns how many bytes."""
    try:
        return read_cached(descriptor, view, offset)
    except BlockingIOError:
        return 0
    except OSError as error:
        if error.errno not in _NO_SUCH_FLAG:
            raise
        return _read_all(descriptor, offset, view)  # this file system does not tell


class OpenFile:
    """A local file that is open; see `LocalFiles.open`. Close it."""

    def __init__(self, descriptor: int, *, spares_cache: bool) -> None:
        self._descriptor = descriptor
        self._spares_cache = spares_cache

    def read(self, offset: int, length: int) -> bytes:
        """Returns these bytes, fewer only at the end of the file."""
        if not self._spares_cache:
            return os.pread(self._descriptor, length, offset)
        data = bytearray(length)
        return bytes(data[: _read_sparing(self._descriptor, offset, memoryview(data))])

    def first_hole(self) -> int:
        """Returns where the first bytes are that were never written; the size of the file at most.

        What file systems without holes never wrote counts as written.
        """
        try:
            return os.lseek(self._descriptor, 0, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # an empty file
                return 0
            if error.errno not in _NO_SUCH_FLAG:
                raise
            return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True)
class ArrowFiles:
    """Files behind `pyarrow.fs`; `uri` names the server and the credentials."""

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

    def modified_ms(self, path: str) -> int:
        return int(_file_system(self.uri).get_file_info(path).mtime_ns or 0) // 1_000_000

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
    """Lists a directory; empty where there is none."""
    try:
        return files.list(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def numbered(path: str, entries: Iterable[Entry]) -> list[NumberedFile]:
    """Returns the numbered files among the entries of a directory, in order, without empty ones."""
    return [
        NumberedFile(int(each.name), each.size, f"{path}/{each.name}")
        for each in entries
        if FILE_NAME.fullmatch(each.name) and each.size
    ]


def _file_system(uri: str) -> Any:
    return _from_uri(uri)[0]


@lru_cache(maxsize=_OPEN_REMOTE_FILES)
def _opened(uri: str, path: str) -> Any:
    """Opens a file and keeps it open, since opening asks the server for the size."""
    return _file_system(uri).open_input_file(path)


@lru_cache(maxsize=_OPEN_REMOTE_FILES)
def _from_uri(uri: str) -> tuple[Any, str]:
    return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]


def _whole(path: str, data: bytes) -> bytes:
    if len(data) > _MAX_READ_BYTES:
        raise StoreError(f"{path} is larger than {_MAX_READ_BYTES} bytes: no configuration file")
    return data


def files_of(uri: str, *, option: str = "storePath") -> tuple[Files, str]:
    """Returns the files that a URI or local path refers to, and the path there without a final "/".

    `option` is the name of the option that the URI came from, for error messages.

    For S3, `?endpoint_override=host:port&scheme=http&region=...` and `key:secret@` before the
    bucket mean what they mean to pyarrow; otherwise the environment decides. Raises OptionError for
    an unknown scheme, and StoreError when pyarrow cannot use the URI.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme or not rest.startswith("/"):
        return LocalFiles(), _stripped(uri)
    scheme = _ALIASES.get(scheme.lower(), scheme.lower())
    try:
        urlsplit(uri)
    except ValueError as error:  # such as a bracket that is not closed
        raise OptionError(f"option {option}: {uri} is not a valid URI: {error}") from None
    if scheme == "file":
        return LocalFiles(), _stripped(unquote(urlsplit(uri).path))
    if scheme not in _REMOTE:
        raise OptionError.of(option, shown(uri), _VALID)
    parts = urlsplit(scheme + colon + rest)
    # All stores of a bucket share one file system, whatever their paths.
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
    """Returns the URI without credentials and options, to be shown to people."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if not parts.scheme or not parts.netloc:
        return uri
    host, path = parts.netloc.rpartition("@")[2], parts.path
    if not host.startswith("[") and not host.partition(":")[2].isdecimal() and ":" in host:
        # This is no port, but the start of a secret with a slash, which should be %2F.
        host, path = "", path.rpartition("@")[2]
    return f"{parts.scheme}://{host}{path}"
