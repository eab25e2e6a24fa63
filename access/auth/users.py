# SPDX-License-Identifier: Apache-2.0
"""Users: names with passwords, which are the keys of their signatures.

A Super user may do everything, a Normal one what policies allow. Passwords are kept as they are,
since a signature can only be checked with the key it was made with.
Counterpart of User and AuthenticationMetadataManagerImpl, whose remarks these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Self

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.signer import Signer
from txrocketmq.remoting.protocol.body.auth import UserInfo
from txrocketmq.remoting.protocol.body.base import BodyError


class UserType(IntEnum):
    """Whether policies count for a user; the numbers are those that the original stores."""

    SUPER = 1
    NORMAL = 2

    @property
    def text(self) -> str:
        """The name as requests write it."""
        return self.name.capitalize()


class UserStatus(IntEnum):
    """Whether a user may do anything at all."""

    ENABLE = 1
    DISABLE = 2

    @property
    def text(self) -> str:
        """The name as requests write it."""
        return self.name.lower()


@dataclass(frozen=True)
class User:
    """A user. Its password is never part of its text."""

    name: str
    password: str = field(repr=False)
    type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLE

    @cached_property
    def signer(self) -> Signer:
        """What checks the signatures of this user."""
        return Signer(self.password)

    @property
    def is_super(self) -> bool:
        """Whether the user may do everything."""
        return self.type is UserType.SUPER

    def info(self, *, with_password: bool) -> UserInfo:
        """Returns the user as answers and files have it."""
        return UserInfo(
            username=self.name,
            password=self.password if with_password else None,
            user_type=self.type.text,
            user_status=self.status.text,
        )

    @classmethod
    def stored(cls, name: str, content: Any) -> Self:
        """Reads a user of the file. Raises ValueError if something is missing or unknown.

        Its text repeats nothing that stands where a password is expected.
        """
        try:
            info = UserInfo.from_json(content)
        except BodyError:
            raise ValueError(f"the user {name} is no object of texts") from None
        if not info.password:
            raise ValueError(f"the user {name} has no password")
        return cls(
            name,
            info.password,
            _known(UserType, info.user_type),
            _known(UserStatus, info.user_status),
        )


def entries_of(content: Mapping[str, Any], table: str) -> Mapping[str, Any]:
    """Returns the entries of a table in a file by user; none if it is not there. Raises ValueError.

    The text of the error shows nothing of the file.
    """
    entries = content.get(table)
    if entries is None:
        return {}
    if type(entries) is not dict:
        raise ValueError(f"{table} must be an object, with an entry for each user")
    return entries


def _known(kind: type[Any], text: str | None) -> Any:
    """Returns a member by its name, in upper or lower case. Raises ValueError for other texts."""
    try:
        return kind[(text or "").upper()]
    except KeyError:
        names = ", ".join(each.text for each in kind)
        raise ValueError(f"{text!r} is none of {names}") from None


def member(kind: type[Any], text: str | None) -> Any | None:
    """Returns a member by its name, in upper or lower case, or None for a text that is none."""
    return kind.__members__.get((text or "").upper())


def refused(remark: str, code: int = ResponseCode.NO_PERMISSION) -> ResponseError:
    """Returns the answer to a change that is not possible; most of them have the code 16."""
    return ResponseError(code, remark)


class Users:
    """All users by name. Each change is of one user, and makes a new object of it."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}

    def get(self, name: str) -> User | None:
        """Returns the user with this name, whose case counts."""
        return self._users.get(name)

    def all(self) -> dict[str, User]:
        """Every user, as a copy of the table."""
        return dict(self._users)

    def hold(self, users: Mapping[str, User]) -> None:
        """Holds these and no others."""
        self._users = dict(users)

    def create(self, name: str, info: UserInfo) -> User:
        """Creates a user. Raises ResponseError."""
        if not name.strip():
            raise refused("username can not be blank")
        if not (info.password or "").strip():
            raise refused("password can not be blank")
        if name in self._users:
            raise refused("The user is existed")
        user = self._changed(User(name, info.password or ""), replace(info, password=None))
        self._users[name] = user
        return user

    def update(self, name: str, info: UserInfo) -> User:
        """Changes what is given of a user, and leaves the rest. Raises ResponseError."""
        before = self._users.get(name)
        if before is None:
            raise refused("The user is not exist")
        user = self._users[name] = self._changed(before, info)
        return user

    def delete(self, name: str) -> bool:
        """Deletes a user; returns False if there is none."""
        return self._users.pop(name, None) is not None

    @staticmethod
    def _changed(user: User, info: UserInfo) -> User:
        changes: dict[str, Any] = {}
        if (info.password or "").strip():
            changes["password"] = info.password
        if (kind := member(UserType, info.user_type)) is not None:
            changes["type"] = kind
        if (status := member(UserStatus, info.user_status)) is not None:
            changes["status"] = status
        return replace(user, **changes)
