# SPDX-License-Identifier: Apache-2.0
"""Accounts of RocketMQ 4, from a file like plain_acl.yml, as the admin client creates them.

What becomes of an account, access/auth/migration.py says for the start of a broker as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from txrocketmq.access.acl.files import read_file, together
from txrocketmq.access.auth.migration import migrated, not_migrated
from txrocketmq.client.admin.accounts import Account, Policy, account_of, policies_of
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig


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
    warnings = []
    if config.white_remote_address:
        warnings.append(
            f"whiteRemoteAddress of {config.access_key} is not imported"
            f" ({config.white_remote_address}): its clients there have to sign"
        )
    user, acl = migrated(config)
    info = None if acl is None else acl.info()
    policies = [] if info is None else policies_of(info)
    account = account_of(user.info(with_password=True))
    return Imported(account, policies, [*warnings, *not_migrated(config)])
