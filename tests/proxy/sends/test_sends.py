# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from tests.proxy.scene import (
    BROKER_A,
    BROKER_B,
    OFFSET_ID,
    Outcome,
    ProxyScene,
    a_route,
    refusal,
    stored,
)
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType, Encoding, MessageType
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError, RequestTimeout
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send, topic


def sent(scene: ProxyScene, *systems: dict[str, Any], name: str = "T", **options: Any) -> Outcome:
    messages: list[dict[str, Any]] = [
        {
            "topic": {"name": name},
            "body": b"body",
            "system_properties": {"message_id": f"ID{number}", **system},
        }
        for number, system in enumerate(systems or [dict[str, Any]()])
    ]
    return scene.call("SendMessage", {"messages": messages}, **options)


def test_a_message_is_stored_and_answered(scene: ProxyScene) -> None:
    scene.on(send.SEND_MESSAGE_V2, stored(recall_handle="handle"))
    outcome = sent(scene, {"tag": "t"})
    assert outcome.code is Code.OK
    (entry,) = outcome.answer.entries
    assert entry.status.code == Code.OK
    assert (entry.message_id, entry.offset, entry.recall_handle) == ("ID0", 7, "handle")
    assert entry.transaction_id == "ID0"
    (header,) = scene.asked(send.SEND_MESSAGE_V2)
    assert (header.topic, header.producer_group, header.default_topic) == ("T", "T", "TBW102")
    assert decode_properties(header.properties)["TAGS"] == "t"
    assert header.born_timestamp == scene.clock.now_ms()


def test_a_send_that_knows_the_topic_is_no_coroutine_and_asks_nobody_else(
    scene: ProxyScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(scene)
    before = len(scene.connections.asked)
    monkeypatch.setattr("twisted.internet.defer.Deferred.fromCoroutine", None)
    assert sent(scene).code is Code.OK
    assert len(scene.connections.asked) == before + 1


@pytest.mark.parametrize(
    ("broker", "code"),
    [
        (ResponseCode.FLUSH_DISK_TIMEOUT, Code.MASTER_PERSISTENCE_TIMEOUT),
        (ResponseCode.FLUSH_SLAVE_TIMEOUT, Code.SLAVE_PERSISTENCE_TIMEOUT),
        (ResponseCode.SLAVE_NOT_AVAILABLE, Code.HA_NOT_AVAILABLE),
    ],
)
def test_what_is_stored_but_not_safe_has_an_entry(
    scene: ProxyScene, broker: ResponseCode, code: Code
) -> None:
    answer = stored()
    answer.code = broker
    scene.on(send.SEND_MESSAGE_V2, answer)
    outcome = sent(scene)
    assert outcome.code is code
    assert [each.status.code for each in outcome.answer.entries] == [code]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (refusal(ResponseCode.SYSTEM_BUSY), Code.TOO_MANY_REQUESTS),
        (refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED), Code.NOT_IMPLEMENTED),
        (refusal(ResponseCode.NO_PERMISSION), Code.FORBIDDEN),
        (refusal(ResponseCode.MESSAGE_ILLEGAL), Code.INTERNAL_SERVER_ERROR),
        (RequestTimeout("late"), Code.PROXY_TIMEOUT),
        (ConnectError("nobody there"), Code.INTERNAL_SERVER_ERROR),
    ],
)
def test_what_is_not_stored_has_the_code(scene: ProxyScene, reply: Any, code: Code) -> None:
    scene.on(send.SEND_MESSAGE_V2, reply)
    outcome = sent(scene)
    assert outcome.code is code
    assert not outcome.answer.entries


def test_after_a_failure_the_other_broker_is_asked(scene: ProxyScene) -> None:
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, ConnectError("gone"))
    codes = [sent(scene).code for _ in range(8)]
    assert codes.count(Code.OK) >= 7
    assert BROKER_B in {address for address, _ in scene.connections.questions(send.SEND_MESSAGE_V2)}


