# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq policies` with a client among fakes."""

from __future__ import annotations

import json

import pytest

from tests.cli.administered import Administered
from tests.client.admin.guarded_cluster import Guarded
from tests.client.fakes import BROKER_A, BROKER_B
from txrocketmq.cli.access.policies import main
from txrocketmq.remoting.protocol.body.auth import AclInfo, UserInfo

KEY = "12345678"


@pytest.fixture
def guarded(administered: Administered) -> Guarded:
    administered.cluster = cluster = Guarded()
    for name in ("a", "alice"):
        for users in cluster.users.values():
            users[name] = UserInfo(username=name, password=KEY, user_type="Normal")
    return cluster


def test_policies_are_added_changed_and_removed(
    administered: Administered, guarded: Guarded
) -> None:
    words = ["alice", "Topic:Orders*"]
    assert administered.run(main, "add", *words, "--allow", "pub, SUB", "--from", "10.0.0.0/8") == 0
    assert administered.out == "added a policy of account alice for Topic:Orders*\n"
    assert administered.run(main, "list", "--json") == 0
    assert json.loads(administered.out) == {
        "account": "alice", "resource": "Topic:Orders*", "decision": "allow",
        "actions": ["Pub", "Sub"], "from": ["10.0.0.0/8"], "kind": "custom", "brokers": "all",
    }  # fmt: skip
    assert administered.run(main, "add", *words, "--deny", "Pub") == 1
    assert "has a policy for Topic:Orders*: change it" in administered.err + administered.out
    assert administered.run(main, "change", *words, "--deny", "Pub", "-b", "broker-b") == 0
    administered.run(main, "list", "alice")
    assert administered.lines[1][:4] == ["alice", "Topic:Orders*", "allow", "Pub,"]
    assert administered.lines[-1][2:5] == ["deny", "Pub", "10.0.0.0/8"]
    assert administered.run(main, "change", *words, "--from-anywhere") == 0
    assert administered.run(main, "remove", *words, "--yes") == 0
    assert administered.run(main, "remove", "alice", "--yes") == 0
    assert guarded.acls[BROKER_A] == guarded.acls[BROKER_B] == {}


def test_a_default_policy_is_another_one(administered: Administered, guarded: Guarded) -> None:
    for words in ([], ["--default"]):
        assert administered.run(main, "add", "a", "Topic:*", "--allow", "Sub", *words) == 0
    assert administered.run(main, "remove", "a", "Topic:*", "--default", "-y") == 0
    administered.run(main, "list", "--resource", "Topic", "--json")
    assert [json.loads(line)["kind"] for line in administered.out.splitlines()] == ["custom"]


def test_one_that_is_not_there(administered: Administered, guarded: Guarded) -> None:
    assert administered.run(main, "change", "a", "Topic:T", "--allow", "Sub") == 1
    assert "has no policy for Topic:T: add one" in administered.err + administered.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "a", "Topic:T"], "--allow or --deny"),
        (["add", "a", "Topic:T", "--allow", "Read"], "'Read' is not an action; there are Pub, Sub"),
        (["add", "a", "Topic:T", "--allow", ","], "no action is given"),
        (["add", "a", "Topic:T", "--allow", "Pub", "--deny", "Sub"], "not both"),
        (["change", "a", "Topic:T"], "nothing is to be changed"),
        (["change", "a", "T", "--from", "10.0.0.1", "--from-anywhere"], "not both"),
        (["remove", "a", "--default", "-y"], "name the resource"),
    ],
)
def test_what_is_wrong_with_a_command(
    administered: Administered, guarded: Guarded, words: list[str], why: str
) -> None:
    assert administered.run(main, *words) == 2
    assert why in administered.err
    assert guarded.acls[BROKER_A] == {}


def test_a_removal_asks_first(administered: Administered, guarded: Guarded) -> None:
    guarded.acls[BROKER_A]["User:a"] = AclInfo(subject="User:a", policies=[])
    assert administered.run(main, "remove", "a", "-b", "broker-a") == 1
    assert "Remove all policies of account a?" in administered.err
    assert "User:a" in guarded.acls[BROKER_A]


def test_a_test_says_why_at_each_broker(administered: Administered, guarded: Guarded) -> None:
    administered.run(main, "add", "alice", "Topic:T", "--allow", "Pub", "-b", "broker-a")
    words = ["test", "alice", "pub", "Topic:T"]
    assert administered.run(main, *words, "-b", "broker-a") == 0
    assert administered.lines[1] == "broker-a yes the policy for Topic:T allows Pub".split()
    assert administered.run(main, *words) == 1
    assert administered.lines[2] == "broker-b no the account has no policies".split()
    assert administered.run(main, "test", "alice", "Read", "Topic:T") == 2


def test_a_broker_may_lack_the_account(administered: Administered, guarded: Guarded) -> None:
    del guarded.users[BROKER_B]["alice"]
    assert (
        administered.run(main, "add", "alice", "Topic:T", "--allow", "Pub", "-b", "broker-a") == 0
    )
    assert administered.run(main, "list", "alice") == 0
    assert administered.lines[1][-1] == "broker-a"
    assert administered.run(main, "test", "alice", "pub", "Topic:T") == 1
    assert administered.lines[1] == "broker-a yes the policy for Topic:T allows Pub".split()
    assert administered.lines[2] == "broker-b no the broker has no such account".split()
    assert administered.run(main, "list", "bob") == 1
    assert "no broker has the account bob" in administered.err + administered.out
