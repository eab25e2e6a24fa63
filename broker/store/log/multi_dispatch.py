# SPDX-License-Identifier: Apache-2.0
"""Enters a message that is being encoded into the light queues that it lists (light_queues.py).

Each of these gets a unit among those that are pending, without the place of the record, which is
known only once the record is made; `fill` writes it. What can be wrong with the message is found
before any queue is touched, so that no light queue ever has a gap.

Java: LmqDispatch.wrapLmqDispatch, updateLmqOffsets.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage, PutStatus
from txrocketmq.broker.store.log.encode import Copied, fits
from txrocketmq.broker.store.queues.consume_queue import UNIT_FIELDS, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.light_queues import (
    QUEUE_ID,
    is_light,
    is_served,
    listed,
    offsets_property,
)
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.properties import decode_properties


def enter(
    message: PutMessage,
    at: int,
    layout: struct.Struct,
    room_bytes: int,
    queues: ConsumeQueues,
    config: StoreConfig,
    touched: list[ConsumeQueue],
    copied: Copied[ConsumeQueue],
) -> bytes | PutStatus:
    """Returns the properties of message number `at` with its offsets, which may have `room_bytes`.

    Returns a status if something is wrong with the message. `touched` gets the queues that have
    something pending. Raises OSError like ConsumeQueues.open.
    """
    text = str(message.properties, "utf-8", "replace")
    listing = listed(decode_properties(text).get(names.INNER_MULTI_DISPATCH))
    if not is_served(config) or len(set(listing)) < len(listing) or not all(map(is_light, listing)):
        return PutStatus.MESSAGE_ILLEGAL
    if not fits(message, layout, message.sys_flag & ~MULTI_DISPATCH):
        return PutStatus.MESSAGE_ILLEGAL
    missing = sum(name not in queues.table for name in listing)
    if missing and queues.light_count + missing > config.max_lmq_consume_queue_num:
        return PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    try:
        found = [queues.open(name, QUEUE_ID) for name in listing]
    except ValueError:
        return PutStatus.MESSAGE_ILLEGAL
    offsets = offsets_property(
        [queue.next_offset + len(queue.pending) // UNIT_FIELDS for queue in found]
    )
    if len(message.properties) + len(offsets) > room_bytes:
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    for queue in found:
        if not queue.pending:
            touched.append(queue)
        copied.append((at, queue, len(queue.pending)))
        queue.pending += (0, 0, message.tags_code)
    return message.properties + offsets


def fill(copied: Copied[ConsumeQueue], places: Sequence[tuple[int, int, int]]) -> None:
    """Writes into the units where the records are, given offset, size and queue offset of each."""
    for at, queue, unit in copied:
        queue.pending[unit : unit + 2] = places[at][:2]
