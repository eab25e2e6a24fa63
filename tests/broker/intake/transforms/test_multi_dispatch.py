# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import no_transforms
from txrocketmq.broker.intake.transforms.multi_dispatch import MultiDispatch
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.topics import TIMER_TOPIC, TRANS_HALF_TOPIC

TRANSFORMS = no_transforms([MultiDispatch()])


def applied(listing: str, topic: str = "T", way: Way = Way.SEND, **more: str) -> InnerMessage:
    properties = {"INNER_MULTI_DISPATCH": listing, **more}
    message = InnerMessage(topic, 1, b"body", 1, bytes(8), bytes(8), properties, way=way)
    TRANSFORMS.apply(message, 0)
    return message


@pytest.mark.parametrize("way", [Way.SEND, Way.ENTRY, Way.DELIVERY, Way.COMMIT])
def test_messages_are_marked_whichever_way_they_come(way: Way) -> None:
    found = applied("%LMQ%a,%LMQ%b", way=way, INNER_MULTI_QUEUE_OFFSET="1,2")
    assert found.to_put().sys_flag == MULTI_DISPATCH
    assert "INNER_MULTI_QUEUE_OFFSET" not in found.properties, "the store's to say"


@pytest.mark.parametrize(
    "topic", ["%RETRY%G", TIMER_TOPIC, "SCHEDULE_TOPIC_XXXX", TRANS_HALF_TOPIC, "rmq_sys_any"]
)
def test_what_waits_elsewhere_enters_no_light_queue(topic: str) -> None:
    found = applied("%LMQ%a", topic, INNER_MULTI_QUEUE_OFFSET="7")
    assert not found.sys_flag
    assert "INNER_MULTI_QUEUE_OFFSET" not in found.properties


def test_an_empty_list_is_none() -> None:
    assert not applied(" ").sys_flag


@pytest.mark.parametrize(
    "listing",
    ["plain", "%LMQ%a,plain", "%LMQ%a,,%LMQ%b", "%LMQ%a,", "%LMQ%a/b", "%LMQ%" + "x" * 130,
     "%LMQ%a,%LMQ%b,%LMQ%a"],
)  # fmt: skip
def test_a_list_of_anything_else_is_refused(listing: str) -> None:
    with pytest.raises(ResponseError, match="INNER_MULTI_DISPATCH lists "):
        applied(listing)
