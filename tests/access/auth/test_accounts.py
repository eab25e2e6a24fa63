# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from functools import partial

import pytest

from tests.counted import lines_of
from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.policies import (
    Acl,
    Decision,
    Entry,
    PolicyType,
    at_once,
    resource_of,
)
from txrocketmq.access.auth.users import User, UserType
from txrocketmq.access.needs import Action
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.body.auth import UserInfo


def acl(*keys: str, user: str = "alice") -> Acl:
    entries = []
    for key in keys:
        resource = resource_of(key)
        assert resource is not None
        entries.append(Entry(resource, (Action.PUB,), Decision.ALLOW))
    return Acl(user, {PolicyType.CUSTOM: tuple(entries)})


@pytest.fixture
def accounts() -> Accounts:
    made = Accounts()
    made.create_user("alice", UserInfo(password="p"))
    return made


def test_every_change_is_heard(accounts: Accounts) -> None:
    heard: list[str] = []
    accounts.on_users.append(lambda: heard.append("users"))
    accounts.on_acls.append(lambda: heard.append("acls"))
    accounts.update_user("alice", UserInfo(password="q"))
    accounts.add_acl(acl("Topic:A"))
    at_once(accounts.deleting_acl("alice", PolicyType.CUSTOM, None))
    accounts.add_acl(acl("Topic:A"))
    accounts.delete_user("alice")
    assert not accounts.delete_user("alice")
    assert heard == ["users", "acls", "acls", "acls", "acls", "users"]
    assert accounts.acls() == {}


def test_policies_are_merged_and_taken_away(accounts: Accounts) -> None:
    accounts.add_acl(acl("Topic:A"))
    accounts.add_acl(acl("Topic:B", "Topic:A"))
    held = accounts.acl("alice")
    assert held is not None
    assert [each.resource.key for each in held.policies[PolicyType.CUSTOM]] == [
        "Topic:A",
        "Topic:B",
    ]
    at_once(accounts.deleting_acl("alice", PolicyType.CUSTOM, resource_of("Topic:A")))
    at_once(accounts.deleting_acl("alice", PolicyType.DEFAULT, resource_of("Topic:B")))
    held = accounts.acl("alice")
    assert held is not None
    assert [each.resource.key for each in held.policies[PolicyType.CUSTOM]] == ["Topic:B"]
    at_once(accounts.deleting_acl("alice", PolicyType.CUSTOM, resource_of("Topic:B")))
    assert accounts.acl("alice") is None


def test_policies_belong_to_a_user(accounts: Accounts) -> None:
    with pytest.raises(ResponseError, match="The subject of User:bob is not exist"):
        accounts.add_acl(acl("Topic:A", user="bob"))
    with pytest.raises(ResponseError, match="The subject is not exist"):
        accounts.acl_of_user("bob")
    with pytest.raises(ResponseError, match="The subject is not exist"):
        at_once(accounts.deleting_acl("bob", PolicyType.CUSTOM, None))
    with pytest.raises(ResponseError, match="The acl is not exist"):
        at_once(accounts.deleting_acl("alice", PolicyType.CUSTOM, None))


def test_a_user_that_there_is_stays_as_it_is(accounts: Accounts) -> None:
    assert not accounts.ensure(User("alice", "other", UserType.SUPER))
    assert accounts.users.get("alice") == User("alice", "p")
    assert accounts.ensure(User("root", "r", UserType.SUPER))
    assert accounts.users.get("root") == User("root", "r", UserType.SUPER)


def many(count: int, prefix: str = "Topic:M") -> Acl:
    return acl(*(f"{prefix}{n}" for n in range(count)))


def test_changes_of_many_policies_are_made_in_steps() -> None:
    accounts = Accounts()
    accounts.create_user("alice", UserInfo(password="x"))
    for steps in (
        accounts.adding_acl(many(3_000)),
        accounts.adding_acl(acl("Topic:M7", "Topic:N")),
        accounts.deleting_acl("alice", PolicyType.CUSTOM, resource_of("Topic:M2999")),
        accounts.deleting_acl("alice", PolicyType.CUSTOM, resource_of("Topic:M0")),
    ):
        lines = []
        while True:
            try:
                lines.append(lines_of(partial(next, steps)))
            except StopIteration:
                break
        assert len(lines) > 40
        assert max(lines) < 1_000
    held = accounts.acl("alice")
    assert held is not None
    assert len(held.policies[PolicyType.CUSTOM]) == 2_999
    assert "index" in vars(held), "no message has to wait for it"


def test_a_change_counts_whatever_changes_meanwhile() -> None:
    accounts = Accounts()
    accounts.create_user("alice", UserInfo(password="x"))
    accounts.add_acl(many(1_000))
    slow = accounts.adding_acl(acl("Topic:A"))
    for _ in range(5):
        next(slow)
    accounts.add_acl(acl("Topic:B"))
    assert at_once(slow) is None
    held = accounts.acl("alice")
    assert held is not None
    assert [each.resource.key for each in held.policies[PolicyType.CUSTOM][1_000:]] == [
        "Topic:B", "Topic:A",
    ]  # fmt: skip
    slow = accounts.adding_acl(acl("Topic:C"))
    next(slow)
    accounts.delete_user("alice")
    with pytest.raises(ResponseError, match="is not exist"):
        at_once(slow)
    assert accounts.acl("alice") is None
