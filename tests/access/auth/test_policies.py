# SPDX-License-Identifier: Apache-2.0
"""Policies: which entry decides, as the original's jar and as the plainest rules have it."""

from __future__ import annotations

from functools import cmp_to_key
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.access.auth.policies import (
    Acl,
    Decision,
    Entry,
    NamePattern,
    PolicyType,
    Resource,
    acl_of,
    at_once,
    decision,
    resource_of,
    user_of,
)
from txrocketmq.access.needs import Action, Need, ResourceType
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo

GOLDEN = Path(__file__).parents[2] / "golden" / "policies" / "decisions.txt"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
PUB, SUB = Action.PUB, Action.SUB
CUSTOM, DEFAULT = PolicyType.CUSTOM, PolicyType.DEFAULT


def entry(
    key: str, *actions: Action, decided: Decision = Decision.ALLOW, ips: tuple[str, ...] = ()
) -> Entry:
    resource = resource_of(key)
    assert resource is not None
    return Entry(resource, actions or (PUB,), decided, ips)


def acl(*entries: Entry, defaults: tuple[Entry, ...] = ()) -> Acl:
    return Acl("alice", {CUSTOM: entries, DEFAULT: defaults})


@pytest.mark.parametrize("line", GOLDEN.read_text().splitlines())
def test_the_entry_that_decides_is_that_of_the_original(line: str) -> None:
    """Only the entry that decides is about the action, so that it is seen which one it is."""
    first, second, decides = line.split()

    def made(text: str) -> Entry:
        key, _, decided = text.partition("=")
        return entry(key, decided=Decision[decided.upper()])

    found = decision(acl(made(first), made(second)), Need(TOPIC, "abc", (PUB,)), "10.1.2.3")
    assert found is made(decides).decision
    # The rank says so even where both decide the same.
    winner, loser = (first, second) if decides == first else (second, first)
    assert made(winner).resource.rank <= made(loser).resource.rank


KEYS = [
    "*",
    "Any:a",
    "Topic:*",
    "Topic:a*",
    "Topic:ab*",
    "Topic:abc",
    "Topic:a",
    "Topic:",
    "Group:*",
    "Group:a",
]
ENTRIES = st.lists(
    st.builds(
        lambda key, actions, decided, ips: entry(key, *actions, decided=decided, ips=tuple(ips)),
        st.sampled_from(KEYS),
        st.lists(st.sampled_from([Action.ALL, PUB, SUB, Action.GET]), min_size=1, max_size=2),
        st.sampled_from(Decision),
        st.lists(st.sampled_from(["10.0.0.0/8", "10.1.2.3", "::1", "2001:db8::/32"]), max_size=2),
    ),
    max_size=8,
)


def plainly(entries: list[Entry], need: Need, host: str) -> Decision | None:
    """What the original does: all that match, in the order of its comparison, the first decides."""

    def is_match(each: Entry) -> bool:
        is_near = not each.source_ips or any(
            ip_address(host) in ip_network(ip) for ip in each.source_ips
        )
        is_meant = Action.ALL in each.actions or set(each.actions) & set(need.actions)
        return bool(is_near and is_meant and each.resource.covers(need))

    def compared(one: Entry, other: Entry) -> int:
        a, b = one.resource, other.resource
        if (a.type is ResourceType.ANY) != (b.type is ResourceType.ANY):
            return 1 if a.type is ResourceType.ANY else -1
        if a.pattern is not b.pattern:
            order = [NamePattern.LITERAL, NamePattern.PREFIXED, NamePattern.ANY]
            return order.index(a.pattern) - order.index(b.pattern)
        if a.pattern is NamePattern.PREFIXED and len(a.name or "") != len(b.name or ""):
            return len(b.name or "") - len(a.name or "")
        return other.decision - one.decision

    found = sorted(filter(is_match, entries), key=cmp_to_key(compared))
    return found[0].decision if found else None


@given(
    ENTRIES,
    ENTRIES,
    st.sampled_from([TOPIC, GROUP, ResourceType.CLUSTER]),
    st.sampled_from([None, "a", "ab", "abc", "b", ""]),
    st.sampled_from([(PUB,), (SUB, Action.GET)]),
    st.sampled_from(["10.1.2.3", "11.0.0.1", "::1", "2001:db8::5"]),
)
def test_decisions(
    custom: list[Entry],
    defaults: list[Entry],
    kind: ResourceType,
    name: str | None,
    actions: tuple[Action, ...],
    host: str,
) -> None:
    need = Need(kind, name, actions)
    expected = plainly(custom, need, host)
    if expected is None:
        expected = plainly(defaults, need, host)
    assert decision(acl(*custom, defaults=tuple(defaults)), need, host) is expected


def test_without_policies_nothing_is_decided() -> None:
    assert decision(None, Need(TOPIC, "T", (PUB,)), "") is None
    assert decision(Acl("alice", {}), Need(TOPIC, "T", (PUB,)), "") is None


def test_many_entries_are_not_looked_at_one_by_one() -> None:
    """Ten thousand policies: a decision looks at those with the name, and at one of each length."""

    class Counted(Entry):
        looked = 0

        def is_for(self, actions: object, host: str) -> bool:
            Counted.looked += 1
            return super().is_for((PUB,), host)

    def counted(key: str) -> Entry:
        resource = resource_of(key)
        assert resource is not None
        return Counted(resource, (SUB,), Decision.ALLOW)

    many = [counted(f"Topic:T{number}") for number in range(5_000)]
    many += [counted(f"Topic:{number:08}*") for number in range(5_000)]
    assert decision(acl(*many), Need(TOPIC, "T77", (PUB,)), "10.0.0.1") is None
    assert Counted.looked == 1
    assert decision(acl(*many), Need(TOPIC, "00000077-x", (PUB,)), "10.0.0.1") is None
    assert Counted.looked == 2


