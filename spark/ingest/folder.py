# SPDX-License-Identifier: Apache-2.0
"""The folder of a table: on a local disk or behind pyarrow.fs.

A file of a table appears whole or not at all. Parts are first written to a local spool, then put in
their place: on the same disk by a rename after an fsync, on file systems such as HDFS by an upload
under a temporary name and a rename, on object stores (S3, GCS, Azure) by an upload, which is atomic
there. Writing a file again with the same content is harmless.

Paths are relative to the folder and have forward slashes. A folder is picklable and cheap.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

import pyarrow as pa
from pyarrow import fs

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.files import ArrowFiles, LocalFiles, files_of, shown
from txrocketmq.spark.ingest.errors import TableBusy

_LOCK: Final = "_ingest/lock"
_TEMPORARY: Final = "_ingest/tmp"
_COPY_BYTES: Final = 8 << 20
_ATOMIC_UPLOAD: Final = frozenset({"s3", "gcs", "abfs"})
"""Kinds of file systems on which a file appears when its upload ends, in place of an older one."""


class Folder(Protocol):
    """Where a table lies."""

    name: str
    """For people: the path or URI without credentials."""

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; none when it is not there."""

    def walk(self, path: str) -> Iterator[str]:
        """The paths of all files below a folder."""

    def read(self, path: str) -> bytes | None:
        """A whole file; None when it is not there."""

    def open(self, path: str) -> Any:
        """A file of Arrow's to read from; FileNotFoundError when it is not there."""

    def write(self, path: str, content: bytes) -> None:
        """Puts a file in its place, whole or not at all; replaces an older one."""

    def create(self, path: str, content: bytes) -> bool:
        """The same unless the file is there already: then False. See `is_create_atomic`."""

    def spool(self) -> str:
        """A new local folder in which the parts of a task are written."""

    def sweep_spools(self) -> None:
        """Deletes spools and other temporary files that were left; only while no task runs."""

    def publish(self, spooled: str, path: str) -> int:
        """Puts a spooled file in its place and takes it out of the spool; its size in bytes."""

    def delete(self, path: str) -> None:
        """Deletes a file; nothing when it is not there."""

    def delete_folder(self, path: str) -> None:
        """Deletes a folder with all that is in it; nothing when it is not there."""

    def size(self, path: str) -> int | None:
        """Of a file in bytes; None when it is not there."""

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Held while a run writes; TableBusy when another process of this machine holds it."""


def folder_of(uri: str) -> Folder:
    """The folder at a path or URI; OptionError when nothing can be written there."""
    if not uri.strip():
        raise OptionError("option out is empty: name a folder, or a URI")
    files, path = files_of(uri, option="out")
    if isinstance(files, LocalFiles):
        return LocalFolder(os.path.abspath(path))  # noqa: PTH100 - "~" is the shell's
    assert isinstance(files, ArrowFiles)
    return RemoteFolder(uri)


class LocalFolder:
    """On a disk of this machine, or one that looks so."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._root = Path(path)
        there = next(each for each in (self._root, *self._root.parents) if each.exists())
        if not there.is_dir():
            raise OptionError(f"option out={path!r}: {there} is a file; a table is a folder")

    def list(self, path: str) -> list[str]:
        try:
            return sorted(each.name for each in (self._root / path).iterdir())
        except FileNotFoundError:
            return []

    def walk(self, path: str) -> Iterator[str]:
        for folder, folders, names in os.walk(self._root / path):
            folders.sort()
            inside = PurePosixPath(Path(folder).relative_to(self._root))
            yield from (str(inside / name) for name in sorted(names))

    def read(self, path: str) -> bytes | None:
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            return None

    def open(self, path: str) -> Any:
        return pa.OSFile(str(self._root / path))

    def write(self, path: str, content: bytes) -> None:
        with self._written(content) as temporary:
            temporary.replace(self._place(path))
        _sync_folder((self._root / path).parent)

    def create(self, path: str, content: bytes) -> bool:
        with self._written(content) as temporary:
            try:
                os.link(temporary, self._place(path))
            except FileExistsError:
                return False
        _sync_folder((self._root / path).parent)
        return True

    @contextlib.contextmanager
    def _written(self, content: bytes) -> Iterator[Path]:
        """A temporary file; gone afterwards, also after an error."""
        handle, name = tempfile.mkstemp(dir=self._temporary())
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
                file.write(content)
                file.flush()
                os.fsync(handle)
                os.fchmod(handle, 0o644)
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def _temporary(self) -> Path:
        folder = self._root / _TEMPORARY
        _make_folder(folder)
        return folder

    def _place(self, path: str) -> Path:
        """Where a file goes: its folder is there."""
        place = self._root / path
        _make_folder(place.parent)
        return place

    def spool(self) -> str:
        return tempfile.mkdtemp(dir=self._temporary())

    def sweep_spools(self) -> None:
        self.delete_folder(_TEMPORARY)

    def publish(self, spooled: str, path: str) -> int:
        target = self._place(path)
        with open(spooled, "rb") as file:  # noqa: PTH123 - spools are text
            os.fsync(file.fileno())
            size_bytes = os.fstat(file.fileno()).st_size
        Path(spooled).replace(target)
        _sync_folder(target.parent)
        return size_bytes

    def delete(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)

    def delete_folder(self, path: str) -> None:
        shutil.rmtree(self._root / path, ignore_errors=True)

    def size(self, path: str) -> int | None:
        file = self._root / path
        return file.stat().st_size if file.is_file() else None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        with self._place(_LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TableBusy(
                    f"another run is writing to {self.name}: wait for its end, or write elsewhere"
                ) from None
            yield


def _make_folder(path: Path) -> None:
    """With those that it lies in; all of them on the disk, as what will lie in it."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class RemoteFolder:
    """Behind pyarrow.fs. Parts are spooled to a local disk: a part that fails is never uploaded."""

    def __init__(self, uri: str) -> None:
        self.name = shown(uri)
        self._uri = uri
        self._opened: tuple[Any, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def _files(self) -> Any:
        return self._open()[0]

    @property
    def _replaces_at_once(self) -> bool:
        return self._files.type_name in _ATOMIC_UPLOAD

    def _path(self, path: str) -> str:
        return f"{self._open()[1]}/{path}".rstrip("/")

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            files, path = files_of(self._uri)
            assert isinstance(files, ArrowFiles)
            self._opened = fs.FileSystem.from_uri(files.uri)[0], path
        return self._opened

    def _entries(self, path: str, *, recursive: bool) -> list[Any]:
        selector = fs.FileSelector(self._path(path), allow_not_found=True, recursive=recursive)
        return list(self._files.get_file_info(selector))

    def list(self, path: str) -> list[str]:
        return sorted(entry.base_name for entry in self._entries(path, recursive=False))

    def walk(self, path: str) -> Iterator[str]:
        root = self._open()[1]
        for entry in sorted(self._entries(path, recursive=True), key=lambda each: each.path):
            if entry.type == fs.FileType.File:
                yield entry.path.removeprefix(root).lstrip("/")

    def read(self, path: str) -> bytes | None:
        try:
            with self._files.open_input_stream(self._path(path)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def open(self, path: str) -> Any:
        return self._files.open_input_file(self._path(path))

    def write(self, path: str, content: bytes) -> None:
        self._upload(pa.BufferReader(content), path)

    def create(self, path: str, content: bytes) -> bool:
        if self.size(path) is not None:
            return False
        self.write(path, content)
        return self.read(path) == content

    def spool(self) -> str:
        _sweep_scratch()  # of this machine, which need not be the one of the command
        return tempfile.mkdtemp(prefix=f"{_scratch_prefix()}{os.getpid()}-")

    def sweep_spools(self) -> None:
        self.delete_folder(_TEMPORARY)
        _sweep_scratch()

    def publish(self, spooled: str, path: str) -> int:
        with pa.memory_map(spooled) as source:
            size_bytes: int = source.size()
            # An attempt before this one may have put the same content there, and even committed
            # it: where a file cannot be replaced at once there must be no moment without it.
            if self._replaces_at_once or self.size(path) != size_bytes:
                self._upload(source, path)
        if self.size(path) != size_bytes:
            raise OSError(f"{self.name}: {path} has {self.size(path)} bytes, not {size_bytes}")
        Path(spooled).unlink()
        return size_bytes

    def _upload(self, source: Any, path: str) -> None:
        final = self._path(path)
        target = final
        if not self._replaces_at_once:
            target = self._path(f"{_TEMPORARY}/{uuid.uuid4().hex}")
            self._files.create_dir(os.path.dirname(target))  # noqa: PTH120 - a path inside a URI
            self._files.create_dir(os.path.dirname(final))  # noqa: PTH120
        with self._files.open_output_stream(target) as stream:
            while piece := source.read(_COPY_BYTES):
                stream.write(piece)
        if target != final:
            self.delete(path)
            self._files.move(target, final)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._path(path))

    def delete_folder(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.delete_dir(self._path(path))

    def size(self, path: str) -> int | None:
        found = self._files.get_file_info(self._path(path))
        return found.size if found.type == fs.FileType.File else None

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """None: object stores have no locks; `Ledger` notices a plan that was written over."""
        return contextlib.nullcontext()


def _scratch_prefix() -> str:
    return f"txrocketmq-ingest-{socket.gethostname()}-"


def _sweep_scratch() -> None:
    """Deletes the spools of processes of this machine that are gone."""
    prefix = _scratch_prefix()
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        process = left.name.removeprefix(prefix).partition("-")[0]
        if process.isdecimal() and not Path("/proc", process).exists():
            shutil.rmtree(left, ignore_errors=True)
