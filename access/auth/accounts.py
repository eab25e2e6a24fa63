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
    Steps,
    at_once,
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
        at_once(self.adding_acl(acl))

    def adding_acl(self, acl: Acl) -> Steps[None]:
        """Does the same in steps, of which the last one lets it count."""
        if self.users.get(acl.user) is None:
            raise refused(f"The subject of {SUBJECT_PREFIX}{acl.user} is not exist.")

        def added(before: Acl | None) -> Steps[Acl]:
            return _itself(acl) if before is None else before.merging(acl)

        return (yield from self._changing(acl.user, added))

    def deleting_acl(self, name: str, kind: PolicyType, resource: Resource | None) -> Steps[None]:
        """Deletes one entry of a user in steps, or all of them if there is no resource.

        Raises ResponseError if there is nothing to delete from.
        """
        if self.acl_of_user(name) is None:
            raise refused("The acl is not exist.")

        def left(before: Acl | None) -> Steps[Acl]:
            if before is None or resource is None:
                return _itself(Acl(name, {}))
            return before.removing(kind, resource)

        return (yield from self._changing(name, left))

    def _changing(self, name: str, make: Callable[[Acl | None], Steps[Acl]]) -> Steps[None]:
        """Makes other policies of a user from those that it has; what they are found by is made
        now, not for a message. It begins again if the policies are others meanwhile, and then does
        all at once.
        """
        before = self._acls.get(name)
        made = yield from self._made(name, make)
        if self._acls.get(name) is not before:
            made = at_once(self._made(name, make))
        if self.users.get(name) is None:
            raise refused(f"The subject of {SUBJECT_PREFIX}{name} is not exist.")
        if made.policies:
            self._acls[name] = made
        else:
            self._acls.pop(name, None)
        tell_all(self.on_acls)

    def _made(self, name: str, make: Callable[[Acl | None], Steps[Acl]]) -> Steps[Acl]:
        made = yield from make(self._acls.get(name))
        yield from made.indexing()
        return made

    def acl_of_user(self, name: str) -> Acl | None:
        """Returns the policies of a user that there is. Raises ResponseError."""
        if self.users.get(name) is None:
            raise refused("The subject is not exist.")
        return self._acls.get(name)


def _itself(acl: Acl) -> Steps[Acl]:
    return acl
    yield
