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
    """A unit of a consume queue, and whether the group's filter accepts its message (`eval`).

    `msg` says why the filter could not be asked.
    """

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


@body("org.apache.rocketmq.remoting.protocol.body.QueryConsumeQueueResponseBody")
class QueryConsumeQueueResponseBody(Body):
    """Units of a consume queue, and the bounds of the queue.

    `min_queue_index` is that of its first unit, `max_queue_index` the one after its last.
    """

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: Sequence[ConsumeQueueData] | None = None
    max_queue_index: int = 0
    min_queue_index: int = 0
