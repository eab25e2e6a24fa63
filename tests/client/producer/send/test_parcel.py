# SPDX-License-Identifier: Apache-2.0
"""Messages as they leave; test_producer.py has what they look like on the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.client.fakes import Scene, result_of
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.core.trace import MessageType
from txrocketmq.client.producer.send.parcel import Packer
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.message.properties import decode_properties

QUEUE = MessageQueue("T", "broker-a", 0)


def packer(scene: Scene, **config: Any) -> Packer:
    return Packer(scene.client, "g", ProducerConfig(**config))


def test_namespaces_are_put_before_names(scene: Scene) -> None:
    scene.client.config = dataclasses.replace(scene.client.config, namespace="ns")
    its = packer(scene)
    message = Message("T", b"x")
    parcel = result_of(its.message(message))
    header = its.header(parcel, QUEUE)
    assert (header.topic, header.producer_group) == ("ns%T", "ns%g")
    assert decode_properties(header.properties or "")["INSTANCE_ID"] == "ns"
    assert message.topic == "T"
    assert its.batch([message]).topic == "ns%T"


def test_what_is_for_a_retry_topic_tells_how_often(scene: Scene) -> None:
    its = packer(scene)
    message = Message(
        "%RETRY%g", b"x", properties={"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "5"}
    )
    header = its.header(result_of(its.message(message)), QUEUE)
    assert (header.reconsume_times, header.max_reconsume_times) == (3, 5)


def test_a_half_message_is_marked(scene: Scene) -> None:
    parcel = result_of(packer(scene).message(Message("T", b"x", properties={"TRAN_MSG": "true"})))
    assert parcel.sys_flag == MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert parcel.message_type is MessageType.TRANS_HALF


@pytest.mark.parametrize("name", ["DELAY", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
def test_delayed_messages_are_known(scene: Scene, name: str) -> None:
    parcel = result_of(packer(scene).message(Message("T", b"x", properties={name: "1"})))
    assert parcel.message_type is MessageType.DELAY


def test_a_long_body_is_compressed_beside_the_reactor(scene: Scene) -> None:
    parcel = result_of(packer(scene).message(Message("T", b"a" * 300_000)))
    assert parcel.sys_flag & MessageSysFlag.COMPRESSED
    assert len(parcel.body) < 3_000


def test_unit_mode_is_told(scene: Scene) -> None:
    scene.client.config = dataclasses.replace(scene.client.config, unit_mode=True)
    its = packer(scene)
    assert its.header(result_of(its.message(Message("T", b"x"))), QUEUE).unit_mode is True
