# SPDX-License-Identifier: Apache-2.0
"""Changes to the files of ACL 1 that administrators ask for: what the changed file holds then.

What comes out is checked before it is written, with all other files, so no change leaves files that
cannot be read. Only files that were read are changed, and the one for new accounts. Comments in a
changed file are lost, as in the original. Java: updateAccessConfig, deleteAccessConfig and
updateGlobalWhiteAddrsConfig of PlainPermissionManager.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from txrocketmq.access.acl.accounts import MEMBERS, check_keys
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.files import (
    ACCOUNTS,
    VERSION,
    WHITE,
    AclFile,
    AclFiles,
    AclHome,
    file_of,
    stamp_of,
    together,
)
from txrocketmq.access.acl.permissions import check_entries
from txrocketmq.access.acl.yaml_file import loaded, write
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig

Members = dict[Any, Any]
Edit = Callable[[AclHome, AclFiles], dict[str, Members]]
"""Returns the new content of each file that changes, by path. Raises AclError."""
_NO_STAMP: Final = (0, 0, 0, 0)


def applied(edit: Edit, home: AclHome, now_ms: int) -> AclFiles:
    """Changes files, and returns what all of them hold then; to be called in a thread.

    Raises AclError if there is something wrong; then no file was changed. Raises AclError as well
    if a file cannot be written.
    """
    files = home.read()
    changed = edit(home, files)
    for members in changed.values():
        _count(members, now_ms)
    together(_replaced(files, changed))
    for path, members in changed.items():
        try:
            write(path, members)
        except OSError as error:
            raise AclError(f"cannot write {path}: {error.strerror}") from error
    return together(_replaced(files, changed, is_written=True))


def update(config: PlainAccessConfig) -> Edit:
    """Creates an account, or changes what is given of one. Raises AclError."""
    check_keys(config)
    check_entries(config.topic_perms or ())
    check_entries(config.group_perms or ())
    given = {
        name: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        for field, name in MEMBERS.items()
        if (value := getattr(config, field)) is not None
    }
    for name in ("defaultTopicPerm", "defaultGroupPerm"):
        if not given.get(name, "x"):
            del given[name]

    def edit(home: AclHome, files: AclFiles) -> dict[str, Members]:
        for file in files.files:
            if any(each.access_key == config.access_key for each in file.configs):
                members = _members(file.path)
                for account in _of_key(members, config.access_key):
                    account.update(given)
                return {file.path: members}
        members = _members(home.default_file)
        members[ACCOUNTS] = [*(members.get(ACCOUNTS) or []), given]
        return {home.default_file: members}

    return edit


def delete(access_key: str) -> Edit:
    """Deletes an account from all files, so that none takes its place. Raises AclError."""

    def edit(_: AclHome, files: AclFiles) -> dict[str, Members]:
        changed = {}
        for file in files.files:
            if any(each.access_key == access_key for each in file.configs):
                members = changed[file.path] = _members(file.path)
                for account in _of_key(members, access_key):
                    members[ACCOUNTS].remove(account)
        if not changed:
            raise AclError("there is no such account")
        return changed

    return edit


def set_white(addresses: Sequence[str], path: str = "") -> Edit:
    """Sets the global white addresses of a file, by default of that for new accounts.

    Raises AclError.
    """

    def edit(home: AclHome, files: AclFiles) -> dict[str, Members]:
        chosen = os.path.normpath(path) if path.strip() else home.default_file
        known = {home.default_file, *(file.path for file in files.files)}
        if chosen not in known:
            raise AclError(f"{path} is none of the files of accounts: {', '.join(sorted(known))}")
        members = _members(chosen)
        members[WHITE] = [each for each in addresses if each.strip()]
        return {chosen: members}

    return edit


def addresses_of(text: str) -> list[str]:
    """Returns the patterns of a list with commas, of which some may be within braces."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "{") - (char == "}" and depth > 0)
        if char == "," and not depth:
            found.append("")
        else:
            found[-1] += char
    return found


def _members(path: str) -> Members:
    try:
        return loaded(path, Path(path).read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise AclError(f"cannot read {path}: {error.strerror}") from None


def _of_key(members: Members, access_key: str | None) -> list[Members]:
    """The accounts of a file with this key; of these, the last one counts."""
    accounts = members.get(ACCOUNTS) or []
    return [each for each in accounts if str(each.get("accessKey")) == access_key]


def _count(members: Members, now_ms: int) -> None:
    versions = members.get(VERSION)
    first = versions[0] if isinstance(versions, list) and versions else {}
    counter = first.get("counter") if isinstance(first, dict) else None
    members[VERSION] = [
        {"counter": (counter if isinstance(counter, int) else 0) + 1, "timestamp": now_ms}
    ]


def _replaced(
    files: AclFiles, changed: dict[str, Members], *, is_written: bool = False
) -> list[AclFile]:
    def new(path: str) -> AclFile:
        return file_of(path, stamp_of(path) if is_written else _NO_STAMP, changed[path])

    before = [file.path for file in files.files]
    replaced = [new(file.path) if file.path in changed else file for file in files.files]
    return replaced + [new(path) for path in changed if path not in before]
