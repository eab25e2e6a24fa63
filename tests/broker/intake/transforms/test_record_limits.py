# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.record_limits import check_message, check_topic
from txrocketmq.broker.store.formats.put_message import PutStatus


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


@pytest.mark.parametrize(
    ("topic", "is_storable"),
    [
        ("x" * 127, True),
        ("x" * 128, False),
        ("%DLQ%" + "x" * 123, False),
        ("%RETRY%" + "x" * 248, True),
        ("\u00e9" * 63, True),
        ("\u00e9" * 64, False),
    ],
)
def test_topics_by_their_bytes(topic: str, is_storable: bool) -> None:
    if is_storable:
        check_topic(topic)
        check_message(message(topic))
        return
    with pytest.raises(NotTaken) as reason:
        check_topic(topic)
    assert reason.value.status is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize(
    ("way", "is_taken"),
    [(Way.SEND, False), (Way.SEND_BACK, False), (Way.ENTRY, True), (Way.DELIVERY, True)],
)
def test_a_message_without_a_body(way: Way, is_taken: bool) -> None:
    if is_taken:
        check_message(message(way=way, body=b""))
        return
    with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
        check_message(message(way=way, body=b""))
