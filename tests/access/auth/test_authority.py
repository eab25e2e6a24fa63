# SPDX-License-Identifier: Apache-2.0
"""Decisions about signed requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import lines_of
from tests.fakes import FakePeer
from txrocketmq.access.audit import Audit
from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.authority import MOST_DECISIONS, UserAuthority
from txrocketmq.access.auth.policies import acl_of
from txrocketmq.access.auth.settings import AuthConfig
from txrocketmq.access.authority import Refusal
from txrocketmq.access.guard import AccessGuard
from txrocketmq.access.needs import MOST_NEEDS, TOO_LONG
from txrocketmq.remoting.codes import MQVersion
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.signer import Signer
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from txrocketmq.remoting.protocol.body.base import MOST_BYTES
from txrocketmq.remoting.protocol.body.pop import BatchAck, BatchAckMessageRequestBody

HOST = "10.1.2.3"


def policies(*rules: tuple[str, str, str], ips: tuple[str, ...] = ()) -> AclInfo:
    entries = [
        PolicyEntryInfo(resource=key, actions=actions.split("|"), decision=decided, source_ips=ips)
        for key, actions, decided in rules
    ]
    return AclInfo(policies=[PolicyInfo(entries=entries)])


class Scene:
    def __init__(self, **settings: Any) -> None:
        self.accounts = Accounts()
        for name, kind in (("alice", "Normal"), ("root", "Super")):
            self.accounts.create_user(name, UserInfo(password=name + "-key", user_type=kind))
        config = AuthConfig(**{"authentication_enabled": True, **settings})
        self.authority = UserAuthority(self.accounts, config, "C")

    def allow(self, *rules: tuple[str, str, str], ips: tuple[str, ...] = ()) -> None:
        self.accounts.add_acl(acl_of("alice", policies(*rules, ips=ips)))

    def ask(
        self,
        code: int,
        body: bytes = b"",
        *,
        user: str = "alice",
        host: str = HOST,
        version: int = int(MQVersion.V5_4_0),
        **fields: str,
    ) -> str | None:
        signed = {**fields, "AccessKey": user}
        signed["Signature"] = Signer(user + "-key").signature(signed, body)
        command = RemotingCommand(code, signed, body, version=version)
        return remark(self.authority.refusal(command, host))


def remark(refusal: Refusal | None) -> str | None:
    return None if refusal is None else refusal.remark


@pytest.fixture
def scene() -> Scene:
    return Scene(authorization_enabled=True)


def test_the_order_of_refusals(scene: Scene) -> None:
    refusal = scene.authority.refusal
    for fields in (None, {}, {"AccessKey": ""}, {"Signature": "x"}):
        assert remark(refusal(RemotingCommand(10, fields), HOST)) == "username cannot be null."
    unknown = RemotingCommand(10, {"AccessKey": "bob"})
    assert remark(refusal(unknown, HOST)) == "User:bob is not found."
    for fields in ({}, {"Signature": ""}, {"Signature": "\u00e4"}, {"Signature": "AAAA"}):
        wrong = RemotingCommand(10, {"AccessKey": "alice", **fields})
        assert remark(refusal(wrong, HOST)) == "check signature failed."
    scene.accounts.update_user("alice", UserInfo(user_status="disable"))
    assert scene.ask(10, b="T") == "User:alice is disabled."


def test_what_the_remarks_of_policies_say(scene: Scene) -> None:
    refused = "User:alice has no permission to access Topic:T from 10.1.2.3, "
    assert scene.ask(310, b="T") == refused + "no matched policies."
    scene.allow(("Topic:T", "Pub", "Deny"))
    assert scene.ask(310, b="T") == refused + "the decision is deny."
    scene.allow(("Topic:T", "Pub", "Allow"))
    assert scene.ask(310, b="T") is None
    assert scene.ask(310, b="%RETRY%g") == (
        "User:alice has no permission to access Group:g from 10.1.2.3, no matched policies."
    )
    assert scene.ask(21) == (
        "User:alice has no permission to access Topic:* from 10.1.2.3, no matched policies."
    )
    assert scene.ask(25) == (
        "User:alice has no permission to access Cluster:C from 10.1.2.3, no matched policies."
    )
    assert scene.ask(310) == "topic is null."
    assert scene.ask(34, b"{") == "parse authorization context error."
    assert scene.ask(18, b"{}") == "authorization context is empty."


def test_a_super_user_may_do_everything(scene: Scene) -> None:
    for code in (10, 25, 3001, 904, 9_999, 302):
        assert scene.ask(code, user="root") is None


def test_of_what_nothing_is_known_is_refused(scene: Scene) -> None:
    scene.allow(("*", "All", "Allow"))
    assert scene.ask(302) == "authorization context is empty."
    assert scene.ask(9_999) is None, "this is no request at all, and is answered so"
    assert scene.ask(25) is None


def test_without_authorization_a_signature_is_enough() -> None:
    scene = Scene()
    assert scene.ask(25) is None
    assert remark(scene.authority.refusal(RemotingCommand(25, {"AccessKey": "alice"}), HOST))


def test_one_of_several_actions_is_enough_and_all_resources_are_needed(scene: Scene) -> None:
    scene.allow(("Topic:T", "Get", "Allow"))
    assert scene.ask(12, topic="T") is None
    assert "Group:g" in (scene.ask(208, consumerGroup="g", topic="T") or "")
    scene.allow(("Group:g*", "Get", "Allow"))
    assert scene.ask(208, consumerGroup="g", topic="T") is None


def test_addresses(scene: Scene) -> None:
    scene.allow(("Topic:T", "Pub", "Allow"), ips=("10.1.0.0/16", "2001:db8::/32"))
    assert scene.ask(310, b="T") is None
    assert scene.ask(310, b="T", host="2001:db8::7") is None
    assert "from 10.2.0.1, no matched" in (scene.ask(310, b="T", host="10.2.0.1") or "")
    assert scene.ask(310, b="T", host="") is not None


def test_changes_count_at_once(scene: Scene) -> None:
    scene.allow(("Topic:T", "Pub", "Allow"))
    assert scene.ask(310, b="T") is None
    scene.accounts.update_user("alice", UserInfo(password="other"))
    assert scene.ask(310, b="T") == "check signature failed."
    scene.accounts.update_user("alice", UserInfo(password="alice-key"))
    scene.allow(("Topic:T", "Pub", "Deny"))
    assert "deny" in (scene.ask(310, b="T") or "")
    scene.accounts.delete_user("alice")
    assert scene.ask(310, b="T") == "User:alice is not found."
    scene.accounts.create_user("alice", UserInfo(password="alice-key"))
    assert "no matched" in (scene.ask(310, b="T") or ""), "the old policies are gone"


def test_whitelists() -> None:
    unsigned = RemotingCommand(105, {"topic": "T"})
    scene = Scene(authentication_whitelist="105")
    assert scene.authority.refusal(unsigned, HOST) is None
    assert scene.authority.refusal(RemotingCommand(34, {}), HOST) is not None
    # A name that nobody has proven is authorized to nothing.
    scene = Scene(authentication_whitelist="105", authorization_enabled=True)
    assert remark(scene.authority.refusal(unsigned, HOST)) == "username cannot be null."
    named = RemotingCommand(105, {"topic": "T", "AccessKey": "root"})
    assert remark(scene.authority.refusal(named, HOST)) == "check signature failed."
    scene = Scene(
        authentication_whitelist="105", authorization_enabled=True, authorization_whitelist="105,12"
    )
    assert scene.authority.refusal(unsigned, HOST) is None
    assert scene.ask(12, topic="T") is None
    assert remark(scene.authority.refusal(RemotingCommand(12, {}), HOST)) is not None


@pytest.mark.parametrize(("version", "is_signed"), [(399, False), (400, True), (493, True)])
def test_the_field_that_old_clients_do_not_sign(version: int, is_signed: bool) -> None:
    scene = Scene()
    signed = {"AccessKey": "alice", "topic": "T"}
    extra = {"_UNIQUE_KEY_QUERY": "true"}
    covered = {**signed, **extra} if is_signed else signed
    signature = Signer("alice-key").signature(covered, b"")
    fields = {**signed, **extra, "Signature": signature}
    assert scene.authority.refusal(RemotingCommand(12, fields, version=version), HOST) is None
    other = 493 if version == 399 else 399
    assert scene.authority.refusal(RemotingCommand(12, fields, version=other), HOST) is not None
    pull = RemotingCommand(11, fields, version=399)
    assert (scene.authority.refusal(pull, HOST) is None) is is_signed


def test_decisions_are_remembered_and_few(scene: Scene) -> None:
    scene.allow(("Topic:T*", "Pub", "Allow"))
    decisions = scene.authority._decisions
    for _ in range(3):
        assert scene.ask(310, b="T") is None
    assert len(decisions) == 1
    for number in range(MOST_DECISIONS + 10):
        scene.ask(310, b=f"T{number}")
    assert len(decisions) <= MOST_DECISIONS
    decisions.clear()
    assert scene.ask(310, b="T" * 5_000) is None
    assert not decisions, "a name of any length is no key"
    body = b'{"clientID":"c","consumerDataSet":[{"groupName":"g"}]}'
    assert scene.ask(34, body) is not None
    assert body not in [part for key in decisions for part in key]


def test_what_is_remembered_is_about_the_same_body(scene: Scene) -> None:
    scene.allow(("Group:mine", "Sub", "Allow"))
    beat = '{"clientID":"c","consumerDataSet":[{"groupName":"%s"}]}'
    assert scene.ask(34, (beat % "mine").encode()) is None
    assert scene.ask(34, (beat % "others").encode()) is not None
    assert scene.ask(34, (beat % "mine").encode()) is None


MOST_LINES = 26
"""How many lines of Python a signed message may cost, when it is alone in a read."""


def test_what_a_message_costs_does_not_grow_with_accounts(scene: Scene) -> None:
    """Ten thousand users and ten thousand policies; the signature is that of each message."""
    scene.allow(("Topic:T", "Pub", "Allow"))
    told: list[str] = []
    guard = AccessGuard(scene.authority, Audit(told.append, told.append, lambda: 0))
    peer = FakePeer()

    def signed(born: int) -> RemotingCommand:
        fields = {"b": "T", "g": str(born), "AccessKey": "alice"}
        fields["Signature"] = Signer("alice-key").signature(fields, b"body")
        return RemotingCommand(310, fields, b"body")

    def lines(born: int) -> int:
        command = signed(born)
        passed: list[int] = []
        count = lines_of(lambda: passed.append(guard.passed(peer, [command], 0, 1)))
        assert passed == [1]
        return count

    guard(peer, signed(0))
    lines(1)
    few = lines(2)
    assert few <= MOST_LINES
    for number in range(10_000):
        scene.accounts.users.create(f"user{number}", UserInfo(password="p"))
    scene.allow(*((f"Topic:{number}*", "Pub", "Allow") for number in range(10_000)))
    scene.accounts.update_user("user7", UserInfo(password="q"))
    command = signed(3)
    assert guard.passed(peer, [command], 0, 1) == 0, "after a change, nothing is known"
    decided = lines_of(lambda: guard(peer, command))
    assert decided <= 8 * MOST_LINES, "nor does a decision look at all policies"
    lines(4)
    assert lines(5) == few


FIELDS = st.dictionaries(
    st.sampled_from(["b", "topic", "a", "group", "consumerGroup", "AccessKey", "Signature", "x"]),
    st.one_of(st.sampled_from(["T", "alice", "root", "", "%RETRY%g"]), st.text(max_size=8)),
)


@given(
    st.sampled_from([10, 310, 11, 34, 41, 12, 25, 37, 3001, 9_999]), FIELDS, st.binary(max_size=60)
)
def test_without_a_signature_nothing_passes(code: int, fields: dict[str, str], body: bytes) -> None:
    scene = Scene(authorization_enabled=True)
    assert scene.authority.refusal(RemotingCommand(code, fields, body), HOST) is not None


def test_a_body_that_is_too_long_is_neither_read_nor_remembered_by_itself(scene: Scene) -> None:
    scene.allow(("Topic:*", "All", "Allow"), ("Group:*", "All", "Allow"))
    for length in (1, 2):
        assert scene.ask(34, b"[" * (MOST_BYTES + length)) == TOO_LONG
    assert len(scene.authority._decisions) == 1


def test_the_largest_request_holds_nobody_up(scene: Scene) -> None:
    scene.allow(("Topic:T*", "Sub", "Allow"), ("Group:*", "Sub", "Allow"))
    acks = [
        BatchAck(consumer_group=f"g{number // 2}", topic=f"T{number // 2}")
        for number in range(MOST_NEEDS - 1)
    ]
    assert scene.ask(200151, BatchAckMessageRequestBody(acks=acks[:1]).encode()) is None
    found: list[str | None] = []
    body = BatchAckMessageRequestBody(acks=acks).encode()
    lines = lines_of(lambda: found.append(scene.ask(200151, body)))
    assert found == [None]
    assert lines < 200_000, f"{lines} lines of Python in one turn"
    assert lines_of(lambda: found.append(scene.ask(200151, body))) < 500, "it is remembered"
