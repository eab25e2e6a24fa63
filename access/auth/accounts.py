# SPDX-License-Identifier: Apache-2.0
"""Accounts: the users of a server and their policies, and the changes that keep both in step.

Every change counts for the next request already. Whoever keeps accounts in files, or remembers
decisions, hears of it. Counterpart of AuthenticationMetadataManagerImpl and
AuthorizationMetadataManagerImpl, whose remarks these are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from txrocketmq.access.auth.policies import (
    SUBJECT_PREFIX,
    Acl,
    PolicyType,
    Resource,
)
from txrocketmq.access.auth.users import User, Users, refused
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.protocol.body.auth import UserInfo


class Accounts:
    """Users and policies. The two lists have functions that are called after each change."""

    def __init__(self) -> None:
        self.users = Users()
        self._acls: dict[str, Acl] = {}
        self.on_users: list[Callable[[], None]] = []
        self.on_acls: list[Callable[[], None]] = []

    # ----------------------------------------------------------------------------- users

    def hold_users(self, users: Mapping[str, User]) -> None:
        """Holds these users and no others, as a file has them."""
        self.users.hold(users)
        tell_all(self.on_users)

    def create_user(self, name: str, info: UserInfo) -> User:
        """Creates a user. Raises ResponseError."""
        user = self.users.create(name, info)
        tell_all(self.on_users)
        return user

    def update_user(self, name: str, info: UserInfo) -> User:
        """Changes what is given of a user. Raises ResponseError."""
        user = self.users.update(name, info)
        tell_all(self.on_users)
        return user

    def delete_user(self, name: str) -> bool:
        """Deletes a user and its policies; returns False if there is none."""
        if not self.users.delete(name):
            return False
        if self._acls.pop(name, None) is not None:
            tell_all(self.on_acls)
        tell_all(self.on_users)
        return True

    def ensure(self, user: User) -> bool:
        """Creates this user unless there is one of its name; returns whether it was created."""
        if self.users.get(user.name) is not None:
            return False
        self.create_user(user.name, user.info(with_password=True))
        return True

    # -------------------------------------------------------------------------- policies

    def hold_acls(self, acls: Mapping[str, Acl]) -> None:
        """Holds these policies and no others, as a file has them."""
        for acl in acls.values():
            acl.make_index()
        self._acls = dict(acls)
        tell_all(self.on_acls)

    def acl(self, name: str) -> Acl | None:
        """Returns the policies of a user, or None if it has none."""
        return self._acls.get(name)

    def acls(self) -> dict[str, Acl]:
        """All policies by user, as a copy of the table."""
        return dict(self._acls)

    def add_acl(self, acl: Acl) -> None:
        """Adds policies to those of a user. Raises ResponseError if there is no such user."""
        if self.users.get(acl.user) is None:
            raise refused(f"The subject of {SUBJECT_PREFIX}{acl.user} is not exist.")
        before = self._acls.get(acl.user)
        self._hold_acl(acl if before is None else before.merged(acl))

    def delete_acl(self, name: str, kind: PolicyType, resource: Resource | None) -> None:
        """Deletes one entry of a user, or without a resource all of them. Raises ResponseError."""
        before = self.acl_of_user(name)
        if before is None:
            raise refused("The acl is not exist.")
        left = None if resource is None else before.without(kind, resource)
        if left is None or not left.policies:
            del self._acls[name]
            tell_all(self.on_acls)
        else:
            self._hold_acl(left)

    def _hold_acl(self, acl: Acl) -> None:
        """Holds the policies of a user; what they are found by is made now, not for a message."""
        acl.make_index()
        self._acls[acl.user] = acl
        tell_all(self.on_acls)

    def acl_of_user(self, name: str) -> Acl | None:
        """Returns the policies of a user that there is. Raises ResponseError."""
        if self.users.get(name) is None:
            raise refused("The subject is not exist.")
        return self._acls.get(name)
