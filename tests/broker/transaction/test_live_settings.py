# SPDX-License-Identifier: Apache-2.0
"""What UPDATE_BROKER_CONFIG takes of transactions and replies counts at once.

See tests/broker/test_live_settings.py, which finds the settings that have no check.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.broker.test_service import Client, Scene
from tests.broker.updated import update
from tests.live import Checks
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.topics import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from txrocketmq.remoting.protocol.send import (
    SEND_MESSAGE,
    SEND_REPLY_MESSAGE,
    SendMessageRequestHeader,
)

check = Checks()


def send_half(scene: Scene, topic_name: str = "T", call: Call[Any, Any] = SEND_MESSAGE) -> int:
    """The code of the answer to a half message, or to a reply."""
    header = SendMessageRequestHeader(
        producer_group="p", topic=topic_name, default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=0, sys_flag=0, born_timestamp=scene.broker.clock.now_ms(), flag=0,
        properties="TRAN_MSG\x01true\x02PGROUP\x01p\x02",
    )  # fmt: skip
    return Client(scene).ask(call, header, b"body").code


def count_of(scene: Scene, topic_name: str) -> int:
    """How many messages the first queue of a topic has."""
    return scene.broker.parts.store.max_offset(topic_name, 0)


@check
def reject_transaction_message(scene: Scene) -> None:
    for text, code in (("true", ResponseCode.NO_PERMISSION), ("false", ResponseCode.SUCCESS)):
        update(scene, rejectTransactionMessage=text)
        assert send_half(scene) == code


@check
def transaction_check_interval(scene: Scene) -> None:
    assert send_half(scene) == ResponseCode.SUCCESS
    scene.pass_ms(8_000)
    assert count_of(scene, TRANS_HALF_TOPIC) == 1
    update(scene, transactionCheckInterval=1_000)
    scene.pass_ms(1_500)
    assert count_of(scene, TRANS_HALF_TOPIC) > 1


@check
def transaction_time_out(scene: Scene) -> None:
    update(scene, transactionCheckInterval=1_000, transactionTimeOut=60_000)
    assert send_half(scene) == ResponseCode.SUCCESS
    scene.pass_ms(8_000)
    assert count_of(scene, TRANS_HALF_TOPIC) == 1
    update(scene, transactionTimeOut=1_000)
    scene.pass_ms(1_500)
    assert count_of(scene, TRANS_HALF_TOPIC) > 1


@check
def transaction_check_max(scene: Scene) -> None:
    update(scene, transactionCheckInterval=1_000, transactionCheckMax=2)
    assert send_half(scene) == ResponseCode.SUCCESS
    scene.pass_ms(7_500)
    assert count_of(scene, TRANS_CHECK_MAX_TIME_TOPIC) == 0
    update(scene, transactionCheckMax=1)
    scene.pass_ms(1_500)
    assert count_of(scene, TRANS_CHECK_MAX_TIME_TOPIC) == 1


@check
def store_reply_message_enable(scene: Scene) -> None:
    replies = "DefaultCluster_REPLY_TOPIC"
    for text, count in (("false", 0), ("true", 1)):
        update(scene, storeReplyMessageEnable=text)
        assert send_half(scene, replies, SEND_REPLY_MESSAGE) == ResponseCode.SYSTEM_ERROR
        assert count_of(scene, replies) == count


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(tmp_path: Path, name: str) -> None:
    check[name](Scene(tmp_path).start())
