# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.fakes import result_of
from tests.proxy.accounts.signing import ALICE, DATE, ROOT, policies, signed, some_accounts
from txrocketmq.access.auth.policies import acl_of, decision
from txrocketmq.access.authority import Refusal
from txrocketmq.proxy.accounts import authority as module
from txrocketmq.proxy.accounts.authority import CallAuthority, ProvenUser
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.signature import CallSignature
from txrocketmq.proxy.accounts.sources import AccountsHere
from txrocketmq.proxy.base.rights import publishing
from txrocketmq.proxy.grpc.service import Kind, Rpc
from txrocketmq.remoting.protocol.body.auth import UserInfo

PEER = "10.1.2.3:4711"
SEND = Rpc("SendMessage", "SendMessageRequest", Kind.UNARY, rights=publishing(lambda topic: topic))


class Scene:
    """An authority over the accounts of a test."""

    def __init__(self, **settings: Any) -> None:
        self.accounts = some_accounts()
        settings = {"authentication_enabled": True, "authorization_enabled": True, **settings}
        self.authority = CallAuthority(AccountsHere(self.accounts), AccountsConfig(**settings))

    def caller(self, headers: dict[str, str]) -> ProvenUser:
        """Who calls, who must be one."""
        caller = self.authority.caller(headers)
        assert isinstance(caller, ProvenUser), caller
        return caller

    def why(self, headers: dict[str, str], topic: str = "T") -> str:
        """The remark of a refusal to send, or nothing."""
        caller = self.authority.caller(headers)
        if isinstance(caller, ProvenUser):
            refusal = self.authority.refusal(caller, SEND, topic, PEER)
            return "" if refusal is None else refusal.remark
        assert isinstance(caller, Refusal)
        return caller.remark


def test_who_is_who() -> None:
    scene = Scene()
    assert scene.caller(ALICE).name == "alice"
    assert scene.why({}) == "username cannot be null."
    assert scene.why(signed("bob", "x")) == "User:bob is not found."
    assert scene.why(signed("alice", "x")) == "check signature failed."
    assert scene.why({**ALICE, "x-mq-date-time": DATE.replace("13", "14")}) == (
        "check signature failed."
    )
    assert scene.why({"authorization": ALICE["authorization"]}) == "datetime is null."
    scene.accounts.update_user("alice", UserInfo(user_status="disable"))
    assert scene.why(ALICE) == "User:alice is disabled."


def test_who_may_what() -> None:
    scene = Scene()
    assert scene.why(ALICE) == ""
    assert scene.why(ALICE, "U") == (
        "User:alice has no permission to access Topic:U from 10.1.2.3, no matched policies."
    )
    assert scene.why(ROOT, "U") == ""
    assert scene.why(ALICE, " ") == "topic is null."


def test_without_policies_every_account_may_everything() -> None:
    assert Scene(authorization_enabled=False).why(ALICE, "U") == ""


def test_what_declares_nothing_is_for_super_users() -> None:
    scene = Scene()
    its = Rpc("X", "XRequest", Kind.UNARY)
    refusal = scene.authority.refusal(scene.caller(ALICE), its, None, PEER)
    assert refusal is not None
    assert refusal.remark == "authorization context is empty."
    assert scene.authority.refusal(scene.caller(ROOT), its, None, PEER) is None


def test_lists_leave_calls_to_everybody() -> None:
    names = {"authentication_whitelist": "apache.rocketmq.v2.SendMessageRequest"}
    assert Scene(**names).authority.unsigned == frozenset(), "nobody has proven a name"
    names["authorization_whitelist"] = names["authentication_whitelist"]
    scene = Scene(**names)
    assert scene.authority.unsigned == {"SendMessageRequest"}
    assert scene.why(ALICE, "U") == ""
    assert Scene(authorization_enabled=False, **names).authority.unsigned == {"SendMessageRequest"}


def test_every_change_counts_for_the_next_call() -> None:
    scene = Scene()
    assert scene.why(ALICE) == ""
    scene.accounts.update_user("alice", UserInfo(password="new"))  # noqa: S106
    assert scene.why(ALICE) == "check signature failed."
    new = signed("alice", "new")
    assert scene.why(new, "U") != ""
    scene.accounts.add_acl(acl_of("alice", policies(("Topic:U", "Pub"))))
    assert scene.why(new, "U") == ""
    scene.accounts.delete_user("alice")
    assert scene.why(new) == "User:alice is not found."


def test_a_signature_and_a_decision_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    made: list[str] = []

    def decide(*its: Any) -> Any:
        made.append("decision")
        return decision(*its)

    monkeypatch.setattr("txrocketmq.proxy.accounts.authority.decision", decide)
    assert scene.why(ALICE) == ""
    monkeypatch.setattr(CallSignature, "read", lambda _: made.append("signature"))
    for _ in range(10):
        assert scene.why(dict(ALICE)) == ""
    assert made == ["decision"]


def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 4)
    scene = Scene()
    for number in range(50):
        headers = signed("alice", "alice-secret", f"{number}")
        caller = scene.caller(headers)
        assert scene.authority.refusal(caller, SEND, f"t{number}", f"10.0.0.{number}:1")
        scene.why(signed("alice", "wrong", f"{number}"))
    for kept in ("_signed", "_decisions", "_hosts", "_callers"):
        assert 0 < len(getattr(scene.authority, kept)) <= 4, kept
    assert scene.why(ALICE, "t" * 2_000) != ""
    scene.why(signed("alice", "alice-secret", "9" * 2_000))
    assert all(len("".join(key)) < 1_100 for key in scene.authority._decisions)
    assert all(len(date) < 600 for _, date in scene.authority._signed)


def test_somebody_who_is_not_known_is_asked_for() -> None:
    scene = Scene()
    caller = result_of(scene.authority.asked_caller(ALICE))
    assert isinstance(caller, ProvenUser)
    assert caller.name == "alice"
    refusal = result_of(scene.authority.asked_caller(signed("bob", "x")))
    assert isinstance(refusal, Refusal)
    assert refusal.remark == "User:bob is not found."


@given(st.text(), st.text(), st.integers(0, 200), st.text(max_size=2))
def test_no_other_headers_are_right(authorization: str, date: str, at: int, put: str) -> None:
    scene = Scene()
    assert not isinstance(
        scene.authority.caller({"authorization": authorization, "x-mq-date-time": date}), ProvenUser
    )
    text = ALICE["authorization"]
    changed = text[:at] + put + text[at + 1 :]
    found = scene.authority.caller({**ALICE, "authorization": changed})
    if isinstance(found, ProvenUser):  # what was changed is of no account
        _, _, kept = changed.partition(" ")
        items = dict(each.strip().partition("=")[::2] for each in kept.split(","))
        assert items["Credential"].partition("/")[0] == "alice"
        assert items["Signature"].lower() == text.rpartition("=")[2].lower()
