# SPDX-License-Identifier: Apache-2.0
"""SEND_BATCH_MESSAGE to a topic of batches: the batch is one record."""

from __future__ import annotations

from dataclasses import replace

from tests.broker.processors.send.test_send_message import KEY, batch_of, header, send
from tests.broker.processors.send.test_send_message import sending as sending  # noqa: PLC0414
from tests.broker.processors.sends import Sending
from txrocketmq.remoting.codes import RequestCode


def test_a_batch_for_a_topic_of_batches_is_one_record(sending: Sending) -> None:
    topics = sending.parts.topics
    topics._topics["T"] = replace(topics.all()["T"], attributes={"queue.type": "BatchCQ"})
    sending.parts.store._queues.kind_of = topics.has_batches
    body = batch_of({"UNIQ_KEY": "A1"}, {"UNIQ_KEY": "A2", "TAGS": "t"})
    for offset in (0, 2):
        reply = send(sending, header(), body, RequestCode.SEND_BATCH_MESSAGE)
        assert reply.header.queue_offset == offset
        assert (reply.header.transaction_id, reply.header.batch_uniq_id) == (KEY, KEY)
        assert reply.header.msg_id == sending.stored()[-1].offset_msg_id
    one, two = sending.stored()
    assert (one.body, two.body) == (body, body)
    assert (one.sys_flag & 0xC0, two.properties["INNER_BASE"]) == (0xC0, "2")
    assert {"CLUSTER", "INNER_NUM", "UNIQ_KEY"} <= one.properties.keys()
    keyless = header(properties={"WAIT": "true"})
    assert send(sending, keyless, body, RequestCode.SEND_BATCH_MESSAGE).header.queue_offset == 4
    assert [each.body for each in sending.stored()[2:]] == [b"m0", b"m1"]
