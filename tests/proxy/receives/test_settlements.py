# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.client.fakes import result_of
from tests.proxy.scene import BROKER_B, ProxyScene, refusal
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.proxy.receives.settlements import Settlements
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.frame.form import Filled
from txrocketmq.remoting.protocol import pop, send

HANDLE = Handle.parse("0 1000 60000 3 1 broker-b 7 5 817", 0)


def test_a_message_of_a_retry_topic_is_settled_there(scene: ProxyScene) -> None:
    its = Settlements(scene.messaging.cluster)
    result_of(its.ack("G", "T", HANDLE))
    ((address, header),) = scene.connections.questions(pop.ACK_MESSAGE)
    assert address == BROKER_B
    assert (header.topic, header.queue_id, header.offset) == ("%RETRY%G_T", 7, 5)
    assert header.extra_info == "0 1000 60000 3 1 broker-b 7 5"


def test_an_acknowledgement_that_leaves_at_once_is_like_the_others(scene: ProxyScene) -> None:
    """It has a prepared header, of which there is one for a broker, whatever clients name."""
    its = Settlements(scene.messaging.cluster)
    told: list[Exception | None] = []
    assert not its.ack_soon("G", "T", HANDLE, told.append)  # where the broker is, is to be asked
    for group in ("G", 'a "group" of %s', "漢字"):
        result_of(its.ack(group, "T", HANDLE))
        assert its.ack_soon(group, "T", HANDLE, told.append)
        other, header = scene.asked(pop.ACK_MESSAGE)[-2:]
        assert isinstance(header, Filled)
        assert header.encode() == other.encode()
        assert header.form is scene.asked(pop.ACK_MESSAGE)[1].form
    assert told == [None] * 3


def test_hiding_gives_a_new_handle(scene: ProxyScene) -> None:
    its = Settlements(scene.messaging.cluster)
    new = result_of(its.hide("G", "T", HANDLE, 5_000, suspend=True))
    assert str(new) == f"5 {scene.clock.now_ms()} 5000 3 1 broker-b 7 5 817"
    (header,) = scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)
    assert (header.invisible_time, header.suspend) == (5_000, True)


def test_a_dead_letter_is_sent_back_and_acknowledged(scene: ProxyScene) -> None:
    its = Settlements(scene.messaging.cluster)
    result_of(its.bury("G", "T", "ID", HANDLE))
    (header,) = scene.asked(send.CONSUMER_SEND_MSG_BACK)
    assert (header.offset, header.delay_level, header.max_reconsume_times) == (817, -1, 0)
    assert (header.origin_msg_id, header.origin_topic) == ("ID", "%RETRY%G_T")
    assert len(scene.asked(pop.ACK_MESSAGE)) == 1
    with pytest.raises(Refused):
        result_of(its.bury("G", "T", "ID", HANDLE._replace(log_offset=-1)))


def test_a_handle_that_leads_nowhere_is_refused(scene: ProxyScene) -> None:
    its = Settlements(scene.messaging.cluster)
    gone = HANDLE._replace(popped=HANDLE.popped._replace(broker_name="gone"))
    with pytest.raises(Refused, match="no broker gone") as refused:
        result_of(its.ack("G", "T", gone))
    assert refused.value.code is Code.INVALID_RECEIPT_HANDLE
    scene.on(pop.ACK_MESSAGE, refusal(ResponseCode.MESSAGE_ILLEGAL))
    with pytest.raises(Refused):
        result_of(its.ack("G", "T", HANDLE))
    scene.on(pop.ACK_MESSAGE, refusal(ResponseCode.SYSTEM_ERROR))
    with pytest.raises(MQBrokerError):
        result_of(its.ack("G", "T", HANDLE))
