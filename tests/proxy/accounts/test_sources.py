# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.fakes import result_of
from tests.proxy.accounts.signing import policies, some_accounts
from tests.proxy.scene import BROKER_A, BROKER_B, CLUSTER, ProxyScene, a_route, refusal
from txrocketmq.access.auth.policies import Acl
from txrocketmq.access.auth.users import User, UserType
from txrocketmq.client.base.errors import MQBrokerError, MQClientError
from txrocketmq.proxy.accounts import sources
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.sources import NOBODY, AccountsHere, AccountsOfBrokers, Known
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import SendError
from txrocketmq.remoting.protocol.body.auth import UserInfo
from txrocketmq.remoting.protocol.operations import auth

ACL = policies(("Topic:T", "Pub"))


class Brokers:
    """Brokers with accounts, and a source that asks them."""

    def __init__(self, *, authorizes: bool = True) -> None:
        self.scene = scene = ProxyScene()
        scene.routes[CLUSTER] = a_route({"broker-b": 1, "broker-a": 1})
        config = AccountsConfig(authentication_enabled=True, authorization_enabled=authorizes)
        self.source = AccountsOfBrokers(scene.messaging.cluster, CLUSTER, config)
        self.users = {"alice": self.user("alice"), "root": self.user("root", kind="Super")}
        scene.on(auth.AUTH_GET_USER, self._user)
        scene.on(auth.AUTH_GET_ACL, Reply(body=ACL.encode()))

    @staticmethod
    def user(name: str, password: str | None = "secret", kind: str = "Normal") -> UserInfo:  # noqa: S107
        return UserInfo(username=name, password=password, user_type=kind, user_status="enable")

    def _user(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        info = self.users.get(header.username)
        return Reply() if info is None else Reply(body=info.encode())

    def ask(self, name: str) -> Known:
        assert self.source.known(name) is None
        known: Known = result_of(self.source.ask(name))
        return known

    def asked(self, call: Any) -> int:
        return len(self.scene.asked(call))


def test_a_user_comes_with_its_policies_and_is_kept() -> None:
    brokers = Brokers()
    known = brokers.ask("alice")
    assert known.user == User("alice", "secret")
    assert known.acl is not None
    assert known.acl.info() is not None
    assert brokers.source.known("alice") == known
    assert (brokers.asked(auth.AUTH_GET_USER), brokers.asked(auth.AUTH_GET_ACL)) == (1, 1)
    (header,) = brokers.scene.asked(auth.AUTH_GET_ACL)
    assert header.subject == "User:alice"


def test_policies_are_asked_for_if_they_count() -> None:
    brokers = Brokers()
    assert brokers.ask("root") == Known(User("root", "secret", UserType.SUPER))
    assert Brokers(authorizes=False).ask("alice") == Known(User("alice", "secret"))
    assert brokers.asked(auth.AUTH_GET_ACL) == 0
    brokers.scene.on(auth.AUTH_GET_ACL, Reply())
    assert brokers.ask("alice").acl == Acl("alice", {})


def test_changes_are_seen_after_a_while() -> None:
    brokers = Brokers()
    brokers.ask("alice")
    brokers.users["alice"] = brokers.user("alice", "new")
    brokers.scene.advance(20_100)
    brokers.source.known("alice")
    known = brokers.source.known("alice")
    assert known is not None
    assert known.user == User("alice", "new")
    del brokers.users["alice"]
    brokers.scene.advance(20_100)
    brokers.source.known("alice")
    assert brokers.ask("alice") == NOBODY


def test_nobody_has_brokers_asked_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    assert brokers.ask("bob") == NOBODY
    assert brokers.source.known("bob") == NOBODY
    for name in ("", "x" * 256):
        assert brokers.source.known(name) == NOBODY
    assert brokers.asked(auth.AUTH_GET_USER) == 1
    brokers.users["bob"] = brokers.user("bob")
    brokers.scene.advance(1_100)
    assert brokers.ask("bob").user is not None
    monkeypatch.setattr(sources, "MOST_MISSING", 3)
    for number in range(20):
        brokers.ask(f"n{number}")
        assert len(brokers.source._missing) <= 3


def test_so_many_are_asked_for_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    monkeypatch.setattr(sources, "MOST_ASKED", 2)
    waiting: list[PendingReply] = []

    def wait(*_: object) -> PendingReply:
        waiting.append(PendingReply())
        return waiting[-1]

    brokers.scene.on(auth.AUTH_GET_USER, wait)
    asks = [Deferred.fromCoroutine(brokers.source.ask(name)) for name in ("alice", "bob")]
    with pytest.raises(Refused, match="try again"):
        result_of(brokers.source.ask("carol"))
    for each in waiting:
        each.resolve(Reply())
    assert [result_of_deferred(ask) for ask in asks] == [NOBODY, NOBODY]
    brokers.scene.on(auth.AUTH_GET_USER, Reply())
    assert brokers.ask("carol") == NOBODY


def result_of_deferred(ask: Deferred[Known]) -> Known:
    found: list[Any] = []
    ask.addBoth(found.append)
    assert isinstance(found[0], Known)
    return found[0]


def test_it_is_always_the_same_broker_as_long_as_it_answers() -> None:
    brokers = Brokers()
    brokers.ask("alice")
    brokers.ask("bob")
    assert {address for address, _ in brokers.scene.connections.questions(auth.AUTH_GET_USER)} == {
        BROKER_A
    }
    brokers.scene.connections.on(BROKER_A, auth.AUTH_GET_USER, SendError("gone"))
    assert brokers.ask("root").user is not None
    brokers.scene.connections.on(BROKER_B, auth.AUTH_GET_USER, SendError("gone"))
    with pytest.raises(SendError):
        brokers.ask("carol")
    brokers.scene.on(auth.AUTH_GET_USER, refusal(ResponseCode.NO_PERMISSION, "not you"))
    with pytest.raises(MQBrokerError, match="not you"):
        brokers.ask("carol")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(body=b"[]"), "the user alice is no object"),
        (Reply(body=b"{"), "cannot be used"),
        (Reply(body=Brokers.user("alice", None).encode()), "tells passwords to Super users only"),
    ],
)
def test_an_answer_that_is_none(answer: Reply[Any], why: str) -> None:
    brokers = Brokers()
    brokers.scene.on(auth.AUTH_GET_USER, answer)
    with pytest.raises(MQClientError, match=why):
        brokers.ask("alice")
    assert brokers.source.known("alice") is None


def test_policies_that_cannot_be_read_allow_nothing() -> None:
    brokers = Brokers()
    brokers.scene.on(auth.AUTH_GET_ACL, Reply(body=policies(("Topic:T", "Fly")).encode()))
    with pytest.raises(MQClientError, match="policies of the user alice cannot be read"):
        brokers.ask("alice")
    assert brokers.source.known("alice") is None


def test_the_accounts_of_the_same_process() -> None:
    accounts = some_accounts()
    source = AccountsHere(accounts)
    changes: list[str] = []
    source.on_change.append(lambda: changes.append("changed"))
    assert source.known("alice") == Known(accounts.users.get("alice"), accounts.acl("alice"))
    assert result_of(source.ask("alice")) == source.known("alice")
    assert source.known("bob") == NOBODY
    fields: dict[str, str] = {"a": "1"}
    source.seal(fields, b"body")
    root = accounts.users.get("root")
    assert root is not None
    assert fields["AccessKey"] == "root"
    assert root.signer.accepts(fields, b"body", fields["Signature"])
    accounts.update_user("root", UserInfo(user_status="disable"))
    assert changes == ["changed"]
    fields = {"a": "1"}
    source.seal(fields, b"body")
    assert fields == {"a": "1"}, "there is no account that may do everything"
