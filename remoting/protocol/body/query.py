# SPDX-License-Identifier: Apache-2.0
"""Units of a consume queue.

Java: ConsumeQueueData, QueryConsumeQueueResponseBody in remoting.protocol.body.
"""

from __future__ import annotations

from collections.abc import Sequence

from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.base import Body, body


@body("org.apache.rocketmq.remoting.protocol.body.ConsumeQueueData")
class ConsumeQueueData(Body):
    """A unit, and whether the group's filter passes it; `msg` says why it could not be asked."""

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


@body("org.apache.rocketmq.remoting.protocol.body.QueryConsumeQueueResponseBody")
class QueryConsumeQueueResponseBody(Body):
    """Units, and the bounds of the queue."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: Sequence[ConsumeQueueData] | None = None
    max_queue_index: int = 0
    min_queue_index: int = 0
