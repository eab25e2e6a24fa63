# SPDX-License-Identifier: Apache-2.0
"""One attempt: its address, and what is learned of slow and lost brokers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.client.fakes import BROKER_A, BROKER_B, Scene, a_route, refusal, result_of
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send.attempt import vip_address
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.protocol import offset, send
from txrocketmq.remoting.protocol.offset import GetMaxOffsetResponseHeader
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

STORED = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))


@pytest.fixture
def two(scene: Scene) -> Scene:
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    for address in (BROKER_A, BROKER_B):
        scene.connections.on(address, send.SEND_MESSAGE_V2, STORED)
    return scene


def brokers_of(scene: Scene, producer: Producer, count: int) -> list[str]:
    return [result_of(producer.send(Message("T", b"x"))).queue.broker_name for _ in range(count)]


def producer_of(scene: Scene, **config: Any) -> Producer:
    return Producer(scene.client, "g", ProducerConfig(send_latency_fault_enable=True, **config))


def test_a_slow_broker_is_passed_over(two: Scene) -> None:
    def slow(*_: Any) -> Reply[Any]:
        two.time.advance(0.6)
        return STORED

    two.connections.on(BROKER_A, send.SEND_MESSAGE_V2, slow)
    producer = producer_of(two)
    brokers_of(two, producer, 2)  # at least once to each of them
    assert brokers_of(two, producer, 4) == ["broker-b"] * 4
    two.time.advance(2)
    assert "broker-a" in brokers_of(two, producer, 2)


def test_without_the_setting_it_is_not(two: Scene) -> None:
    def slow(*_: Any) -> Reply[Any]:
        two.time.advance(0.6)
        return STORED

    two.connections.on(BROKER_A, send.SEND_MESSAGE_V2, slow)
    assert brokers_of(two, Producer(two.client, "g"), 4).count("broker-a") == 2


def test_a_refusal_of_all_does_not_stop_sending(two: Scene) -> None:
    producer = producer_of(two, retry_times=1)
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, refusal(2))
    with pytest.raises(Exception, match="after 2 attempts"):
        brokers_of(two, producer, 1)
    for address in (BROKER_A, BROKER_B):
        two.connections.on(address, send.SEND_MESSAGE_V2, STORED)
    assert len(brokers_of(two, producer, 4)) == 4


def test_a_lost_broker_is_looked_at_until_it_answers(two: Scene) -> None:
    two.connections.on(BROKER_A, send.SEND_MESSAGE_V2, RequestTimeout("late"))
    producer = producer_of(two, start_detector_enable=True)
    result_of(producer.start())
    brokers_of(two, producer, 4)
    faults = producer._attempts._faults
    assert not faults.is_reachable("broker-a")
    two.time.advance(3)
    assert not faults.is_reachable("broker-a")  # nobody there yet
    two.connections.on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=1)))
    two.time.advance(3)
    assert faults.is_reachable("broker-a")
    asked = [ms for _, call, _, _, ms in two.connections.asked if call is offset.GET_MAX_OFFSET]
    assert set(asked) == {200}
    result_of(producer.shutdown())
    count = len(two.connections.asked)
    two.time.advance(9)
    assert [c for _, c, *_ in two.connections.asked[count:] if c is offset.GET_MAX_OFFSET] == []


def test_the_vip_port_is_two_below(two: Scene) -> None:
    assert vip_address("10.0.0.1:10911") == "10.0.0.1:10909"
    assert vip_address("[::1]:10911") == "[::1]:10909"
    two.client.config = dataclasses.replace(two.client.config, vip_channel_enabled=True)
    for address in (BROKER_A, BROKER_B):
        two.connections.on(vip_address(address), send.SEND_MESSAGE_V2, STORED)
        two.connections.on(address, send.SEND_MESSAGE_V2, refusal(13))
    assert len(brokers_of(two, Producer(two.client, "g"), 2)) == 2
