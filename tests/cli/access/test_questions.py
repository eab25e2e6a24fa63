# SPDX-License-Identifier: Apache-2.0
"""May an account do something: the same as a broker decides, with the policy that decides."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.access.auth.policies import Decision, acl_of, decision
from txrocketmq.cli.access.questions import Question
from txrocketmq.client.admin.accounts import Account, Policy, acl_info

ALICE = Account(name="alice")
RESOURCES = ["*", "Topic:*", "Topic:a*", "Topic:ab*", "Topic:abc", "Group:*", "Group:abc"]
POLICIES = st.builds(
    Policy,
    account=st.just("alice"),
    resource=st.sampled_from(RESOURCES),
    actions=st.lists(st.sampled_from(["Pub", "Sub", "All"]), min_size=1, max_size=2),
    allows=st.booleans(),
    addresses=st.sampled_from([(), ("10.0.0.0/8",), ("10.0.0.1", "::1")]),
    is_default=st.booleans(),
)


def question(
    action: str = "Pub", resource: str = "Topic:abc", address: str = "10.0.0.1"
) -> Question:
    return Question.of("alice", action, resource, address)


def policy(resource: str, *actions: str, **others: Any) -> Policy:
    return Policy(account="alice", resource=resource, actions=actions, **others)


@given(
    policies=st.lists(POLICIES, min_size=1, max_size=6),
    action=st.sampled_from(["Pub", "Sub", "Get"]),
    resource=st.sampled_from(["Topic:abc", "Topic:abd", "Topic:x", "Topic:*", "Group:abc"]),
    address=st.sampled_from(["10.0.0.1", "10.9.9.9", "192.168.0.1", "::1"]),
)
def test_the_answer_is_that_of_a_broker(
    policies: list[Policy], action: str, resource: str, address: str
) -> None:
    asked = question(action, resource, address)
    said = decision(acl_of("alice", acl_info("alice", policies)), asked.need, address)
    assert asked.answer(ALICE, policies).is_allowed == (said is Decision.ALLOW)


@pytest.mark.parametrize(
    ("policies", "is_allowed", "why"),
    [
        ([], False, "the account has no policies"),
        ([policy("Topic:x", "Pub")], False, "no policy of the account matches"),
        ([policy("Topic:a*", "Pub", "Sub")], True, "the policy for Topic:a* allows Pub, Sub"),
        (
            [policy("*", "All"), policy("Topic:abc", "All", allows=False)],
            False, "the policy for Topic:abc denies All",
        ),
        (
            [policy("*", "All", is_default=True, addresses=("10.0.0.0/8",))],
            True, "the default policy for * allows All from 10.0.0.0/8",
        ),
        ([policy("What:x", "Pub")], False, "its policies cannot be read: The resource is null."),
    ],
)  # fmt: skip
def test_why(policies: list[Policy], is_allowed: bool, why: str) -> None:
    assert question().answer(ALICE, policies) == (is_allowed, why)


@pytest.mark.parametrize(
    ("account", "is_allowed", "why"),
    [
        (None, False, "no such account"),
        (Account(name="alice", is_super=True), True, "Super"),
        (Account(name="alice", is_super=True, is_enabled=False), False, "disabled"),
    ],
)
def test_accounts_for_which_policies_do_not_count(
    account: Account | None, is_allowed: bool, why: str
) -> None:
    verdict = question().answer(account, [policy("*", "All")])
    assert verdict.is_allowed == is_allowed
    assert why in verdict.why


@pytest.mark.parametrize(
    ("resource", "address", "why"),
    [
        ("Topic:abc", "here", "'here' is not an IP address"),
        ("abc", "::1", "'abc' is not a resource"),
        ("*", "::1", "is not a resource"),
        ("Topic:", "::1", "is not a resource"),
        ("Topic:a*", "::1", "ask about one name"),
    ],
)
def test_questions_that_cannot_be_asked(resource: str, address: str, why: str) -> None:
    with pytest.raises(click.UsageError, match=why):
        question(resource=resource, address=address)
