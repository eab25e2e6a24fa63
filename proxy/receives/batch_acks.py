# SPDX-License-Identifier: Apache-2.0
"""Acknowledgements of many messages in one request to each broker (enable_batch_ack).

A broker answers for all of them at once, so a message that it does not know counts as acknowledged,
as with the original. Java: ConsumerProcessor.batchAckMessage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    encode_bit_set,
)

MOST_DISTANCE: Final = 4_096
"""How far from the start of its pop a message may be; handles come from clients."""


def may_be_together(handle: Handle) -> bool:
    """Returns whether a message can be acknowledged with others."""
    popped = handle.popped
    return 0 <= popped.queue_offset - popped.start_offset < MOST_DISTANCE


def batch_acks(
    group: str, topic: str, handles: Iterable[Handle]
) -> dict[str, BatchAckMessageRequestBody]:
    """Returns the requests to brokers by name."""
    by_pop: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for handle in handles:
        by_pop[handle.popped[:-1]].append(handle.popped.queue_offset)
    by_broker: dict[str, list[BatchAck]] = defaultdict(list)
    for (start, pop_ms, invisible_ms, revive, retry, broker, queue), offsets in by_pop.items():
        ack = BatchAck(
            consumer_group=group,
            topic=topic,
            retry=retry,
            start_offset=start,
            queue_id=queue,
            revive_queue_id=revive,
            pop_time=pop_ms,
            invisible_time=invisible_ms,
            bit_set=encode_bit_set(offset - start for offset in offsets),
        )
        by_broker[broker].append(ack)
    return {
        broker: BatchAckMessageRequestBody(broker_name=broker, acks=acks)
        for broker, acks in by_broker.items()
    }
