# SPDX-License-Identifier: Apache-2.0
"""Accounts of RocketMQ 4 as users of RocketMQ 5, with the policies that say the same.

An administrator becomes a Super user. Addresses from which no signature was needed have no
counterpart, and are not taken over. As in the files themselves, the last of several entries for one
name counts, a permission that is none is DENY, and an entry is all that counts for its name: where
a default permits more, a default entry for the name denies it. The original turns a misspelt
permission into a policy that allows everything, and lets defaults add to entries.
Counterpart of AuthMigrator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from txrocketmq.access.acl.permissions import DENY, PUB, SUB, permission, permissions
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

_ASTERISK: Final = "*"
_ACTIONS: Final = ((Action.PUB, PUB), (Action.SUB, SUB))


def migrated(account: PlainAccessConfig) -> tuple[User, Acl | None]:
    """Returns the user of an account with two valid keys, and its policies if it has any.

    Raises AclError for an entry that is none.
    """
    name = account.access_key or ""
    kind = UserType.SUPER if account.admin else UserType.NORMAL
    custom: list[Entry] = []
    default: list[Entry] = []
    defaults = {
        each: permission(text)
        for each, text in (
            (ResourceType.TOPIC, account.default_topic_perm),
            (ResourceType.GROUP, account.default_group_perm),
        )
        if text is not None and text.strip()
    }
    for owned, given in _owned(account).items():
        if _ASTERISK in owned:
            continue
        resource = _resource(owned)
        custom.append(_entry(resource, given))
        if given != DENY and defaults.get(resource.type, DENY) & ~given & (PUB | SUB):
            default.append(_entry(resource, DENY))
    default += [
        _entry(Resource(each, None, NamePattern.ANY), given) for each, given in defaults.items()
    ]
    policies = {
        each: tuple(entries)
        for each, entries in ((PolicyType.CUSTOM, custom), (PolicyType.DEFAULT, default))
        if entries
    }
    acl = Acl(name, policies) if policies else None
    return User(name, account.secret_key or "", kind), acl


def not_migrated(account: PlainAccessConfig) -> Iterator[str]:
    """Yields a sentence for each thing that policies say in another way, or not at all."""
    owned = _owned(account)
    for name in owned:
        if _ASTERISK in name:
            yield (
                f"the entry {name} of {account.access_key} is not taken over: RocketMQ 4 reads the"
                " * as a part of the name, which no topic or group has"
            )
    if account.admin and owned:
        yield (
            f"{account.access_key} is an admin: as a Super user it may do everything, whatever its"
            " policies"
        )


def _owned(account: PlainAccessConfig) -> dict[str, int]:
    """The permissions by topic, a group as its retry topic: topics first, whose entries count."""
    topics = permissions(account.topic_perms or (), ())
    return {**topics, **permissions((), account.group_perms or ()), **topics}


def _resource(name: str) -> Resource:
    if name.startswith(RETRY_PREFIX):
        group = name.removeprefix(RETRY_PREFIX)
        return Resource(ResourceType.GROUP, group, NamePattern.LITERAL)
    return Resource(ResourceType.TOPIC, name, NamePattern.LITERAL)


def _entry(resource: Resource, given: int) -> Entry:
    if given == DENY:
        return Entry(resource, (Action.ALL,), Decision.DENY)
    actions = tuple(action for action, bit in _ACTIONS if given & bit)
    return Entry(resource, actions, Decision.ALLOW)