def test_several_messages_are_a_batch(scene: ProxyScene) -> None:
    scene.on(send.SEND_BATCH_MESSAGE, stored(msg_id=f"{OFFSET_ID},{OFFSET_ID}"))
    outcome = sent(scene, {"tag": "a"}, {"tag": "b"})
    assert outcome.code is Code.OK
    assert [(each.message_id, each.offset) for each in outcome.answer.entries] == [
        ("ID0", 7),
        ("ID1", 8),
    ]
    (body,) = [each[3] for each in scene.connections.asked if each[1] is send.SEND_BATCH_MESSAGE]
    assert [each.tags for each in decode_batch(body, "T")] == ["a", "b"]


def test_batches_that_cannot_be_are_refused(scene: ProxyScene) -> None:
    assert scene.call("SendMessage", {}).code is Code.MESSAGE_CORRUPTED
    mixed = [
        {"topic": {"name": name}, "body": b"b", "system_properties": {"message_id": "I"}}
        for name in ("T", "U")
    ]
    assert scene.call("SendMessage", {"messages": mixed}).code is Code.MESSAGE_CORRUPTED
    delayed = {"delivery_timestamp": {"seconds": 1}}
    assert sent(scene, {}, delayed).code is Code.MESSAGE_CORRUPTED


def compressed(*bodies: bytes) -> dict[str, Any]:
    """A request whose bodies are called GZIP."""
    systems = [
        {"message_id": f"ID{number}", "body_encoding": Encoding.GZIP}
        for number in range(len(bodies))
    ]
    return {
        "messages": [
            {"topic": {"name": "T"}, "body": body, "system_properties": system}
            for body, system in zip(bodies, systems, strict=True)
        ]
    }


def test_a_batch_of_compressed_bodies_has_their_flag(scene: ProxyScene) -> None:
    scene.on(send.SEND_BATCH_MESSAGE, stored(msg_id=f"{OFFSET_ID},{OFFSET_ID}"))
    bodies = zlib.compress(b"one"), zlib.compress(b"two")
    assert scene.call("SendMessage", compressed(*bodies)).code is Code.OK
    (header,) = scene.asked(send.SEND_BATCH_MESSAGE)
    assert header.sys_flag == MessageSysFlag.COMPRESSED
    mixed = compressed(bodies[0], gzip.compress(b"two"))
    assert scene.call("SendMessage", mixed).code is Code.MESSAGE_CORRUPTED
    plain = compressed(gzip.compress(b"one"), gzip.compress(b"two"))
    assert scene.call("SendMessage", plain).code is Code.OK
    assert scene.asked(send.SEND_BATCH_MESSAGE)[-1].sys_flag == 0


def test_small_bodies_of_gzip_that_become_long_are_refused() -> None:
    scene = ProxyScene(max_message_size=10_000)
    ours = gzip.compress(bytes(6_000))
    outcome = scene.call("SendMessage", compressed(ours))
    assert (outcome.code, outcome.sink.held_bytes) == (Code.OK, 6_000 - len(ours))
    long = scene.call("SendMessage", compressed(gzip.compress(bytes(10_001))))
    assert long.code is Code.MESSAGE_CORRUPTED
    outcome = scene.call("SendMessage", compressed(*[ours] * 1_000))
    assert (outcome.code, outcome.sink.held_bytes) == (Code.MESSAGE_BODY_TOO_LARGE, 0)


def given_up(scene: ProxyScene) -> PendingReply:
    """Ends the call of a send that has left; returns the reply that it waits for."""
    sent(scene)
    pending = PendingReply()
    scene.on(send.SEND_MESSAGE_V2, pending)
    outcome = sent(scene)
    outcome.cancel()
    return pending


