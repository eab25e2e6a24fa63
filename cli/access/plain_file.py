# SPDX-License-Identifier: Apache-2.0
"""Accounts of RocketMQ 4, from a file like plain_acl.yml, as accounts and policies of RocketMQ 5.

What the file cannot say in the same words there is told: addresses from which nobody needs an
account. Java: AuthMigrator, which allows everything where a permission is misspelt; here that is
denied, as ACL 1 does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.files import read_file, together
from txrocketmq.access.acl.permissions import DENY, PUB, SUB, permission
from txrocketmq.client.admin.accounts import Account, Policy
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig

_ALL: Final = "*"


class Imported(NamedTuple):
    """An account with its policies, and what of it cannot be imported."""

    account: Account
    policies: Sequence[Policy]
    warnings: Sequence[str]


def imported(path: str) -> tuple[list[Imported], list[str]]:
    """Returns the accounts of a file, and what of the file cannot be imported.

    Raises AclError with the first thing that is wrong.
    """
    file = read_file(path)
    together([file])  # which checks the accounts
    warnings = list(file.warnings)
    if file.white:
        warnings.append(
            f"globalWhiteRemoteAddresses are not imported ({', '.join(file.white)}): clients there"
            " need an account"
        )
    return [_of(each) for each in file.configs], warnings


def _of(config: PlainAccessConfig) -> Imported:
    name = config.access_key or ""
    warnings = []
    if config.white_remote_address:
        warnings.append(
            f"whiteRemoteAddress of {name} is not imported ({config.white_remote_address}): its"
            " clients there have to sign"
        )
    policies = [
        *_entries(name, "Topic", config.topic_perms or ()),
        *_entries(name, "Group", config.group_perms or ()),
    ]
    for kind, text in (("Topic", config.default_topic_perm), ("Group", config.default_group_perm)):
        if text:
            policies.append(_policy(name, f"{kind}:{_ALL}", text, is_default=True))
    account = Account(name=name, is_super=config.admin, password=config.secret_key)
    if config.admin and policies:
        warnings.append(
            f"{name} is an admin: as a Super account it may do everything, whatever its policies"
        )
    return Imported(account, policies, warnings)


def _entries(account: str, kind: str, lines: Sequence[str]) -> Iterator[Policy]:
    for line in lines:
        name, _, perm = line.partition("=")
        name = name.strip()
        if _ALL in name:
            raise AclError(
                f"{line}: a name with * is no name of a {kind.lower()} (account {account})"
            )
        if kind == "Topic" and name.startswith(RETRY_PREFIX):  # the same as an entry of the group
            yield _policy(account, f"Group:{name.removeprefix(RETRY_PREFIX)}", perm)
        else:
            yield _policy(account, f"{kind}:{name}", perm)


def _policy(account: str, resource: str, perm: str, *, is_default: bool = False) -> Policy:
    given = permission(perm)
    actions = [name for name, bit in (("Pub", PUB), ("Sub", SUB)) if given & bit]
    return Policy(
        account=account,
        resource=resource,
        actions=tuple(actions or ("All",)),
        allows=given != DENY,
        is_default=is_default,
    )
