# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.body import static_topic
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingDetail


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(static_topic)


def test_an_open_part_ends_nowhere() -> None:
    detail = TopicQueueMappingDetail.decode(b'{hostedQueues:{0:[{"gen":0,"startOffset":5}]}}')
    (part,) = detail.hosted_queues[0]
    assert (part.start_offset, part.end_offset, part.time_of_end) == (5, -1, -1)
    assert detail.scope == "__global__"
