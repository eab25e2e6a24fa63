# SPDX-License-Identifier: Apache-2.0
"""Static (logical) topics of 5.x: which broker has which part of a logical queue.

Java: remoting.protocol.statictopic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.protocol.body.base import Body, body, member

GLOBAL_SCOPE = "__global__"


@body("org.apache.rocketmq.remoting.protocol.statictopic.LogicQueueMappingItem")
class LogicQueueMappingItem(Body):
    """A part of a logical queue that is in one queue of a broker.

    Its offsets, and its times in ms, say where it begins and ends; -1 means that it is still open.
    """

    gen: int = 0
    queue_id: int = 0
    bname: str | None = None
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    time_of_start: int = -1
    time_of_end: int = -1


@body("org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingInfo")
class TopicQueueMappingInfo(Body):
    """A broker's part in a static topic.

    `curr_id_map` leads from the id of a logical queue to the id of the queue at this broker.
    """

    topic: str | None = None
    scope: str = GLOBAL_SCOPE
    total_queues: int = 0
    bname: str | None = None
    epoch: int = 0
    dirty: bool = False
    curr_id_map: Mapping[int, int] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingDetail")
class TopicQueueMappingDetail(TopicQueueMappingInfo):
    """A TopicQueueMappingInfo with all parts of each logical queue."""

    hosted_queues: Mapping[int, Sequence[LogicQueueMappingItem]] = member(default_factory=dict)
