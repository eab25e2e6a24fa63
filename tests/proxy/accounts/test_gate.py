# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from tests.examples import examples
from tests.proxy.accounts.signing import ALICE, ROOT, policies, signed, some_accounts
from tests.proxy.scene import ProxyScene, a_message, refusal
from txrocketmq.access.auth.policies import acl_of
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.gate import FAILED, UNREACHABLE
from txrocketmq.proxy.accounts.sources import AccountsHere
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import SendError
from txrocketmq.remoting.message.message import encode_message
from txrocketmq.remoting.protocol import pop, query, send
from txrocketmq.remoting.protocol import topic as topic_calls
from txrocketmq.remoting.protocol.body.auth import UserInfo
from txrocketmq.remoting.protocol.operations import auth

CONFIG = AccountsConfig(authentication_enabled=True, authorization_enabled=True)
HANDLE = "0 1000000 6000000 3 0 broker-b 7 5 817"

ROOT_INFO: Reply[Any] = Reply(
    body=some_accounts().users.all()["root"].info(with_password=True).encode()
)


class Guarded(ProxyScene):
    """A proxy with the accounts of the same process, or of the brokers."""

    def __init__(
        self, config: AccountsConfig = CONFIG, *, is_here: bool = True, **settings: Any
    ) -> None:
        self.accounts = some_accounts()
        here = AccountsHere(self.accounts) if is_here else None
        super().__init__(config, here, **settings)
        self.routes["U"] = self.routes["T"]

    def send(self, headers: dict[str, str], topic: str = "T") -> Any:
        message = {
            "topic": {"name": topic},
            "system_properties": {"message_id": "01" * 17},
            "body": b"body",
        }
        return self.call("SendMessage", {"messages": [message]}, headers=headers)

    def telemetry(self, headers: dict[str, str], **settings: Any) -> tuple[Any, Any]:
        outcome = self.call("Telemetry", headers=headers)
        talk = outcome.answers[0]
        talk.received(message_type("TelemetryCommand")(settings=settings))
        return talk, outcome


@pytest.fixture
def guarded() -> Guarded:
    return Guarded()


def test_an_account_that_may_is_served(guarded: Guarded) -> None:
    outcome = guarded.send(ALICE)
    assert outcome.code is Code.OK
    assert outcome.call.account == "alice"


def test_others_are_answered_and_nothing_is_done(guarded: Guarded) -> None:
    for headers, topic, why in (
        ({}, "T", "username cannot be null."),
        (signed("alice", "x"), "T", "check signature failed."),
        (ALICE, "U", "User:alice has no permission to access Topic:U from 10.1.1.1"),
    ):
        outcome = guarded.send(headers, topic)
        assert outcome.code is Code.UNAUTHORIZED
        assert why in outcome.answer.status.message
    assert guarded.connections.asked == []
    gate = guarded.messaging.gate
    assert gate is not None
    assert gate.refused == {
        ("SendMessage", "no account is named"): 1,
        ("SendMessage", "wrong signature"): 1,
        ("SendMessage", "no policy allows it"): 1,
    }


@pytest.mark.parametrize("headers", [{}, signed("root", "x"), signed("bob", "x")])
def test_every_method_needs_an_account(guarded: Guarded, headers: dict[str, str]) -> None:
    for served in guarded.messaging.rpcs:
        name = served.rpc.name
        outcome = guarded.call(name, headers=headers)
        if name == "Telemetry":
            outcome.answers[0].received(message_type("TelemetryCommand")())
            (answer,) = outcome.written("TelemetryCommand")
            assert outcome.sink.is_ended
            assert outcome.sink.error is None
        elif name == "ReceiveMessage":
            (answer,) = outcome.written("ReceiveMessageResponse")
        else:
            answer = outcome.answer
        assert answer.status.code == Code.UNAUTHORIZED, name
    assert guarded.connections.asked == []


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text(), st.text(max_size=20))
def test_no_headers_of_strangers_are_served(
    guarded: Guarded, authorization: str, date: str, word: str
) -> None:
    """Nor do they become a defect, which would be logged with a traceback."""
    for text in (authorization, f"MQv2-HMAC-SHA1 Credential=root,{word},Signature={authorization}"):
        outcome = guarded.send({"authorization": text, "x-mq-date-time": date})
        assert outcome.code is Code.UNAUTHORIZED
    assert guarded.connections.asked == []


def test_a_receive_is_refused_in_its_stream(guarded: Guarded) -> None:
    request = {"group": {"name": "H"}, "message_queue": {"topic": {"name": "T"}}}
    outcome = guarded.call("ReceiveMessage", request, headers=ALICE)
    (answer,) = outcome.written("ReceiveMessageResponse")
    assert "Group:H" in answer.status.message
    assert outcome.answers == [None], "so that the call ends"


def test_each_message_of_a_conversation_needs_its_rights(guarded: Guarded) -> None:
    talk, outcome = guarded.telemetry(ALICE, publishing={"topics": [{"name": "T"}]}, client_type=1)
    (answer,) = outcome.written("TelemetryCommand")
    assert answer.status.code == Code.OK
    talk.received(
        message_type("TelemetryCommand")(settings={"publishing": {"topics": [{"name": "U"}]}})
    )
    _, answer = outcome.written("TelemetryCommand")
    assert answer.status.code == Code.UNAUTHORIZED
    assert outcome.sink.is_ended
    talk.ended("the server has ended it")
    assert [each.streams for each in guarded.messaging.clients.producers("T")] == [[]]


