# SPDX-License-Identifier: Apache-2.0
"""Sends to a broker that reads slowly."""

from __future__ import annotations

from typing import Any

from tests.proxy.scene import BROKER_A, Outcome, ProxyScene, a_route
from txrocketmq.client.producer.send.waiting_sends import AT_ONCE
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send


def slow() -> ProxyScene:
    """A proxy whose only broker reads no more; topic and type are known."""
    scene = ProxyScene()
    scene.routes["T"] = a_route({"broker-a": 1})
    sent(scene, "first")
    scene.connections.full.add(BROKER_A)
    return scene


def sent(scene: ProxyScene, message_id: str) -> Outcome:
    system = {"message_id": message_id}
    message: dict[str, Any] = {"topic": {"name": "T"}, "body": b"x", "system_properties": system}
    return scene.call("SendMessage", {"messages": [message]})


def arrived(scene: ProxyScene) -> list[str]:
    """The ids of the messages that have left for the broker, but for the first."""
    asked = scene.asked(send.SEND_MESSAGE_V2)[1:]
    return [decode_properties(header.properties)["UNIQ_KEY"] for header in asked]


def read_on(scene: ProxyScene) -> None:
    """The broker reads on."""
    scene.connections.full.clear()
    waiting, scene.connections.waiting = scene.connections.waiting, []
    for then in waiting:
        then()


def test_they_wait_in_their_order_until_it_reads_on() -> None:
    scene = slow()
    outcomes = [sent(scene, str(number)) for number in range(3)]
    assert arrived(scene) == []
    assert len(scene.connections.waiting) == 1
    read_on(scene)
    assert arrived(scene) == ["0", "1", "2"]
    assert [each.code for each in outcomes] == [Code.OK] * 3
    assert sent(scene, "at once").code is Code.OK


def test_one_that_fills_the_connection_again_has_the_others_wait_again() -> None:
    scene = slow()
    answer = scene.connections._answers[BROKER_A, send.SEND_MESSAGE_V2.code]

    def fill(address: str, header: Any, body: bytes) -> Any:
        scene.connections.full.add(BROKER_A)
        return answer

    scene.on(send.SEND_MESSAGE_V2, fill)
    for number in range(3):
        sent(scene, str(number))
    for number in range(3):
        read_on(scene)
        assert len(arrived(scene)) == number + 1


def test_many_leave_in_turns() -> None:
    scene = slow()
    for number in range(AT_ONCE + 5):
        sent(scene, str(number))
    read_on(scene)
    assert len(arrived(scene)) == AT_ONCE
    scene.advance(100)
    assert len(arrived(scene)) == AT_ONCE + 5


def test_one_that_waits_for_too_long_is_refused() -> None:
    scene = slow()
    outcome = sent(scene, "late")
    scene.advance(3_000)
    assert outcome.code is Code.TOO_MANY_REQUESTS
    assert "took no more for 3000 ms" in outcome.answer.status.message
    read_on(scene)
    assert arrived(scene) == []


def test_one_whose_call_has_ended_is_forgotten() -> None:
    scene = slow()
    outcome, other = sent(scene, "gone"), sent(scene, "stays")
    outcome.cancel()
    read_on(scene)
    assert arrived(scene) == ["stays"]
    assert other.code is Code.OK
