# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import txrocketmq.proxy
from tests.counted import lines_of
from tests.proxy.guests import Neighbour, Port
from tests.proxy.scene import ProxyScene, a_message
from tests.proxy.schema.test_tables import GOLDEN
from txrocketmq.proxy.grpc.service import Kind
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.protocol import pop, send, transaction

UNSERVED = {"PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription"}
"""What is UNIMPLEMENTED: the original has only the last one of these."""

RECEIVE = message_type("ReceiveMessageRequest")(
    group={"name": "G"},
    message_queue={"topic": {"name": "T"}, "broker": {"name": "broker-a"}},
    batch_size=32,
    auto_renew=True,
).SerializeToString()
SEND = message_type("SendMessageRequest")(
    messages=[{"topic": {"name": "T"}, "system_properties": {"message_id": "01"}, "body": b"b"}]
).SerializeToString()
OURS = str(Path(txrocketmq.proxy.__file__).parent)


def test_all_methods_are_served_but_those_of_pulling_and_lite_topics(scene: ProxyScene) -> None:
    official = json.loads(GOLDEN.read_text("utf-8"))["methods"]
    served = {its.rpc.name: its.rpc for its in scene.messaging.rpcs}
    assert set(served) == set(official) - UNSERVED
    for name, (request, is_in, _, is_out) in official.items():
        if name in served:
            kind = {(False, False): Kind.UNARY, (False, True): Kind.STREAM}
            assert served[name].kind is kind.get((is_in, is_out), Kind.CONVERSATION)
            assert served[name].request_name == request


def test_it_ends(scene: ProxyScene) -> None:
    scene.messaging.stop()
    assert scene.connections.closed
    assert scene.time.getDelayedCalls() == []


def test_proxies_stand_side_by_side(scene: ProxyScene) -> None:
    """What one has begun, another one ends, and both have the same queue for a message group."""
    other = ProxyScene()
    scene.types["T"] = "TRANSACTION"
    message: dict[str, Any] = {"topic": {"name": "T"}, "body": b"b"}
    half = {**message, "system_properties": {"message_id": "ID", "message_type": 4}}
    (entry,) = scene.call("SendMessage", {"messages": [half]}).answer.entries
    end = {"topic": {"name": "T"}, "message_id": "ID", "transaction_id": entry.transaction_id}
    assert other.call("EndTransaction", {**end, "resolution": 1}).code is Code.OK
    ((_, call, header, _),) = other.connections.told
    (sent,) = scene.asked(send.SEND_MESSAGE_V2)
    assert call is transaction.END_TRANSACTION
    assert (header.bname, header.commit_log_offset) == (sent.bname, 1_000)

    scene.types["U"] = other.types["U"] = "FIFO"
    scene.routes["U"] = other.routes["U"] = scene.routes["T"]
    places = []
    for each in (scene, other):
        for number in range(20):
            system = {"message_id": "ID", "message_group": f"order-{number}"}
            ordered = {**message, "topic": {"name": "U"}, "system_properties": system}
            assert each.call("SendMessage", {"messages": [ordered]}).code is Code.OK
        asked = each.asked(send.SEND_MESSAGE_V2)[-20:]
        places.append([(header.bname, header.queue_id) for header in asked])
    assert places[0] == places[1]
    assert len(set(places[0])) > 2

    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    received = scene.receive().written("ReceiveMessageResponse")
    handle = received[1].message.system_properties.receipt_handle
    entries = [{"message_id": "ID0", "receipt_handle": handle}]
    ack = {"topic": {"name": "T"}, "group": {"name": "G"}, "entries": entries}
    assert other.call("AckMessage", ack).code is Code.OK
    assert [header.offset for header in other.asked(pop.ACK_MESSAGE)] == [0]
    other.messaging.stop()


@pytest.mark.parametrize(
    ("few", "many", "each"), [(10, 500, 1), (5, 90, None)], ids=["each", "one"]
)
def test_a_send_and_the_receive_that_gets_it_cost_the_same_however_many_wait(
    few: int, many: int, each: int | None
) -> None:
    """They wait on connections of their own, or all on one."""
    lines = lines_of_a_send(few, each or few)
    assert lines > 100
    assert lines_of_a_send(many, each or many) <= lines + 20


def lines_of_a_send(receives: int, each: int) -> int:
    """How much the proxy does for a send, and for one of so many receives that has the message.

    Each connection has so many of them.
    """
    scene = ProxyScene()
    waiting: list[PendingReply] = []

    def pops(*_: Any) -> PendingReply:
        waiting.append(PendingReply())
        return waiting[-1]

    scene.on(pop.POP_MESSAGE, pops)
    port = Port(scene.messaging.rpcs)
    clients = []
    for number in range(receives // each):
        scene.heartbeat(client_id=f"c{number}")
        clients.append(Neighbour(port, x_mq_client_id=f"c{number}"))
    for number in range(receives):
        clients[number // each].ask(f"/{SERVICE}/ReceiveMessage", RECEIVE, grpc_timeout="30S")
    while len(waiting) < receives:
        port.turn()
    sender = Neighbour(port, x_mq_client_id="sender")
    where: Counter[str] = Counter()
    for number in range(4):  # the first ones learn of the topic
        where.clear()
        asked = sender.ask(f"/{SERVICE}/SendMessage", SEND)

        def sent_and_received(number: int = number) -> None:
            sender.deliver()
            waiting.pop(0).resolve(scene.popped(a_message(b"b", number)))
            port.reactor.advance(0)

        lines_of(sent_and_received, where)
        for client in (sender, clients[number // each]):
            client.deliver()
        assert sender.is_answered(asked)
        assert clients[number // each].answers
    scene.messaging.stop()
    return sum(lines for place, lines in where.items() if place.startswith(OURS))
