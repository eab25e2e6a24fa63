# SPDX-License-Identifier: Apache-2.0
"""Accounts of RocketMQ 4 as users of RocketMQ 5, with the policies that say the same.

An administrator becomes a Super user. Addresses from which no signature was needed have no
counterpart, and are not taken over. As in the files themselves, a permission that is none is DENY;
the original turns it into a policy that allows everything. Counterpart of AuthMigrator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from txrocketmq.access.auth.policies import (
    Acl,
    Decision,
    Entry,
    NamePattern,
    PolicyType,
    Resource,
)
from txrocketmq.access.auth.users import User, UserType
from txrocketmq.access.needs import Action, ResourceType
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig

_ACTIONS: Final = {
    "PUB": (Action.PUB,),
    "SUB": (Action.SUB,),
    "PUB|SUB": (Action.PUB, Action.SUB),
    "SUB|PUB": (Action.PUB, Action.SUB),
}


def migrated(account: PlainAccessConfig) -> tuple[User, Acl | None]:
    """Returns the user of an account with two valid keys, and its policies if it has any."""
    name = account.access_key or ""
    kind = UserType.SUPER if account.admin else UserType.NORMAL
    custom = [
        *_entries(ResourceType.TOPIC, account.topic_perms or ()),
        *_entries(ResourceType.GROUP, account.group_perms or ()),
    ]
    defaults = [
        _entry(Resource(each, None, NamePattern.ANY), text)
        for each, text in (
            (ResourceType.TOPIC, account.default_topic_perm),
            (ResourceType.GROUP, account.default_group_perm),
        )
        if text is not None and text.strip()
    ]
    policies = {
        each: tuple(entries)
        for each, entries in ((PolicyType.CUSTOM, custom), (PolicyType.DEFAULT, defaults))
        if entries
    }
    acl = Acl(name, policies) if policies else None
    return User(name, account.secret_key or "", kind), acl


def _entries(kind: ResourceType, permissions: Iterable[str]) -> Iterator[Entry]:
    for text in permissions:
        name, _, permission = text.partition("=")
        name = name.strip()
        each = kind
        if name.startswith(RETRY_PREFIX):
            each, name = ResourceType.GROUP, name.removeprefix(RETRY_PREFIX)
        yield _entry(Resource(each, name, NamePattern.LITERAL), permission)


def _entry(resource: Resource, permission: str) -> Entry:
    actions = _ACTIONS.get(permission.strip())
    if actions is None:
        return Entry(resource, (Action.ALL,), Decision.DENY)
    return Entry(resource, actions, Decision.ALLOW)
