# SPDX-License-Identifier: Apache-2.0
"""Broker's answers as results."""

from __future__ import annotations

import pytest

from txrocketmq.client.producer.send_result import SendStatus, send_result
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

QUEUE = MessageQueue("T", "broker-a", -1)


def test_the_broker_says_where_the_message_is() -> None:
    header = SendMessageResponseHeader(
        msg_id="OFFSETID", queue_id=3, queue_offset=42, transaction_id="tx", recall_handle="h"
    )
    ext_fields = {"MSG_REGION": "eu", "TRACE_ON": "false"}
    result = send_result(Reply(header, ext_fields=ext_fields), QUEUE, "KEY")
    assert result.status is SendStatus.SEND_OK
    assert (result.msg_id, result.offset_msg_id) == ("KEY", "OFFSETID")
    assert result.queue == MessageQueue("T", "broker-a", 3)
    assert (result.queue_offset, result.transaction_id, result.recall_handle) == (42, "tx", "h")
    assert (result.region_id, result.trace_on) == ("eu", False)


def test_without_extension_fields_the_defaults_hold() -> None:
    header = SendMessageResponseHeader(msg_id="x", queue_id=0, queue_offset=0)
    result = send_result(Reply(header), QUEUE, "KEY")
    assert (result.region_id, result.trace_on) == ("DefaultRegion", True)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, SendStatus.SEND_OK),
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_statuses(code: int, status: SendStatus) -> None:
    assert send_result(Reply(code=code), QUEUE, "KEY").status is status


def test_an_answer_without_header_leaves_the_place_open() -> None:
    result = send_result(Reply(code=10), QUEUE, "KEY")
    assert (result.queue, result.queue_offset, result.offset_msg_id) == (QUEUE, -1, "")