@pytest.mark.parametrize(
    ("key", "resource"),
    [
        ("*", Resource(ResourceType.ANY, None, NamePattern.ANY)),
        ("Topic:*", Resource(TOPIC, None, NamePattern.ANY)),
        ("tOPIC:abc*", Resource(TOPIC, "abc", NamePattern.PREFIXED)),
        ("Topic:a*b*", Resource(TOPIC, "a", NamePattern.PREFIXED)),
        ("Topic:abc", Resource(TOPIC, "abc", NamePattern.LITERAL)),
        ("Topic", Resource(TOPIC, "", NamePattern.LITERAL)),
        ("Topic:", Resource(TOPIC, "", NamePattern.LITERAL)),
        ("Topic:a:b", Resource(TOPIC, "a:b", NamePattern.LITERAL)),
        ("Any:x", Resource(ResourceType.ANY, "x", NamePattern.LITERAL)),
        ("Table:x", None),
        ("", None),
        (None, None),
    ],
)
def test_resources(key: str | None, resource: Resource | None) -> None:
    assert resource_of(key) == resource


@pytest.mark.parametrize("key", ["*", "Topic:*", "Topic:abc*", "Topic:abc", "Group:g", "Cluster:c"])
def test_a_resource_has_its_text_again(key: str) -> None:
    found = resource_of(key)
    assert found is not None
    assert found.key == key


def info(*entries: PolicyEntryInfo, kind: str | None = None) -> AclInfo:
    return AclInfo(policies=[PolicyInfo(policy_type=kind, entries=list(entries))])


RULE = {"resource": "Topic:T", "actions": ["Pub"], "decision": "Allow"}


@pytest.mark.parametrize(
    ("changed", "remark"),
    [
        ({"resource": "Table:T"}, "The resource is null."),
        ({"resource": None}, "The resource is null."),
        ({"actions": []}, "The actions is empty."),
        ({"actions": None}, "The actions is empty."),
        ({"actions": ["Dance"]}, "The actions is empty."),
        ({"actions": ["Pub", "any"]}, "The actions can not be Any."),
        ({"source_ips": ["", "10.0.0.1"]}, "The source ip is empty."),
        ({"source_ips": ["10.0.0.1", "somewhere"]}, "The source ip is invalid."),
        ({"source_ips": ["10.0.0.0/33"]}, "The source ip is invalid."),
        ({"source_ips": ["10.0.0.0/255.0.0.0"]}, "The source ip is invalid."),
        ({"decision": "Maybe"}, "The decision is null or illegal."),
        ({"decision": None}, "The decision is null or illegal."),
    ],
)
def test_entries_that_are_none(changed: dict[str, object], remark: str) -> None:
    with pytest.raises(ResponseError) as refused:
        acl_of("alice", info(PolicyEntryInfo(**{**RULE, **changed})))  # type: ignore[arg-type]
    assert (refused.value.code, refused.value.remark) == (16, remark)


def test_an_acl_of_nothing() -> None:
    for empty in (AclInfo(), info(), AclInfo(policies=[])):
        with pytest.raises(ResponseError, match="The policies is empty"):
            acl_of("alice", empty)


def test_an_acl_has_its_body_again() -> None:
    rule = PolicyEntryInfo(
        resource="Topic:T*",
        actions=["Pub", "Sub"],
        source_ips=["10.0.0.0/8", "::1"],
        decision="Deny",
    )
    made = acl_of("alice", AclInfo(policies=[
        PolicyInfo(policy_type=None, entries=[rule]),
        PolicyInfo(policy_type="default", entries=[PolicyEntryInfo(**RULE)]),  # type: ignore[arg-type]
    ]))  # fmt: skip
    shown = made.info()
    assert shown is not None
    assert shown.subject == "User:alice"
    assert [policy.policy_type for policy in shown.policies or ()] == ["Custom", "Default"]
    assert (shown.policies or ())[0].entries == [rule]
    assert acl_of("alice", shown) == made
    assert made.info("nothing like it") is None
    part = made.info("T*")
    assert part is not None
    assert [policy.policy_type for policy in part.policies or ()] == ["Custom"]


def test_an_entry_for_the_same_resource_is_replaced() -> None:
    before = acl(entry("Topic:A"), entry("Topic:B"))
    after = at_once(
        before.merging(Acl("alice", {CUSTOM: (entry("Topic:A", SUB), entry("Topic:C"))}))
    )
    assert after.policies[CUSTOM] == (entry("Topic:A", SUB), entry("Topic:B"), entry("Topic:C"))
    resource = resource_of("Topic:B")
    assert resource is not None
    assert at_once(after.removing(CUSTOM, resource)).policies[CUSTOM] == (
        entry("Topic:A", SUB),
        entry("Topic:C"),
    )
    assert at_once(after.removing(DEFAULT, resource)).policies == {CUSTOM: after.policies[CUSTOM]}


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("User:alice", "alice"),
        ("user:a:b", "a:b"),
        ("alice", None),
        ("", None),
        (None, None),
        ("Role:x", None),
    ],
)
def test_subjects(subject: str | None, name: str | None) -> None:
    assert user_of(subject) == name
