# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.access.acl.accounts import account as plain_account
from txrocketmq.access.acl.permissions import PUB, SUB
from txrocketmq.access.auth.migration import migrated, not_migrated
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
        [
            "Default",
            ("Group:groupB", ["All"], "Deny"),  # since PUB is all that it has, whatever the default
            ("Topic:*", ["All"], "Deny"),
            ("Group:*", ["Sub"], "Allow"),
        ],
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


PERMISSIONS = st.sampled_from(["PUB", "SUB", "PUB|SUB", "SUB|PUB", "DENY", "Pub"])
NAMES = ["A", "B", "%RETRY%A"]


def entries(names: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.builds("{}={}".format, st.sampled_from(names), PERMISSIONS), max_size=4)


@given(
    topics=entries(NAMES),
    groups=entries(["A", "B"]),
    default_topic=st.none() | PERMISSIONS,
    default_group=st.none() | PERMISSIONS,
)
def test_policies_allow_what_the_entries_do(
    topics: list[str], groups: list[str], default_topic: str | None, default_group: str | None
) -> None:
    config = PlainAccessConfig(
        access_key="account", secret_key="12345678", topic_perms=topics, group_perms=groups,
        default_topic_perm=default_topic, default_group_perm=default_group,
    )  # fmt: skip
    before, (_, acl) = plain_account(config), migrated(config)
    for kind, prefix in ((TOPIC, ""), (GROUP, "%RETRY%")):
        for name in ("A", "B", "other"):
            for action, bit in ((Action.PUB, PUB), (Action.SUB, SUB)):
                allowed = bool(before.owned(prefix + name) & bit)
                found = decision(acl, Need(kind, name, (action,)), "10.0.0.1")
                assert (found is Decision.ALLOW) is allowed, (kind, name, action)
    assert list(not_migrated(config)) == []


def test_what_is_said_in_another_way() -> None:
    account = PlainAccessConfig(
        access_key="admin12", secret_key="12345678", admin=True, topic_perms=["T*=PUB", "T=SUB"]
    )
    _, acl = migrated(account)
    assert decision(acl, Need(TOPIC, "T1", (Action.PUB,)), "10.0.0.1") is None
    assert decision(acl, Need(TOPIC, "T", (Action.SUB,)), "10.0.0.1") is Decision.ALLOW
    star, admin = not_migrated(account)
    assert star.startswith("the entry T* of admin12 is not taken over")
    assert admin.startswith("admin12 is an admin: as a Super user it may do everything")
