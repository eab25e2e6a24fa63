# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transforms.pop_check_point import PopCheckPointProperty


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


def test_the_check_point_is_taken_off() -> None:
    popped = message(POP_CK="1 2", own="kept")
    PopCheckPointProperty().apply(popped, 0)
    assert popped.properties == {"own": "kept"}
