# SPDX-License-Identifier: Apache-2.0
"""Whether an account may do something, decided here as a broker decides it, and why."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import click

from txrocketmq.access.auth.policies import (
    Acl,
    Decision,
    Entry,
    NamePattern,
    PolicyType,
    acl_of,
    resource_of,
)
from txrocketmq.access.needs import Action, Need, ResourceType
from txrocketmq.client.admin.accounts import Account, Policy, acl_info
from txrocketmq.remoting.errors import ResponseError


class Verdict(NamedTuple):
    """What comes out; `why` names the policy that decides, if there is one."""

    is_allowed: bool
    why: str


@dataclass(frozen=True, slots=True)
class Question:
    """May an account do this, with that, from there?"""

    account: str
    need: Need
    address: str

    @classmethod
    def of(cls, account: str, action: str, resource: str, address: str) -> Self:
        """Returns the question that texts ask. Raises UsageError."""
        try:
            host = str(ipaddress.ip_address(address))
        except ValueError:
            raise click.UsageError(f"{address!r} is not an IP address") from None
        found = resource_of(resource)
        if found is None or found.type not in _ASKED or not (found.name or found.pattern is _ANY):
            raise click.UsageError(
                f"{resource!r} is not a resource: write Topic:NAME, Group:NAME or Cluster:NAME"
            )
        if found.pattern is NamePattern.PREFIXED:
            raise click.UsageError("ask about one name, or about all of them: Topic:*")
        return cls(account, Need(found.type, found.name, (Action[action.upper()],)), host)

    def answer(self, account: Account | None, policies: Sequence[Policy]) -> Verdict:
        """Returns whether it is allowed, as a broker with these policies decides."""
        if account is None:
            return _no("the broker has no such account")
        if not account.is_enabled:
            return _no("the account is disabled")
        if account.is_super:
            return _yes("the account is of the type Super, and may do everything")
        its = [each for each in policies if each.account == self.account]
        if not its:
            return _no("the account has no policies")
        try:
            acl = acl_of(self.account, acl_info(self.account, its))
        except ValueError as error:
            return _no(f"its policies cannot be read: {error}")
        except ResponseError as error:
            return _no(f"its policies cannot be read: {error.remark}")
        found = self._deciding(acl)
        if found is None:
            return _no("no policy of the account matches")
        entry, kind = found
        return Verdict(is_allowed=entry.decision is Decision.ALLOW, why=_told(entry, kind))

    def _deciding(self, acl: Acl) -> tuple[Entry, PolicyType] | None:
        """Returns the policy that decides: the most special one that matches, or one that denies.

        Tests compare this with the decision of the broker's own index.
        """
        for kind in PolicyType:
            matching = [
                each for each in acl.policies.get(kind, ()) if each.matches(self.need, self.address)
            ]
            if matching:
                return min(matching, key=lambda each: (each.resource.rank, -each.decision)), kind
        return None


_ANY = NamePattern.ANY
_ASKED = frozenset({ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER})


def _yes(why: str) -> Verdict:
    return Verdict(is_allowed=True, why=why)


def _no(why: str) -> Verdict:
    return Verdict(is_allowed=False, why=why)


def _told(entry: Entry, kind: PolicyType) -> str:
    actions = ", ".join(each.text for each in entry.actions)
    words = "allows" if entry.decision is Decision.ALLOW else "denies"
    where = f" from {', '.join(entry.source_ips)}" if entry.source_ips else ""
    which = "default policy" if kind is PolicyType.DEFAULT else "policy"
    return f"the {which} for {entry.resource.key} {words} {actions}{where}"
