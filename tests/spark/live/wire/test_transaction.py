# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.spark.live.fakes import FakeBroker, World
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host, encode_message_id
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader
from txrocketmq.remoting.protocol.transaction import END_TRANSACTION
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire import cluster
from txrocketmq.spark.live.wire.rpc import Unreachable
from txrocketmq.spark.live.wire.transaction import (
    Decision,
    HalfMessage,
    half_message,
    half_parcel,
    start_end,
)

HALF = HalfMessage("T", "a", 123_456, 7, "AB" * 16)


def test_a_parcel_is_what_the_producer_of_the_original_sends() -> None:
    message = Message("T", b"x", 3, {"UNIQ_KEY": "K", "TAGS": "A"})
    parcel = half_parcel(message, "g")
    assert decode_properties(parcel.properties) == {
        "WAIT": "true", "UNIQ_KEY": "K", "TAGS": "A", "TRAN_MSG": "true", "PGROUP": "g",
    }  # fmt: skip
    assert parcel.sys_flag == MessageSysFlag.TRANSACTION_PREPARED_TYPE == 4
    assert (parcel.body, parcel.flag, parcel.is_batch) == (b"x", 3, False)
    assert message.properties == {"UNIQ_KEY": "K", "TAGS": "A"}


@pytest.mark.parametrize("ip", ["10.0.1.1", "2001:db8::1"])
def test_its_place_is_in_the_answer(ip: str) -> None:
    where = SendMessageResponseHeader(
        msg_id=encode_message_id(Host(ip, 10911), 123_456), queue_id=2, queue_offset=7
    )
    sent = Reply(where)
    assert half_message(MessageQueue("T", "a", 2), sent, "AB" * 16) == HALF
    with pytest.raises(ClusterError, match="half message, from .*a message id has 32 or 56"):
        half_message(MessageQueue("T", "a", 2), Reply(replace(where, msg_id="")), "K")


@pytest.mark.parametrize(("decision", "number"), [(Decision.COMMIT, 8), (Decision.ROLLBACK, 12)])
def test_the_decision_goes_to_the_master(
    monkeypatch: pytest.MonkeyPatch, decision: Decision, number: int
) -> None:
    broker = FakeBroker("a")
    broker.fill("T", [0])
    world = World(broker)
    monkeypatch.setattr(cluster, "connection_to", world.connection_to)
    headers: list[Any] = []

    def accept(address: str, call: Call[Any, Any], header: Any) -> Reply[Any] | None:
        if call is not END_TRANSACTION:
            return None
        assert address == "10.0.1.1:10911"
        headers.append(header)
        return Reply(NoHeader())

    world.fail = accept
    ours = world.cluster()
    with pytest.raises(Unreachable, match="broker a has no master now"):
        start_end(ours, HALF, decision, producer_group="g")
    ours.route("T")
    start_end(ours, HALF, decision, producer_group="g").wait()
    (header,) = headers
    assert (header.topic, header.bname, header.producer_group) == ("T", "a", "g")
    assert (header.commit_log_offset, header.tran_state_table_offset) == (123_456, 7)
    assert (header.msg_id, header.transaction_id) == ("AB" * 16, "AB" * 16)
    assert header.commit_or_rollback == number
    assert header.from_transaction_check is False
