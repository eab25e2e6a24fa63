# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import BROKER_A, Outcome, ProxyScene, a_message, refusal
from txrocketmq.proxy.receives.acks import MAX_ENTRIES, Acks
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import pop, send
from txrocketmq.remoting.protocol.body.pop import BatchAckMessageRequestBody, encode_bit_set

NAMES: dict[str, Any] = {"group": {"name": "G"}, "topic": {"name": "T"}}


def handle(scene: ProxyScene, broker: str = "broker-a", offset: int = 5) -> str:
    return f"0 {scene.clock.now_ms()} 60000 3 0 {broker} 1 {offset} 817"


def acked(scene: ProxyScene, *handles: str, **fields: Any) -> Outcome:
    entries = [{"message_id": f"ID{n}", "receipt_handle": it} for n, it in enumerate(handles)]
    return scene.call("AckMessage", {**NAMES, "entries": entries, **fields})


def test_messages_are_acknowledged_each_by_itself(scene: ProxyScene) -> None:
    scene.connections.on(BROKER_A, pop.ACK_MESSAGE, refusal(ResponseCode.SYSTEM_BUSY))
    handles = [handle(scene), handle(scene, "broker-b", 6), "no handle"]
    outcome = acked(scene, *handles)
    assert outcome.code is Code.MULTIPLE_RESULTS
    assert [
        (each.message_id, each.receipt_handle, each.status.code) for each in outcome.answer.entries
    ] == [
        ("ID0", handles[0], Code.TOO_MANY_REQUESTS),
        ("ID1", handles[1], Code.OK),
        ("ID2", handles[2], Code.INVALID_RECEIPT_HANDLE),
    ]
    assert acked(scene, handles[1]).code is Code.OK
    assert acked(scene, "no handle").code is Code.INVALID_RECEIPT_HANDLE


def test_an_acknowledgement_has_some_entries(scene: ProxyScene) -> None:
    assert acked(scene).code is Code.BAD_REQUEST
    assert acked(scene, *["x"] * (MAX_ENTRIES + 1)).code is Code.BAD_REQUEST


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group": {"name": ""}}, Code.ILLEGAL_CONSUMER_GROUP),
        ({"topic": {"name": ""}}, Code.ILLEGAL_TOPIC),
    ],
)
@pytest.mark.parametrize(
    "method", ["AckMessage", "ChangeInvisibleDuration", "ForwardMessageToDeadLetterQueue"]
)
def test_names_are_checked(
    scene: ProxyScene, method: str, fields: dict[str, Any], code: Code
) -> None:
    assert scene.call(method, {**NAMES, **fields}).code is code
    assert scene.call(method, NAMES, client_id="").code is Code.CLIENT_ID_REQUIRED


def test_acknowledgements_may_go_together() -> None:
    scene = ProxyScene(enable_batch_ack=True)
    scene.on(pop.BATCH_ACK_MESSAGE, refusal(ResponseCode.SUCCESS))
    far = handle(scene, offset=2**60)
    outcome = acked(scene, handle(scene), handle(scene, offset=7), "no handle", far)
    assert [each.status.code for each in outcome.answer.entries] == [
        Code.OK,
        Code.OK,
        Code.INVALID_RECEIPT_HANDLE,
        Code.OK,
    ]
    (body,) = [each[3] for each in scene.connections.asked if each[1] is pop.BATCH_ACK_MESSAGE]
    (ack,) = BatchAckMessageRequestBody.decode(body).acks
    assert (ack.topic, ack.consumer_group, ack.bit_set) == ("T", "G", encode_bit_set([5, 7]))
    assert [header.offset for header in scene.asked(pop.ACK_MESSAGE)] == [2**60]
    scene.on(pop.BATCH_ACK_MESSAGE, refusal(ResponseCode.SYSTEM_BUSY))
    assert acked(scene, handle(scene), handle(scene, offset=7)).code is Code.TOO_MANY_REQUESTS


def test_a_time_is_changed_and_gives_a_new_handle(scene: ProxyScene) -> None:
    request = {
        **NAMES,
        "receipt_handle": handle(scene),
        "invisible_duration": {"seconds": 12},
        "suspend": True,
    }
    outcome = scene.call("ChangeInvisibleDuration", request)
    assert outcome.code is Code.OK
    now_ms = scene.clock.now_ms()
    assert outcome.answer.receipt_handle == f"5 {now_ms} 12000 3 0 broker-a 1 5 817"
    (header,) = scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)
    assert (header.topic, header.consumer_group, header.suspend) == ("T", "G", True)
    request["invisible_duration"] = {"seconds": 43_201}
    assert scene.call("ChangeInvisibleDuration", request).code is Code.ILLEGAL_INVISIBLE_TIME


def test_a_message_becomes_a_dead_letter(scene: ProxyScene) -> None:
    request = {**NAMES, "receipt_handle": handle(scene), "message_id": "ID"}
    assert scene.call("ForwardMessageToDeadLetterQueue", request).code is Code.OK
    (header,) = scene.asked(send.CONSUMER_SEND_MSG_BACK)
    assert (header.offset, header.origin_msg_id) == (817, "ID")
    assert len(scene.asked(pop.ACK_MESSAGE)) == 1


def test_one_acknowledgement_waits_for_nothing_but_the_broker(
    scene: ProxyScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert acked(scene, handle(scene)).code is Code.OK  # for which the route is asked
    monkeypatch.setattr(Acks, "_ack_all", pytest.fail)
    outcome = acked(scene, handle(scene, offset=6))
    (entry,) = outcome.answer.entries
    assert (outcome.code, entry.status.code, entry.message_id) == (Code.OK, Code.OK, "ID0")
    assert scene.asked(pop.ACK_MESSAGE)[-1].offset == 6


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ResponseCode.SYSTEM_BUSY, Code.TOO_MANY_REQUESTS),
        (ResponseCode.NO_MESSAGE, Code.INVALID_RECEIPT_HANDLE),
        (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, Code.NOT_IMPLEMENTED),
        (ResponseCode.SYSTEM_ERROR, Code.INTERNAL_SERVER_ERROR),
    ],
)
def test_what_the_broker_says_is_the_same_before_and_after_the_route_is_known(
    scene: ProxyScene, answer: ResponseCode, code: Code
) -> None:
    scene.on(pop.ACK_MESSAGE, refusal(answer, ""))
    first, second = (acked(scene, handle(scene)).answer for _ in range(2))
    assert first == second
    assert first.entries[0].status.code == code


def test_a_message_that_is_kept_hidden_is_settled(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    received = scene.receive(auto_renew=True, invisible_duration=None)
    (_, its_message, _) = received.written("ReceiveMessageResponse")
    system = its_message.message.system_properties
    its = scene.messaging.renewals
    assert its.count == 1
    assert acked(scene, system.receipt_handle).code is Code.OK
    assert its.count == 0
