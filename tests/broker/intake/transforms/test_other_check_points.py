# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transforms.other_check_points import OtherCheckPoints
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import MessageSysFlag

TOPIC = "rmq_sys_REVIVE_LOG_here"


def message(topic: str = TOPIC, way: Way = Way.SEND, sys_flag: int = 0) -> InnerMessage:
    return InnerMessage(topic, 1, b"body", 1, bytes(8), bytes(8), sys_flag=sys_flag, way=way)


def test_records_of_other_brokers_pass() -> None:
    asked: list[InnerMessage] = []

    def is_taken(each: InnerMessage) -> bool:
        asked.append(each)
        return True

    sent = message()
    OtherCheckPoints("here", is_taken).apply(sent, 0)
    assert asked == [sent] == [message()]


def test_what_is_no_such_record_is_refused() -> None:
    with pytest.raises(ResponseError, match="name another broker are taken here") as raised:
        OtherCheckPoints("here", lambda _: False).apply(message(), 0)
    assert raised.value.code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize("way", [Way.BATCH, Way.REPLY])
def test_they_come_one_by_one(way: Way) -> None:
    with pytest.raises(ResponseError, match="one by one"):
        OtherCheckPoints("here", lambda _: True).apply(message(way=way), 0)


@pytest.mark.parametrize(
    "sys_flag",
    [
        MessageSysFlag.COMPRESSED,
        MessageSysFlag.TRANSACTION_PREPARED_TYPE,
        MessageSysFlag.INNER_BATCH,
    ],
)
def test_they_are_plain(sys_flag: int) -> None:
    with pytest.raises(ResponseError, match="one by one"):
        OtherCheckPoints("here", lambda _: True).apply(message(sys_flag=sys_flag), 0)


def test_the_topic_of_another_cluster_is_any_topic() -> None:
    OtherCheckPoints("here", lambda _: False).apply(message("rmq_sys_REVIVE_LOG_there"), 0)
    OtherCheckPoints("here", lambda _: False).apply(message("rmq_sys_REVIVE_LOG_"), 0)
