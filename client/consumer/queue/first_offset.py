# SPDX-License-Identifier: Apache-2.0
"""Where a member begins in a queue that was assigned to it.

It goes on where the group is. Where the group never was, the configuration says where it begins;
the retry topic is read from its first message unless the group begins at a time.

Java: RebalancePushImpl.computePullFromWhereWithException, and that of RebalanceLitePullImpl.
"""

from __future__ import annotations

from typing import Final, Protocol

from txrocketmq.client.consumer.config import ConsumeFrom
from txrocketmq.client.consumer.queue.offset_store import OffsetStore
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX

HALF_AN_HOUR_MS: Final = 30 * 60 * 1_000


class Beginning(Protocol):
    """The settings that say where a group begins."""

    @property
    def consume_from(self) -> ConsumeFrom: ...

    @property
    def consume_timestamp_ms(self) -> int | None: ...


async def first_offset(
    instance: ClientInstance, offsets: OffsetStore, config: Beginning, queue: MessageQueue
) -> int:
    """Returns where to begin. Raises MQBrokerError, BrokerNotExist and errors of the connection."""
    stored = await offsets.read(queue)
    if stored is not None:
        return stored
    is_retry, start = queue.topic.startswith(RETRY_PREFIX), config.consume_from
    if start is ConsumeFrom.FIRST_OFFSET or (is_retry and start is ConsumeFrom.LAST_OFFSET):
        return 0  # the broker says where its first message is
    address = await instance.address_to_subscribe(queue)
    if start is ConsumeFrom.LAST_OFFSET or is_retry:
        return await instance.api.max_offset(address, queue)
    time_ms = config.consume_timestamp_ms
    if time_ms is None:
        time_ms = instance.clock.now_ms() - HALF_AN_HOUR_MS
    return await instance.api.search_offset(address, queue, time_ms)
