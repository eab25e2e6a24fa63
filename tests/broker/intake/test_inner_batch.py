# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_batch import InnerBatch
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken, Transforms, no_transforms
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import MessageSysFlag


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


def test_inner_batches_are_refused_by_property_and_by_flag() -> None:
    transforms = no_transforms([InnerBatch(lambda _: None)])
    flagged = message()
    flagged.sys_flag = MessageSysFlag.INNER_BATCH
    for each in (message(INNER_NUM="2"), message(way=Way.BATCH, INNER_NUM="2"), flagged):
        with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
            transforms.apply(each, 0)
    transforms.apply(message(), 0)


def test_topics_of_what_is_not_served_take_nothing() -> None:
    attributes = {
        "Batches": {"queue.type": "BatchCQ"},
        "Compacted": {"cleanup.policy": "COMPACTION"},
        "Plain": {"queue.type": "SimpleCQ", "cleanup.policy": "DELETE"},
    }
    transforms = Transforms([InnerBatch(attributes.get)], attributes.get)
    for topic in ("Batches", "Compacted"):
        for way in (Way.SEND, Way.BATCH, Way.SEND_BACK):
            with pytest.raises(ResponseError, match=f"topic {topic} takes no messages here: "):
                transforms.apply(message(topic, way), 0)
    for topic in ("Plain", "Unknown"):
        transforms.apply(message(topic), 0)
