# SPDX-License-Identifier: Apache-2.0
"""Accounts of ACL 1, as the members of a file of YAML describe them.

What has another type than it should is an error that says where, since a permission that is passed
over in silence is a hole, or a program that stands still. A number counts as its digits, as in the
original. Java: PlainAccessConfig, PlainAccessResource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txrocketmq.access.acl.address_patterns import NOBODY, Pattern, pattern
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.permissions import permission, permissions
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.primitives.unknown_key import unknown_keys
from txrocketmq.remoting.primitives.value_text import HIDDEN
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig

MEMBERS: Final = {
    "access_key": "accessKey",
    "secret_key": "secretKey",
    "white_remote_address": "whiteRemoteAddress",
    "admin": "admin",
    "default_topic_perm": "defaultTopicPerm",
    "default_group_perm": "defaultGroupPerm",
    "topic_perms": "topicPerms",
    "group_perms": "groupPerms",
}
"""The members of an account in a file, by the names of PlainAccessConfig's fields."""
_SHORTEST: Final = 7
"""How many characters a key has at least."""
_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, repr=False)
class Account:
    """An account that can be used, and what it was made of."""

    config: PlainAccessConfig
    access_key: str
    secret_key: str
    white: Pattern
    """From these addresses the account needs neither signature nor permissions."""
    is_admin: bool
    default_topic: int
    default_group: int
    permissions: Mapping[str, int]
    """By topic; a group has the name of its retry topic."""

    def __repr__(self) -> str:
        """Leaves out the secret key, since this text may get into a log."""
        return f"Account({self.access_key!r}, is_admin={self.is_admin})"

    @property
    def may_all(self) -> bool:
        """Whether no permission is asked for: an administrator without entries of its own."""
        return self.is_admin and not self.permissions

    @property
    def has_white(self) -> bool:
        """Whether there are addresses from which no signature is needed."""
        return self.white is not NOBODY

    def owned(self, resource: str) -> int:
        """Returns what the account may do with a topic, or with a group as its retry topic."""
        own = self.permissions.get(resource)
        if own is not None:
            return own
        return self.default_group if resource.startswith(RETRY_PREFIX) else self.default_topic


def account(config: PlainAccessConfig) -> Account:
    """Returns the account that this describes. Raises AclError with what is wrong with it."""
    check_keys(config)
    key = config.access_key or ""
    try:
        return Account(
            config=config,
            access_key=key,
            secret_key=config.secret_key or "",
            white=pattern(config.white_remote_address),
            is_admin=config.admin,
            default_topic=permission(config.default_topic_perm),
            default_group=permission(config.default_group_perm),
            permissions=permissions(config.topic_perms or (), config.group_perms or ()),
        )
    except AclError as error:
        raise AclError(f"{error} (account {key})") from None


def check_keys(config: PlainAccessConfig) -> None:
    """Raises AclError unless both keys are long enough; the text does not show the secret."""
    access, secret = config.access_key, config.secret_key
    if min(len(access or ""), len(secret or "")) < _SHORTEST:
        told = "null" if secret is None else HIDDEN
        raise AclError(
            f"The accessKey={'null' if access is None else access} and secretKey={told}"
            " cannot be null and length should longer than 6"
        )


def config_of(members: Mapping[Any, Any]) -> PlainAccessConfig:
    """Returns what the members of a file describe. Raises AclError."""
    key = _text(members, "accessKey")
    where = f"account {key}" if key else "an account without accessKey"
    try:
        return PlainAccessConfig(
            access_key=key,
            secret_key=_text(members, "secretKey"),
            white_remote_address=_text(members, "whiteRemoteAddress"),
            admin=_flag(members, "admin"),
            default_topic_perm=_text(members, "defaultTopicPerm"),
            default_group_perm=_text(members, "defaultGroupPerm"),
            topic_perms=texts(members, "topicPerms"),
            group_perms=texts(members, "groupPerms"),
        )
    except AclError as error:
        raise AclError(f"{error} ({where})") from None


def unknown_members(members: Iterable[Any]) -> list[str]:
    """Returns words about members that no account has, such as misspelt ones."""
    known = set(MEMBERS.values())
    return [str(each) for each in unknown_keys([str(key) for key in members], known)]


def texts(members: Mapping[Any, Any], name: str) -> Sequence[str] | None:
    """Returns a member that is a list of texts; None if there is none. Raises AclError."""
    value = members.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise AclError(f"{name} must be a list, with one line '- entry' for each")
    return tuple(_as_text(each, name) or "" for each in value)


def _text(members: Mapping[Any, Any], name: str) -> str | None:
    return _as_text(members.get(name), name)


def _as_text(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    raise AclError(f"{name} must be a text; put it in quotes if it is one")


def _flag(members: Mapping[Any, Any], name: str) -> bool:
    value = members.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    flag = _FLAGS.get(str(value).strip().lower())
    if flag is None:
        raise AclError(f"{name} must be true or false")
    return flag
