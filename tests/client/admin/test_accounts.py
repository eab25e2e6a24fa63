# SPDX-License-Identifier: Apache-2.0
"""Accounts and policies: what is asked of which server, and what is told of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import SLAVE, refused
from tests.client.admin.guarded_cluster import ALL, Guarded
from tests.client.fakes import BROKER_A, BROKER_B, result_of
from txrocketmq.client.admin.accounts import Account, Policy
from txrocketmq.client.base.errors import AccountNotFound, AdminRefused, PartlyFailed
from txrocketmq.remoting.protocol.body.auth import UserInfo
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.serialize.json import decode_body, encode_body

KEY = "secret"


def test_an_account_is_made_at_masters_and_slaves() -> None:
    cluster = Guarded()
    result_of(cluster.admin.create_account("alice", KEY, is_super=True))
    assert cluster.asked(auth.AUTH_CREATE_USER) == ALL
    wanted = Account(name="alice", is_super=True, is_enabled=True, password=KEY)
    found = result_of(cluster.admin.account("alice"))
    assert {each.address: its for each, its in found.items()} == dict.fromkeys(ALL, wanted)
    assert [list(its) for its in result_of(cluster.admin.accounts()).values()] == [[wanted]] * 3
    assert KEY not in repr(found)


def test_one_broker() -> None:
    cluster = Guarded()
    result_of(cluster.admin.create_account("alice", KEY, broker="broker-b"))
    assert cluster.asked(auth.AUTH_CREATE_USER) == [BROKER_B]
    (broker,) = result_of(cluster.admin.account("alice"))
    assert broker.name == "broker-b"
    names = {
        b.address: [each.name for each in its]
        for b, its in result_of(cluster.admin.accounts()).items()
    }
    assert names == {BROKER_A: [], BROKER_B: ["alice"], SLAVE: []}


def test_only_what_is_given_is_changed() -> None:
    cluster = Guarded()
    result_of(cluster.admin.create_account("alice", KEY))
    result_of(cluster.admin.update_account("alice", is_enabled=False))
    its = cluster.users[SLAVE]["alice"]
    assert (its.password, its.user_type, its.user_status) == (KEY, "Normal", "disable")
    with pytest.raises(ValueError, match="say what to change"):
        result_of(cluster.admin.update_account("alice"))


def test_one_that_is_not_there() -> None:
    with pytest.raises(AccountNotFound, match="no broker has the account bob"):
        result_of(Guarded().admin.account("bob"))


def test_all_brokers_are_told_even_if_some_refuse() -> None:
    cluster = Guarded()
    cluster.users[BROKER_A]["alice"] = UserInfo(username="alice")
    with pytest.raises(PartlyFailed, match=r"failed at 1 of 3 servers: broker-a .*is existed"):
        result_of(cluster.admin.create_account("alice", KEY))
    assert "alice" in cluster.users[SLAVE]
    cluster.connections.on(BROKER_B, auth.AUTH_DELETE_USER, refused(16, "no"))
    with pytest.raises(AdminRefused, match="deleting account alice failed"):
        result_of(cluster.admin.delete_account("alice", broker="broker-b"))


def test_several_clusters_are_not_changed_at_once() -> None:
    cluster = Guarded(c=["broker-a"], d=["broker-b"])
    with pytest.raises(ValueError, match="say which of c, d"):
        result_of(cluster.admin.create_account("alice", KEY))
    result_of(cluster.admin.create_account("alice", KEY, cluster="c"))
    assert cluster.asked(auth.AUTH_CREATE_USER) == [BROKER_A, SLAVE]


def test_policies_of_an_account_are_asked_of_brokers_that_have_it() -> None:
    cluster = Guarded()
    result_of(cluster.admin.create_account("alice", KEY, broker="broker-b"))
    ((broker, its),) = result_of(cluster.admin.policies("alice")).items()
    assert (broker.name, its) == ("broker-b", [])
    with pytest.raises(AccountNotFound, match="no broker has the account bob"):
        result_of(cluster.admin.policies("bob"))
    for address in ALL:
        cluster.connections.on(address, auth.AUTH_GET_ACL, lambda *_: refused(16, "no"))
    with pytest.raises(PartlyFailed):
        result_of(cluster.admin.policies("alice"))


def test_policies_are_sent_by_account_and_kind() -> None:
    cluster = Guarded()
    for name in "ab":
        result_of(cluster.admin.create_account(name, KEY, broker="broker-a"))
    policies = [
        Policy(account="a", resource="Topic:T*", actions=["pub", "SUB"], addresses=["10.0.0.0/8"]),
        Policy(account="a", resource="Group:*", actions=["All"], allows=False, is_default=True),
        Policy(account="b", resource="*", actions=["Get"]),
    ]
    result_of(cluster.admin.set_policies(policies, broker="broker-a"))
    assert cluster.acls[BROKER_A]["User:a"].to_json() == {
        "subject": "User:a",
        "policies": [
            {
                "policyType": "Custom",
                "entries": [
                    {
                        "resource": "Topic:T*",
                        "actions": ["Pub", "Sub"],
                        "sourceIps": ["10.0.0.0/8"],
                        "decision": "Allow",
                    }
                ],
            },
            {
                "policyType": "Default",
                "entries": [{"resource": "Group:*", "actions": ["All"], "decision": "Deny"}],
            },
        ],
    }
    ((_, found),) = result_of(cluster.admin.policies(broker="broker-a")).items()
    assert found[0] == Policy(
        account="a", resource="Topic:T*", actions=("Pub", "Sub"), addresses=("10.0.0.0/8",)
    )
    assert [(each.allows, each.is_default) for each in found] == [
        (True, False), (False, True), (True, False),
    ]  # fmt: skip
    ((_, its),) = result_of(cluster.admin.policies("b", broker="broker-a")).items()
    assert [each.resource for each in its] == ["*"]
    ((_, its),) = result_of(cluster.admin.policies(resource="Gr", broker="broker-a")).items()
    assert [each.resource for each in its] == ["Group:*"]


@pytest.mark.parametrize(("actions", "why"), [(["Read"], "'Read' is not"), ([], "needs an action")])
def test_actions_that_brokers_would_leave_out_in_silence(actions: list[str], why: str) -> None:
    cluster = Guarded()
    with pytest.raises(ValueError, match=why):
        result_of(cluster.admin.set_policies([Policy(account="a", resource="*", actions=actions)]))
    assert not cluster.asked(auth.AUTH_CREATE_ACL)


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(AdminRefused, match="no such policy there"):
        result_of(Guarded().admin.delete_policies("a", broker="broker-a"))


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, (None, None)),
        ({"resource": "Topic:T"}, ("Custom", "Topic:T")),
        ({"resource": "Topic:T", "is_default": True}, ("Default", "Topic:T")),
    ],
)
def test_policies_are_deleted(given: dict[str, Any], sent: tuple[Any, Any]) -> None:
    cluster = Guarded()
    policy = Policy(account="a", resource="Topic:T", actions=["Sub"])
    result_of(cluster.admin.set_policies([policy], broker="broker-a"))
    result_of(cluster.admin.delete_policies("a", broker="broker-a", **given))
    ((_, header),) = cluster.connections.questions(auth.AUTH_DELETE_ACL)
    assert (header.subject, header.policy_type, header.resource) == ("User:a", *sent)


def test_copies_bring_policies_and_change_what_is_there() -> None:
    cluster = Guarded()
    for name in ("alice", "bob"):
        result_of(cluster.admin.create_account(name, f"{name}-{KEY}", broker="broker-a"))
    result_of(cluster.admin.create_account("bob", "other", is_super=True, broker="broker-b"))
    policies = [Policy(account="alice", resource=f"Topic:{n}", actions=["Sub"]) for n in "TU"]
    result_of(cluster.admin.set_policies(policies, broker="broker-a"))
    copied = result_of(cluster.admin.copy_accounts(source="broker-a", target="broker-b"))
    assert copied == {"alice": 2, "bob": 0}
    assert cluster.users[BROKER_B]["bob"].password == f"bob-{KEY}"
    assert cluster.users[BROKER_B]["bob"].user_type == "Normal"
    assert cluster.acls[BROKER_B] == cluster.acls[BROKER_A]
    with pytest.raises(AccountNotFound, match="carol"):
        result_of(cluster.admin.copy_accounts(["carol"], source="broker-a", target="broker-b"))


def test_a_copy_without_passwords_is_refused_before_anything_is_done() -> None:
    cluster = Guarded()
    result_of(cluster.admin.create_account("alice", KEY, broker="broker-a"))
    cluster.tells_passwords = False
    with pytest.raises(ValueError, match="accounts of the type Super only"):
        result_of(cluster.admin.copy_accounts(source="broker-a", target="broker-b"))
    assert decode_body(encode_body(list(cluster.users[BROKER_B]))) == []
