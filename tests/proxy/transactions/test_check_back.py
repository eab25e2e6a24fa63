# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from tests.fakes import FakePeer, request
from tests.proxy.scene import BROKER_A, Outcome, ProxyScene, a_message, a_route
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.message.message import encode_message
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData
from txrocketmq.remoting.protocol.transaction import CheckTransactionStateRequestHeader


def producer(scene: ProxyScene, *topics: str, client_id: str = "client-1") -> Outcome:
    outcome = scene.call("Telemetry", client_id=client_id)
    settings: dict[str, Any] = {"publishing": {"topics": [{"name": each} for each in topics]}}
    outcome.answer.received(message_type("TelemetryCommand")(settings=settings))
    outcome.sink.sent.clear()
    return outcome


def ask(scene: ProxyScene, bname: str | None = "broker-a", group: str = "T") -> None:
    half = a_message(b"half", properties={"PGROUP": group, "TRAN_MSG": "true"})
    header = CheckTransactionStateRequestHeader(
        tran_state_table_offset=7, commit_log_offset=1_000, msg_id="ID", bname=bname
    )
    peer = FakePeer()
    peer.remote_address = BROKER_A
    scene.messaging._check_back.check_transaction_state(
        request(header, encode_message(half), peer=peer)
    )


def beats(scene: ProxyScene) -> list[tuple[str, list[str]]]:
    return [
        (address, [each.group_name or "" for each in HeartbeatData.decode(body).producer_data_set])
        for address, call, _, body in scene.connections.told
        if call is heartbeat.HEART_BEAT
    ]


def test_brokers_are_told_of_topics_with_transactions(scene: ProxyScene) -> None:
    scene.routes["N"] = a_route({"broker-a": 1})
    scene.types["T"] = "TRANSACTION"
    producer(scene, "T", "N")
    scene.advance(1_000)
    assert sorted(beats(scene)) == [("10.0.1.1:10911", ["T"]), ("10.0.1.2:10911", ["T"])]
    scene.advance(20_000)
    assert len(beats(scene)) == 4


def test_one_heartbeat_names_so_many() -> None:
    scene = ProxyScene(transaction_heartbeat_batch_num=2)
    for name in "ABC":
        scene.types[name] = "TRANSACTION"
        scene.routes[name] = a_route({"broker-a": 1})
    producer(scene, "A", "B", "C")
    scene.advance(1_200)
    assert [groups for _, groups in beats(scene)] == [["A", "B"], ["C"]]


def test_a_question_goes_to_a_producer_of_the_topic(scene: ProxyScene) -> None:
    other = producer(scene, "U", client_id="other")
    asked = producer(scene, "T")
    ask(scene)
    (command,) = asked.written("TelemetryCommand")
    recover = command.recover_orphaned_transaction_command
    assert recover.message.body == b"half"
    assert recover.message.system_properties.message_id == "ID0"
    assert recover.transaction_id == "ID0 broker-a 7 1000"
    assert other.sink.sent == []


def test_a_broker_that_does_not_say_its_name_is_known_by_its_address(scene: ProxyScene) -> None:
    asked = producer(scene, "T")
    scene.types["T"] = "TRANSACTION"
    scene.advance(1_000)
    ask(scene, bname=None)
    (command,) = asked.written("TelemetryCommand")
    its = command.recover_orphaned_transaction_command
    assert its.transaction_id == "ID0 broker-a 7 1000"


def test_a_question_that_nobody_can_answer_does_no_harm(scene: ProxyScene) -> None:
    ask(scene)
    gone = producer(scene, "T")
    gone.answer.ended("")
    ask(scene)
    header = CheckTransactionStateRequestHeader(tran_state_table_offset=7, commit_log_offset=1)
    scene.messaging._check_back.check_transaction_state(request(header, b"no message"))
    assert gone.sink.sent == []
