# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.access.auth.migration import migrated
from txrocketmq.access.auth.policies import Decision, decision
from txrocketmq.access.auth.users import User, UserType
from txrocketmq.access.needs import Action, Need, ResourceType
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


def test_an_account() -> None:
    user, acl = migrated(
        PlainAccessConfig(
            access_key="RocketMQ", secret_key="12345678", default_topic_perm="DENY",
            default_group_perm=" SUB", topic_perms=["topicA=DENY", "topicB=PUB|SUB"],
            group_perms=["groupB = PUB"],
        )
    )  # fmt: skip
    assert user == User("RocketMQ", "12345678", UserType.NORMAL)
    assert acl is not None
    shown = acl.info()
    assert shown is not None
    found = []
    for policy in shown.policies or ():
        rules = [(each.resource, each.actions, each.decision) for each in policy.entries or ()]
        found.append([policy.policy_type, *rules])
    assert found == [
        [
            "Custom",
            ("Topic:topicA", ["All"], "Deny"),
            ("Topic:topicB", ["Pub", "Sub"], "Allow"),
            ("Group:groupB", ["Pub"], "Allow"),
        ],
        ["Default", ("Topic:*", ["All"], "Deny"), ("Group:*", ["Sub"], "Allow")],
    ]  # fmt: skip


def test_an_administrator() -> None:
    account = PlainAccessConfig(access_key="admin12", secret_key="12345678", admin=True)
    assert migrated(account) == (User("admin12", "12345678", UserType.SUPER), None)


@pytest.mark.parametrize(
    ("permission", "publishes", "subscribes"),
    [("PUB", True, False), ("SUB", False, True), ("SUB|PUB", True, True), ("ALL", False, False)],
)
def test_permissions(permission: str, publishes: bool, subscribes: bool) -> None:
    account = PlainAccessConfig(
        access_key="a", secret_key="b", topic_perms=[f"T={permission}", f"%RETRY%g={permission}"]
    )
    _, acl = migrated(account)
    for kind, name in ((TOPIC, "T"), (GROUP, "g")):
        for action, is_allowed in ((Action.PUB, publishes), (Action.SUB, subscribes)):
            found = decision(acl, Need(kind, name, (action,)), "10.0.0.1")
            assert (found is Decision.ALLOW) is is_allowed
    assert decision(acl, Need(TOPIC, "other", (Action.PUB,)), "10.0.0.1") is None
