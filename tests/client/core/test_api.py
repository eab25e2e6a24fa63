# SPDX-License-Identifier: Apache-2.0
"""What a client asks brokers, call by call."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.client.fakes import BROKER_A, FakeConnections, refusal, result_of
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.core.api import Api
from txrocketmq.client.core.api import refusal as api_refusal
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import PULLED
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat, offset, pull, send
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData, ProducerData
from txrocketmq.remoting.protocol.heartbeat import HeartbeatRequestHeader
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.transport.client import Connections

QUEUE = MessageQueue("T", "broker-a", 3)


def api(connections: FakeConnections) -> Api:
    return Api(cast(Connections, connections), 3_000)


def send_header(*, batch: bool) -> SendMessageRequestHeader:
    return SendMessageRequestHeader(
        producer_group="g",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        batch=batch,
    )


def pull_header() -> PullMessageRequestHeader:
    return PullMessageRequestHeader(
        consumer_group="g",
        topic="T",
        queue_id=3,
        queue_offset=7,
        max_msg_nums=32,
        sys_flag=6,
        commit_offset=0,
        suspend_timeout_millis=15_000,
        sub_version=0,
    )


@pytest.mark.parametrize(
    ("batch", "call"), [(False, send.SEND_MESSAGE_V2), (True, send.SEND_BATCH_MESSAGE)]
)
def test_a_send_is_asked_and_judged_afterwards(*, batch: bool, call: Call[Any, Any]) -> None:
    connections = FakeConnections()
    answer: Reply[Any] = Reply()
    connections.on(BROKER_A, call, answer)
    header = send_header(batch=batch)
    pending = api(connections).send(BROKER_A, call, header, b"body", 1_234)
    assert pending.outcome is answer
    ((address, asked, _, body, timeout_ms),) = connections.asked
    assert (address, asked, body, timeout_ms) == (BROKER_A, call, b"body", 1_234)
    api(connections).send_oneway(BROKER_A, call, header, b"b")
    assert connections.told[0][:2] == (BROKER_A, call)


@pytest.mark.parametrize("code", sorted(PULLED))
def test_a_pull_that_finds_nothing_is_no_error(code: int) -> None:
    connections = FakeConnections()
    connections.on(BROKER_A, pull.PULL_MESSAGE, refusal(code))
    assert result_of(api(connections).pull(BROKER_A, pull_header(), 30_000)).code == code


def test_other_answers_are_errors() -> None:
    connections = FakeConnections()
    connections.on(BROKER_A, pull.PULL_MESSAGE, refusal(24, "no subscription"))
    with pytest.raises(MQBrokerError, match=r"SUBSCRIPTION_NOT_EXIST \(24\): no subscription"):
        result_of(api(connections).pull(BROKER_A, pull_header(), 30_000))


def test_offsets() -> None:
    connections = FakeConnections()
    connections.on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=9)))
    connections.on(BROKER_A, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=2)))
    connections.on(
        BROKER_A,
        offset.SEARCH_OFFSET_BY_TIMESTAMP,
        lambda _, header, __: Reply(SearchOffsetResponseHeader(offset=header.timestamp + 1)),
    )
    asked = api(connections)
    assert result_of(asked.max_offset(BROKER_A, QUEUE)) == 9
    assert result_of(asked.min_offset(BROKER_A, QUEUE)) == 2
    assert result_of(asked.search_offset(BROKER_A, QUEUE, 5)) == 6
    assert {header.queue_id for _, _, header, _, _ in connections.asked} == {3}
    assert {timeout_ms for *_, timeout_ms in connections.asked} == {3_000}


def test_heartbeat_and_leave() -> None:
    connections = FakeConnections()
    connections.on(BROKER_A, heartbeat.HEART_BEAT, Reply())
    connections.on(BROKER_A, heartbeat.UNREGISTER_CLIENT, Reply())
    data = HeartbeatData(client_id="me", producer_data_set=(ProducerData(group_name="g"),))
    result_of(api(connections).heartbeat(BROKER_A, data))
    assert HeartbeatData.decode(connections.asked[0][3]) == data
    result_of(api(connections).unregister(BROKER_A, "me", producer_group="g"))
    leave = connections.asked[1][2]
    assert (leave.client_id, leave.producer_group, leave.consumer_group) == ("me", "g", None)


def test_a_broken_connection_is_an_error_of_the_connection() -> None:
    with pytest.raises(ConnectError):
        result_of(api(FakeConnections()).max_offset(BROKER_A, QUEUE))


def test_any_call_can_be_asked() -> None:
    connections = FakeConnections()
    connections.on(BROKER_A, heartbeat.HEART_BEAT, Reply(body=b"x"))
    header = HeartbeatRequestHeader()
    asked = api(connections).ask(BROKER_A, heartbeat.HEART_BEAT, header, b"b", 7)
    assert result_of(asked).body_bytes == b"x"
    ((_, _, _, body, timeout_ms),) = connections.asked
    assert (body, timeout_ms) == (b"b", 7)
    connections.on(BROKER_A, heartbeat.HEART_BEAT, refusal(1))
    with pytest.raises(MQBrokerError):
        result_of(api(connections).ask(BROKER_A, heartbeat.HEART_BEAT, header, b"", 7))


def test_a_refusal_names_topic_queue_and_group() -> None:
    connections = FakeConnections()
    error = api_refusal(refusal(2, "busy"), BROKER_A, send_header(batch=False))
    assert "(topic T, queue 0, group g); the broker is too" in str(error)
    connections.on(BROKER_A, pull.PULL_MESSAGE, refusal(1, "no"))
    with pytest.raises(MQBrokerError, match=r": no \(topic T, queue 3, group g\)$"):
        result_of(api(connections).pull(BROKER_A, pull_header(), 1_000))
    connections.on(BROKER_A, heartbeat.GET_CONSUMER_LIST_BY_GROUP, refusal(1, "no"))
    with pytest.raises(MQBrokerError, match=r": no \(group g\)$"):
        result_of(api(connections).consumer_ids(BROKER_A, "g"))
    connections.on(BROKER_A, heartbeat.HEART_BEAT, refusal(1, "no"))
    with pytest.raises(MQBrokerError, match=": no$"):
        result_of(api(connections).heartbeat(BROKER_A, HeartbeatData(client_id="c")))
