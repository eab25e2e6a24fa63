# SPDX-License-Identifier: Apache-2.0
"""Users and policies in the files users.json and acls.json of `config/`.

Both hold what requests show, and nobody but the owner may read them, since passwords are the keys
of signatures. The original keeps the same in two folders of RocksDB, `users` and `acls`, and
ignores these files, as this broker ignores those folders. Counterpart of
LocalAuthenticationMetadataProvider and LocalAuthorizationMetadataProvider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.policies import Acl, acl_of
from txrocketmq.access.auth.users import User, entries_of
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.encoded_table import EncodedTable
from txrocketmq.broker.work.config_table import ConfigTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.body.auth import AclInfo
from txrocketmq.remoting.serialize.json import (
    HOLE,
    encode_pretty_member,
)


class UserTable(ConfigTable[dict[str, User]]):
    """The users in users.json."""

    def __init__(self, file: JsonFile, accounts: Accounts) -> None:
        super().__init__(file)
        self._accounts = accounts
        self._encoded: EncodedTable[User] = EncodedTable(_encode_user)
        accounts.on_users.append(self._changed)

    def decode(self, content: Mapping[str, Any]) -> dict[str, User]:
        """Reads the users by name."""
        return {
            name: User.stored(name, value)
            for name, value in entries_of(content, "userTable").items()
        }

    def _hold(self, held: dict[str, User]) -> Steps[None]:
        self._accounts.hold_users(held)
        self._file.is_stale = False
        return no_listeners()

    def _changed(self) -> None:
        self._file.is_stale = True

    def _snapshot(self) -> Callable[[], bytes]:
        return partial(self._encoded.text, {"userTable": HOLE}, self._accounts.users.all())


class AclTable(ConfigTable[dict[str, Acl]]):
    """The policies in acls.json."""

    def __init__(self, file: JsonFile, accounts: Accounts) -> None:
        super().__init__(file)
        self._accounts = accounts
        self._encoded: EncodedTable[Acl] = EncodedTable(_encode_acl)
        accounts.on_acls.append(self._changed)

    def decode(self, content: Mapping[str, Any]) -> dict[str, Acl]:
        """Reads the policies by user."""
        acls = {}
        for name, value in entries_of(content, "aclTable").items():
            try:
                acls[name] = acl_of(name, AclInfo.from_json(value))
            except ResponseError as error:
                raise ValueError(f"the policies of {name}: {error.remark}") from None
        return acls

    def _hold(self, held: dict[str, Acl]) -> Steps[None]:
        """Leaves out the policies of users that there are not: a crash may have come between."""
        users = self._accounts.users
        known = {name: acl for name, acl in held.items() if users.get(name) is not None}
        self._accounts.hold_acls(known)
        self._file.is_stale = len(known) != len(held)
        return no_listeners()

    def _changed(self) -> None:
        self._file.is_stale = True

    def _snapshot(self) -> Callable[[], bytes]:
        return partial(self._encoded.text, {"aclTable": HOLE}, self._accounts.acls())


def _encode_user(name: str, user: User) -> bytes:
    return encode_pretty_member(name, user.info(with_password=True).to_json(), 2)


def _encode_acl(name: str, acl: Acl) -> bytes:
    info = acl.info()
    return encode_pretty_member(name, {} if info is None else info.to_json(), 2)
