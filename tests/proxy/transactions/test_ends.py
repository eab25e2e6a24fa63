# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import BROKER_A, ProxyScene, refusal
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.recall_handle import RecallHandle
from txrocketmq.remoting.protocol import send, transaction
from txrocketmq.remoting.protocol.send import RecallMessageResponseHeader

END: dict[str, Any] = {
    "topic": {"name": "T"},
    "message_id": "ID",
    "transaction_id": "ID broker-a 7 1000",
}


@pytest.mark.parametrize(("resolution", "bits"), [(1, 8), (2, 12), (0, 0)])
@pytest.mark.parametrize("source", [1, 2])
def test_the_broker_of_the_half_message_is_told(
    scene: ProxyScene, resolution: int, bits: int, source: int
) -> None:
    request = {**END, "resolution": resolution, "source": source}
    assert scene.call("EndTransaction", request).code is Code.OK
    ((address, call, header, _),) = scene.connections.told
    assert (address, call) == (BROKER_A, transaction.END_TRANSACTION)
    assert (header.producer_group, header.topic, header.msg_id) == ("T", "T", "ID")
    assert (header.tran_state_table_offset, header.commit_log_offset) == (7, 1_000)
    assert (header.commit_or_rollback, header.from_transaction_check) == (bits, source == 2)
    assert header.transaction_id == "ID"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transaction_id": " "}, Code.INVALID_TRANSACTION_ID),
        ({"transaction_id": "ID"}, Code.INVALID_TRANSACTION_ID),
        ({"transaction_id": "ID gone 7 1000"}, Code.INVALID_TRANSACTION_ID),
        ({"topic": {"name": ""}}, Code.ILLEGAL_TOPIC),
    ],
)
def test_transactions_that_cannot_be(scene: ProxyScene, fields: dict[str, Any], code: Code) -> None:
    assert scene.call("EndTransaction", {**END, **fields}).code is code
    assert scene.connections.told == []


def test_a_delayed_message_is_recalled(scene: ProxyScene) -> None:
    scene.types["T"] = "DELAY"
    scene.on(send.RECALL_MESSAGE, Reply(RecallMessageResponseHeader(msg_id="ID")))
    handle = RecallHandle("T", "broker-a", "5000", "ID").encode()
    outcome = scene.call("RecallMessage", {"topic": {"name": "T"}, "recall_handle": handle})
    assert (outcome.code, outcome.answer.message_id) == (Code.OK, "ID")
    ((address, header),) = scene.connections.questions(send.RECALL_MESSAGE)
    assert (address, header.topic, header.recall_handle) == (BROKER_A, "T", handle)
    scene.on(send.RECALL_MESSAGE, refusal(ResponseCode.SYSTEM_ERROR, "too late"))
    outcome = scene.call("RecallMessage", {"topic": {"name": "T"}, "recall_handle": handle})
    assert (outcome.code, outcome.answer.status.message) == (Code.INTERNAL_SERVER_ERROR, "too late")


@pytest.mark.parametrize(
    ("kind", "handle", "code"),
    [
        ("NORMAL", RecallHandle("T", "broker-a", "5000", "ID").encode(), 40_014),
        ("DELAY", "no handle", 40_000),
        ("DELAY", RecallHandle("T", "gone", "5000", "ID").encode(), 40_000),
    ],
)
def test_what_cannot_be_recalled(scene: ProxyScene, kind: str, handle: str, code: int) -> None:
    scene.types["T"] = kind
    request = {"topic": {"name": "T"}, "recall_handle": handle}
    assert scene.call("RecallMessage", request).code == code
