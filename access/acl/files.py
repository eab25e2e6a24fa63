# SPDX-License-Identifier: Apache-2.0
"""The files of ACL 1: `conf/plain_acl.yml` and all that is below `conf/acl`.

All of them are read together, or not at all: one that is broken leaves everything as it was. Of
accounts with the same key the first counts, in the order of the files' names, those of `conf/acl`
first. Unlike the original, neither the order of a folder's listing nor what a file contained before
makes a difference, and a file that is missing is not created.

All functions may be called in any thread; those that read files block. Java: the loading half of
PlainPermissionManager.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from txrocketmq.access.acl.accounts import Account, account, config_of, texts, unknown_members
from txrocketmq.access.acl.address_patterns import Patterns
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.yaml_file import MAX_BYTES, loaded
from txrocketmq.remoting.protocol.body.auth import AclConfig, PlainAccessConfig
from txrocketmq.remoting.protocol.body.route import DataVersion

FOLDER: Final = "conf/acl"
DEFAULT_FILE: Final = "conf/plain_acl.yml"
ACCOUNTS: Final = "accounts"
WHITE: Final = "globalWhiteRemoteAddresses"
VERSION: Final = "dataVersion"
_KNOWN: Final = (ACCOUNTS, WHITE, VERSION)
_ENDINGS: Final = (".yml", ".yaml")
_MOST_FILES: Final = 1_000
_MOST_WARNINGS: Final = 20

Stamp = tuple[int, int, int, int]
"""The times of the last changes of a file's content and of its mode in ns, its size, and its number
in the file system."""


@dataclass(frozen=True, slots=True, repr=False)
class AclFile:
    """What one file holds."""

    path: str
    stamp: Stamp
    white: tuple[str, ...] = ()
    configs: tuple[PlainAccessConfig, ...] = ()
    version: DataVersion | None = None
    """None if the file is empty."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class AclFiles:
    """What all files hold together."""

    files: tuple[AclFile, ...] = ()
    accounts: Mapping[str, Account] = field(default_factory=dict)
    white: Patterns = field(default_factory=Patterns)
    """From these addresses everybody may do everything, without an account."""
    warnings: tuple[str, ...] = ()

    @property
    def stamps(self) -> Mapping[str, Stamp]:
        """The stamps of the files, by path: others mean that something has changed."""
        return {file.path: file.stamp for file in self.files}

    def config(self) -> AclConfig:
        """Returns all accounts, with their secrets, and all addresses of all files."""
        return AclConfig(
            global_white_addrs=[text for file in self.files for text in file.white],
            plain_access_configs=[each.config for each in self.accounts.values()],
        )

    def versions(self) -> dict[str, DataVersion]:
        """Returns the versions of the files that are not empty, by path."""
        return {file.path: file.version for file in self.files if file.version is not None}


class AclHome:
    """The folder whose `conf` has the files; it is $ROCKETMQ_HOME of the original."""

    def __init__(self, home: str, default_file: str = DEFAULT_FILE) -> None:
        self.folder = os.path.normpath(Path(home) / FOLDER)
        self.default_file = os.path.normpath(Path(home) / default_file)
        """To this file new accounts are written."""

    def paths(self) -> list[str]:
        """Returns the paths of all files that are there, in order. Raises AclError."""
        paths: list[str] = []
        seen: set[str] = set()
        for folder, folders, names in os.walk(self.folder, followlinks=True):
            real = os.path.realpath(folder)
            if real in seen:  # a link that leads back; what is below was found already
                folders.clear()
                continue
            seen.add(real)
            folders.sort()
            paths += [str(Path(folder) / name) for name in names if name.endswith(_ENDINGS)]
            if len(paths) > _MOST_FILES:
                raise AclError(f"{self.folder} contains more than {_MOST_FILES} files of accounts")
        paths.sort()
        if self.default_file not in paths and Path(self.default_file).exists():
            paths.append(self.default_file)
        return paths

    def stamps(self) -> dict[str, Stamp]:
        """Returns the stamps of all files, by path. Raises AclError."""
        return {path: stamp_of(path) for path in self.paths()}

    def read(self) -> AclFiles:
        """Reads all files. Raises AclError with the first thing that is wrong."""
        return together(read_file(path) for path in self.paths())


def stamp_of(path: str) -> Stamp:
    """Returns the stamp of a file. Raises AclError."""
    try:
        stat = Path(path).stat()
    except OSError as error:
        raise AclError(f"cannot read {path}: {error.strerror}") from None
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


def read_file(path: str) -> AclFile:
    """Reads one file. Raises AclError."""
    stamp = stamp_of(path)
    if stamp[2] > MAX_BYTES:
        raise AclError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise AclError(f"cannot read {path}: {error.strerror}") from None
    return file_of(path, stamp, loaded(path, data))


def file_of(path: str, stamp: Stamp, members: Mapping[Any, Any]) -> AclFile:
    """Returns what the content of a file means. Raises AclError, whose text names the file."""
    try:
        entries = _entries(members)
        return AclFile(
            path=path,
            stamp=stamp,
            white=tuple(texts(members, WHITE) or ()),
            configs=tuple(config_of(each) for each in entries),
            version=_version(members) if members else None,
            warnings=tuple(_warnings(path, members, entries)),
        )
    except AclError as error:
        raise AclError(f"{path}: {error}") from None


def together(files: Iterable[AclFile]) -> AclFiles:
    """Returns what files mean together. Raises AclError, whose text names the file."""
    accounts: dict[str, Account] = {}
    owners: dict[str, str] = {}
    all_files, white, warnings = [], list[str](), list[str]()
    for file in files:
        try:
            Patterns(file.white)
            for config in file.configs:
                each = account(config)
                if owners.setdefault(each.access_key, file.path) != file.path:
                    first = owners[each.access_key]
                    warnings.append(f"{file.path}: {each.access_key} is in {first}, which counts")
                else:
                    accounts[each.access_key] = each
        except AclError as error:
            raise AclError(f"{file.path}: {error}") from None
        all_files.append(file)
        white += file.white
        warnings += file.warnings
    return AclFiles(tuple(all_files), accounts, Patterns(white), tuple(warnings[:_MOST_WARNINGS]))


def _entries(members: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    entries = members.get(ACCOUNTS) or []
    if not isinstance(entries, list) or not all(isinstance(each, Mapping) for each in entries):
        raise AclError(f"{ACCOUNTS} must be a list, with '- accessKey: ...' for each account")
    return entries


def _version(members: Mapping[Any, Any]) -> DataVersion:
    versions = members.get(VERSION)
    first = versions[0] if isinstance(versions, list) and versions else None
    if not isinstance(first, Mapping):
        return DataVersion()
    counter, timestamp = first.get("counter", 0), first.get("timestamp", 0)
    if not isinstance(counter, int) or not isinstance(timestamp, int):
        return DataVersion()
    return DataVersion(counter=counter, timestamp=timestamp)


def _warnings(path: str, members: Mapping[Any, Any], entries: list[Any]) -> Iterator[str]:
    for name in members:
        if name not in _KNOWN:
            yield f"{path}: {name} has no effect; known are {', '.join(_KNOWN)}"
    for entry in entries:
        for word in unknown_members(entry):
            yield f"{path}: {word} of the account {entry.get('accessKey')} has no effect"
