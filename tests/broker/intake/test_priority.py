# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.priority import Priority
from txrocketmq.broker.intake.transform import no_transforms
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names


def message(topic: str, way: Way, **properties: str) -> InnerMessage:
    return InnerMessage(topic, 1, b"body", 1, bytes(8), bytes(8), properties, way=way)


def test_a_message_with_a_priority_is_refused_and_no_other() -> None:
    transforms = no_transforms([Priority()])
    for way in (Way.SEND, Way.BATCH):
        with pytest.raises(ResponseError, match="priorities of messages are not served"):
            transforms.apply(message("T", way, **{names.PRIORITY: "3"}), 0)
        transforms.apply(message("T", way), 0)


def test_one_that_was_delivered_is_retried() -> None:
    transforms = no_transforms([Priority()])
    transforms.apply(message("%RETRY%g", Way.SEND, **{names.PRIORITY: "3"}), 0)
    transforms.apply(message("T", Way.SEND_BACK, **{names.PRIORITY: "3"}), 0)
