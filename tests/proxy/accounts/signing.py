# SPDX-License-Identifier: Apache-2.0
"""The headers that clients sign, and the accounts of a test."""

from __future__ import annotations

import hmac

from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.policies import acl_of
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

DATE = "20261126T130000Z"


def signed(user: str, secret: str, date: str = DATE) -> dict[str, str]:
    """The headers of a call, as the official clients write them."""
    signature = hmac.new(secret.encode(), date.encode(), "sha1").hexdigest().upper()
    return {
        "x-mq-date-time": date,
        "authorization": (
            f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, Signature={signature}"
        ),
    }


def policies(*entries: tuple[str, str]) -> AclInfo:
    """Policies that allow actions on resources."""
    its = [
        PolicyEntryInfo(resource=resource, actions=actions.split(), decision="Allow")
        for resource, actions in entries
    ]
    return AclInfo(policies=[PolicyInfo(policy_type="Custom", entries=its)])


def some_accounts() -> Accounts:
    """The Super user root, and alice, who may send to T and consume it as G."""
    accounts = Accounts()
    for name, kind in (("root", "Super"), ("alice", "Normal")):
        accounts.create_user(
            name, UserInfo(username=name, password=f"{name}-secret", user_type=kind)
        )
    accounts.add_acl(acl_of("alice", policies(("Topic:T", "Pub Sub"), ("Group:G", "Sub"))))
    return accounts


ROOT = signed("root", "root-secret")
ALICE = signed("alice", "alice-secret")
