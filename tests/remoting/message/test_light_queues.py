# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.remoting.message.light_queues import is_light, light_offset, places
from txrocketmq.remoting.message.message import MessageExt


def test_light_queues_are_known_by_their_names() -> None:
    assert is_light("%LMQ%a")
    assert not is_light("LMQ")


def test_places_are_read_as_the_original_reads_them() -> None:
    assert places("T", "%LMQ%a,%LMQ%b", "5,0") == [("%LMQ%a", 5), ("%LMQ%b", 0)]
    for dispatch, offsets in [
        (None, "1"), ("%LMQ%a", None), ("", ""), ("%LMQ%a,%LMQ%b", "1"), ("plain", "1"),
        ("%LMQ%a", "x"), ("%LMQ%a", "-1"), ("%LMQ%a", ""), ("%LMQ%a", "9" * 19),
    ]:  # fmt: skip
        assert places("T", dispatch, offsets) == []
    for topic in ("%RETRY%G", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"):
        assert places(topic, "%LMQ%a", "5") == []


@pytest.mark.parametrize(("queue", "offset"), [("%LMQ%a", 5), ("%LMQ%b", 0), ("%LMQ%c", 7)])
def test_a_message_has_a_place_in_each_light_queue(queue: str, offset: int) -> None:
    lists = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "INNER_MULTI_QUEUE_OFFSET": "5,0"}
    message = MessageExt("%LMQ%c", queue_offset=7, properties=lists)
    assert light_offset(message, queue) == offset
