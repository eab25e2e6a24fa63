# SPDX-License-Identifier: Apache-2.0
"""The types of putting messages: what goes in, and what is returned.

Java: MessageExtBrokerInner, PutMessageStatus, AppendMessageResult.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

MULTI_DISPATCH: Final = 1 << 32
"""A bit of PutMessage.sys_flag, beyond the bits of records: the message is to enter the light
queues that its properties list."""


class PutMessage(NamedTuple):
    """A message on its way into the store.

    `properties` is the encoded text, with 0x02 after each pair. `tags_code` is what the consume
    queue is to contain: the hash of the tag, or the delivery time of a delayed message. Hosts are
    addresses of 4 or 16 bytes followed by 4 bytes of port, as in records. `uniq_key`, `keys` (words
    separated by blanks) and `tags` are indexed; they are in the properties as well. `sys_flag` may
    contain the mark MULTI_DISPATCH.

    This is where the order of the fields is written. Where one is made or read for each send, a
    plain tuple stands for it, since that is quicker; its names have to be these, in this order
    (tests/broker/store/formats/test_put_message.py).
    """

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    tags_code: int
    born_timestamp_ms: int
    born_host: bytes
    store_host: bytes
    uniq_key: str | None
    keys: str | None
    tags: str | None
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class Whole(list[PutMessage]):
    """Messages of which all are stored, or none."""


class PutStatus(Enum):
    """The result of putting a message.

    It is stored with PUT_OK, and with the three that say that a wait was in vain.
    """

    PUT_OK = auto()
    FLUSH_DISK_TIMEOUT = auto()
    """It is stored, but was not durable in time."""
    FLUSH_SLAVE_TIMEOUT = auto()
    """It is stored, but replicas did not have it in time."""
    SLAVE_NOT_AVAILABLE = auto()
    """It is stored, but there is no replica that could have it soon."""
    SERVICE_NOT_AVAILABLE = auto()
    """The store does not take messages: it is stopped, or its disk is full."""
    CREATE_MAPPED_FILE_FAILED = auto()
    """There is no room for one more file."""
    IN_SYNC_REPLICAS_NOT_ENOUGH = auto()
    """Fewer brokers are in sync than have to have it."""
    MESSAGE_ILLEGAL = auto()
    """The message is too large, or a field does not fit its place."""
    PROPERTIES_SIZE_EXCEEDED = auto()
    WHEEL_TIMER_NOT_ENABLE = auto()
    """The message has a delivery time of its own, and this broker does not keep such messages."""
    WHEEL_TIMER_MSG_ILLEGAL = auto()
    """Its delivery time is invalid or too far ahead; or it withdraws what is due already."""
    WHEEL_TIMER_FLOW_CONTROL = auto()
    """Too many messages are due at that time."""
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = auto()
    """There are as many light queues as there may be."""


class Appended(NamedTuple):
    """Where a message was put: offset and size in the log in bytes, and offset in its queue.

    Without PUT_OK the numbers mean nothing. A message that enters no queue (a half or rolled back
    message that the client marked as such) has queue offset 0.
    """

    status: PutStatus
    physical_offset: int
    size: int
    queue_offset: int
    store_timestamp_ms: int


def refused(status: PutStatus, now_ms: int) -> Appended:
    """The result of a message that was not stored."""
    return Appended(status, -1, 0, -1, now_ms)
