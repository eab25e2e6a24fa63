# SPDX-License-Identifier: Apache-2.0
"""Accounts and policies: what is asked of which server, and what is told of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import SLAVE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, result_of
from txrocketmq.client.admin.accounts import Account, Policy
from txrocketmq.client.base.errors import AccountNotFound, AdminRefused, PartlyFailed
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.auth import AclInfo, UserInfo
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.serialize.json import decode_body, encode_body

KEY = "secret"
ALL = [BROKER_A, BROKER_B, SLAVE]


class Guarded(Cluster):
    """Brokers that keep accounts and policies as the original's do."""

    def __init__(self, **clusters: list[str]) -> None:
        super().__init__(**clusters)
        self.users: dict[str, dict[str, UserInfo]] = {address: {} for address in ALL}
        self.acls: dict[str, dict[str, AclInfo]] = {address: {} for address in ALL}
        self.tells_passwords = True
        for address in ALL:
            for call, answer in (
                (auth.AUTH_CREATE_USER, self._create),
                (auth.AUTH_UPDATE_USER, self._update),
                (auth.AUTH_DELETE_USER, self._delete),
                (auth.AUTH_GET_USER, self._get),
                (auth.AUTH_LIST_USER, self._list),
                (auth.AUTH_CREATE_ACL, self._merge),
                (auth.AUTH_DELETE_ACL, Reply()),
                (auth.AUTH_GET_ACL, self._get_acl),
                (auth.AUTH_LIST_ACL, self._list_acls),
            ):
                self.connections.on(address, call, answer)

    def _create(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        if header.username in self.users[address]:
            return refused(16, "The user is existed")
        self.users[address][header.username] = UserInfo.decode(body)
        return Reply()

    def _update(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        old, new = self.users[address][header.username].to_json(), UserInfo.decode(body).to_json()
        self.users[address][header.username] = UserInfo.from_json({**old, **new})
        return Reply()

    def _delete(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        self.users[address].pop(header.username, None)
        return Reply()

    def _told(self, its: UserInfo) -> dict[str, Any]:
        hidden = {} if self.tells_passwords else {"password": None}
        return {"userStatus": "enable", **its.to_json(), **hidden}

    def _get(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        found = self.users[address].get(header.username)
        return Reply(body=b"" if found is None else encode_body(self._told(found)))

    def _list(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        users = self.users[address].values()
        found = [self._told(each) for each in users if (header.filter or "") in str(each.username)]
        return Reply(body=encode_body(found) if found else b"")

    def _merge(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        self.acls[address][header.subject] = AclInfo.decode(body)
        return Reply()

    def _get_acl(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        found = self.acls[address].get(header.subject)
        return Reply(body=b"" if found is None else found.encode())

    def _list_acls(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        found = [each.to_json() for each in self.acls[address].values()]
        return Reply(body=encode_body(found) if found else b"")


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


def test_policies_are_sent_by_account_and_kind() -> None:
    cluster = Guarded()
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