def test_an_answer_that_cannot_be_read_ends_the_call(scene: ProxyScene) -> None:
    scene.types["T"] = "TRANSACTION"
    sent(scene, {"message_type": MessageType.TRANSACTION})
    pending = PendingReply()
    scene.on(send.SEND_MESSAGE_V2, pending)
    outcome = sent(scene, {"message_type": MessageType.TRANSACTION})
    pending.resolve(stored(msg_id="none"))
    assert outcome.code is Code.INTERNAL_SERVER_ERROR


def test_a_broker_that_fails_after_the_call_has_ended_is_passed_over(scene: ProxyScene) -> None:
    pending = given_up(scene)
    failed = scene.asked(send.SEND_MESSAGE_V2)[-1].bname
    pending.resolve(RequestTimeout("late"))
    scene.on(send.SEND_MESSAGE_V2, stored())
    for _ in range(8):
        sent(scene)
    assert failed not in {header.bname for header in scene.asked(send.SEND_MESSAGE_V2)[-8:]}


def test_a_group_always_has_the_same_queue(scene: ProxyScene) -> None:
    scene.types["T"] = "FIFO"
    for _ in range(5):
        assert sent(scene, {"message_group": "order-2"}).code is Code.OK
    asked = scene.asked(send.SEND_MESSAGE_V2)
    assert len({(header.bname, header.queue_id) for header in asked}) == 1


def test_the_type_has_to_be_that_of_the_topic(scene: ProxyScene) -> None:
    outcome = sent(scene, {"message_group": "g"})
    assert outcome.code is Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    assert scene.asked(send.SEND_MESSAGE_V2) == []
    assert (
        sent(ProxyScene(enable_topic_message_type_check=False), {"message_group": "g"}).code
        is Code.OK
    )


def test_a_topic_whose_type_cannot_be_asked_for_takes_all(scene: ProxyScene) -> None:
    scene.on(topic.GET_TOPIC_CONFIG, RequestTimeout("late"))
    assert sent(scene, {"message_group": "g"}).code is Code.OK


def test_a_half_message_has_an_id_that_says_where_it_is(scene: ProxyScene) -> None:
    scene.types["T"] = "TRANSACTION"
    outcome = sent(scene, {"message_type": MessageType.TRANSACTION})
    (entry,) = outcome.answer.entries
    broker = scene.asked(send.SEND_MESSAGE_V2)[0].bname
    assert entry.transaction_id == f"ID0 {broker} 7 1000"
    client = scene.messaging.clients.get("client-1")
    assert client is not None
    assert (client.kind, client.topics) == (ClientType.PRODUCER, ("T",))


def test_a_consumer_that_sends_a_half_message_stays_one(scene: ProxyScene) -> None:
    scene.types["T"] = "TRANSACTION"
    scene.heartbeat()
    sent(scene, {"message_type": MessageType.TRANSACTION})
    client = scene.messaging.clients.get("client-1")
    assert client is not None
    assert (client.kind, client.topics) == (ClientType.PUSH_CONSUMER, ("T",))


@pytest.mark.parametrize(
    ("name", "client_id", "code"),
    [
        ("unknown", "c", Code.TOPIC_NOT_FOUND),
        ("a b", "c", Code.ILLEGAL_TOPIC),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "c", Code.ILLEGAL_TOPIC),
        ("T", "", Code.CLIENT_ID_REQUIRED),
    ],
)
def test_bad_names_have_their_code(
    scene: ProxyScene, name: str, client_id: str, code: Code
) -> None:
    assert sent(scene, name=name, client_id=client_id).code is code


def test_a_topic_without_writable_queues_is_forbidden(scene: ProxyScene) -> None:
    scene.routes["R"] = a_route({"broker-a": 1}, perm=4)
    assert sent(scene, name="R").code is Code.FORBIDDEN


def test_an_answer_after_the_call_has_ended_does_no_harm(scene: ProxyScene) -> None:
    pending = given_up(scene)
    pending.resolve(stored())