def test_a_client_of_another_account_is_none_of_mine(guarded: Guarded) -> None:
    """Otherwise it would be asked about my transactions, with what is in their messages."""
    guarded.accounts.create_user("bob", UserInfo(password="bob-secret"))  # noqa: S106
    guarded.accounts.add_acl(acl_of("bob", policies(("Topic:U", "Pub"), ("Group:G", "Sub"))))
    bob = signed("bob", "bob-secret")
    guarded.telemetry(ALICE, publishing={"topics": [{"name": "T"}]}, client_type=1)
    guarded.telemetry(bob, publishing={"topics": [{"name": "U"}]}, client_type=1)
    guarded.call("NotifyClientTermination", headers=bob)
    (client,) = guarded.messaging.clients.producers("T")
    streams: Any = client.streams
    assert [each.call.account for each in streams] == ["alice"]
    assert list(guarded.messaging.clients.producers("U")) == []


def test_calls_of_the_lists_need_no_account() -> None:
    name = "apache.rocketmq.v2.HeartbeatRequest"
    scene = Guarded(
        AccountsConfig(
            authentication_enabled=True,
            authorization_enabled=True,
            authentication_whitelist=name,
            authorization_whitelist=name,
        )
    )
    assert scene.heartbeat().code is Code.OK
    assert scene.send({}).code is Code.UNAUTHORIZED


def test_without_accounts_there_is_no_gate(scene: ProxyScene) -> None:
    assert scene.messaging.gate is None
    for served in scene.messaging.rpcs:
        assert "Gate" not in repr(served.method)


def test_a_right_that_is_lost_ends_within_a_second() -> None:
    scene = Guarded(is_here=False)
    scene.on(auth.AUTH_GET_USER, ROOT_INFO)
    assert scene.send(ROOT).code is Code.OK
    scene.on(auth.AUTH_GET_USER, Reply())
    for _ in range(3):
        scene.advance(20_100)
        outcome = scene.send(ROOT)
    assert outcome.code is Code.UNAUTHORIZED


def test_brokers_are_asked_who_calls() -> None:
    scene = Guarded(is_here=False)
    waiting = PendingReply()
    scene.on(auth.AUTH_GET_USER, lambda *_: waiting)
    outcome = scene.send(ROOT)
    assert outcome.answers == []
    waiting.resolve(ROOT_INFO)
    assert outcome.code is Code.OK


def test_a_call_that_ends_while_brokers_are_asked() -> None:
    scene = Guarded(is_here=False)
    waiting = PendingReply()
    scene.on(auth.AUTH_GET_USER, lambda *_: waiting)
    outcome = scene.send(ROOT)
    assert isinstance(outcome.waits, Deferred)
    outcome.waits.addErrback(lambda _: None)
    outcome.cancel()
    waiting.resolve(Reply())
    assert scene.asked(send.SEND_MESSAGE_V2) == []


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (refusal(ResponseCode.NO_PERMISSION, "a secret of ours"), Code.UNAUTHORIZED, FAILED),
        (SendError("10.0.0.1 is gone"), Code.PROXY_TIMEOUT, UNREACHABLE),
    ],
)
def test_nobody_is_let_in_if_brokers_do_not_say_who_it_is(
    answer: Any, code: Code, text: str
) -> None:
    scene = Guarded(is_here=False)
    scene.on(auth.AUTH_GET_USER, answer)
    outcome = scene.send(ROOT)
    assert outcome.code is code
    assert outcome.answer.status.message == text


def test_topics_are_made_for_those_who_may_send() -> None:
    scene = Guarded(auto_create_topic_enable=True)
    scene.accounts.create_user("bob", UserInfo(password="bob-secret"))  # noqa: S106
    scene.accounts.add_acl(acl_of("bob", policies(("Topic:*", "Sub"), ("Group:G", "Sub"))))
    scene.routes["TBW102"] = scene.routes["T"]
    made: list[str] = []

    def make(_: str, header: Any, __: bytes) -> Reply[Any]:
        made.append(header.topic)
        scene.routes[header.topic] = scene.routes["T"]
        return Reply()

    scene.on(topic_calls.UPDATE_AND_CREATE_TOPIC, make)
    asks = {"topic": {"name": "New"}, "endpoints": None}
    outcome = scene.call("QueryRoute", asks, headers=signed("bob", "bob-secret"))
    assert outcome.code is Code.TOPIC_NOT_FOUND
    request = {"group": {"name": "G"}, "message_queue": {"topic": {"name": "New"}}}
    scene.call(
        "ReceiveMessage",
        {**request, "invisible_duration": {"seconds": 30}},
        headers=signed("bob", "bob-secret"),
    )
    assert made == []
    assert scene.call("QueryRoute", asks, headers=ROOT).code is Code.OK
    assert set(made) == {"New"}


def test_a_handle_brings_no_message_of_another_topic_to_dead_letters(guarded: Guarded) -> None:
    request = {
        "group": {"name": "G"},
        "topic": {"name": "T"},
        "receipt_handle": HANDLE,
        "message_id": "ID",
    }
    call = "ForwardMessageToDeadLetterQueue"
    guarded.on(query.VIEW_MESSAGE_BY_ID, Reply(body=encode_message(a_message(topic="Secret"))))
    outcome = guarded.call(call, request, headers=ALICE)
    assert outcome.code is Code.INVALID_RECEIPT_HANDLE
    guarded.on(query.VIEW_MESSAGE_BY_ID, refusal(ResponseCode.SYSTEM_ERROR))
    assert guarded.call(call, request, headers=ALICE).code is Code.INVALID_RECEIPT_HANDLE
    assert guarded.asked(send.CONSUMER_SEND_MSG_BACK) == guarded.asked(pop.ACK_MESSAGE) == []
    guarded.on(query.VIEW_MESSAGE_BY_ID, Reply(body=encode_message(a_message())))
    assert guarded.call(call, request, headers=ALICE).code is Code.OK
    assert len(guarded.asked(send.CONSUMER_SEND_MSG_BACK)) == 1
