# SPDX-License-Identifier: Apache-2.0
"""Static (logical) topics of 5.x: which broker has which part of a queue.

Java: remoting.protocol.statictopic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.protocol.body.base import Body, body, member

GLOBAL_SCOPE = "__global__"


@body("org.apache.rocketmq.remoting.protocol.statictopic.LogicQueueMappingItem")
class LogicQueueMappingItem(Body):
    """A part of a logical queue: offsets and times (ms) of where it begins and ends; -1: open."""

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
    """A broker's part in a static topic: logical queue id to the queue id it has there."""

    topic: str | None = None
    scope: str = GLOBAL_SCOPE
    total_queues: int = 0
    bname: str | None = None
    epoch: int = 0
    dirty: bool = False
    curr_id_map: Mapping[int, int] = member(default_factory=dict)


@body("org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingDetail")
class TopicQueueMappingDetail(TopicQueueMappingInfo):
    """The same with the history of each logical queue."""

    hosted_queues: Mapping[int, Sequence[LogicQueueMappingItem]] = member(default_factory=dict)
