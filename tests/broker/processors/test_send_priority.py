# SPDX-License-Identifier: Apache-2.0
"""SEND_MESSAGE with a priority: where the answer says that the message is."""

from __future__ import annotations

import pytest

from tests.broker.processors.send.test_send_message import header, send
from tests.broker.processors.send.test_send_message import sending as sending  # noqa: PLC0414
from tests.broker.processors.sends import Sending
from txrocketmq.remoting.codes import RequestCode


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
def test_a_priority_is_a_queue(sending: Sending, code: int) -> None:
    """Whatever was learned of the header from messages without one, or with another."""
    expected = [(None, 1), ("3", 3), ("0", 0), (None, 1), ("99", 3), ("2", 2), ("-1", 1)]
    for priority, queue_id in expected:
        properties = {} if priority is None else {"_SYS_MSG_PRIORITY_": priority}
        reply = send(sending, header(properties={"UNIQ_KEY": "A", **properties}), code=code)
        assert reply.header.queue_id == queue_id
        stored = sending.stored()[-1]
        assert (stored.queue_id, stored.properties.get("_SYS_MSG_PRIORITY_")) == (
            queue_id,
            priority,
        )


def test_a_transaction_has_none(sending: Sending) -> None:
    properties = {"UNIQ_KEY": "A", "TRAN_MSG": "true", "PGROUP": "p", "_SYS_MSG_PRIORITY_": "3"}
    reply = send(sending, header(properties=properties, sys_flag=4))
    assert reply.header.queue_id == 1
    stored = sending.stored()[-1]
    assert (stored.topic, stored.properties["REAL_QID"]) == ("RMQ_SYS_TRANS_HALF_TOPIC", "1")
    assert "_SYS_MSG_PRIORITY_" not in stored.properties


def test_a_delayed_message_has_none(sending: Sending) -> None:
    properties = {"UNIQ_KEY": "A", "DELAY": "2", "_SYS_MSG_PRIORITY_": "3"}
    reply = send(sending, header(properties=properties))
    assert reply.header.queue_id == 1
    assert "_SYS_MSG_PRIORITY_" not in sending.stored()[-1].properties
