# SPDX-License-Identifier: Apache-2.0
"""What a send gives back. Counterpart of SendResult, SendStatus and TransactionSendResult."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.primitives.values import maker
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader


class SendStatus(enum.Enum):
    """Whether a stored message is already as safe as the broker is configured to keep it."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_STATUS: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


@dataclass(frozen=True, slots=True)
class SendResult:
    """Where a message was stored. For a batch, both ids are lists joined by commas."""

    status: SendStatus
    msg_id: str
    """The unique key that the producer gave the message."""
    offset_msg_id: str
    """The id that says where the broker stored it."""
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    region_id: str = "DefaultRegion"
    trace_on: bool = True
    recall_handle: str | None = None
    """With which a delayed message can be taken back (5.x)."""


_made: Final = maker(SendResult)


class TransactionStatus(enum.Enum):
    """How a transaction ends (LocalTransactionState)."""

    COMMIT = "COMMIT_MESSAGE"
    ROLLBACK = "ROLLBACK_MESSAGE"
    UNKNOWN = "UNKNOW"
    """Not decided yet: the broker asks later."""


@dataclass(frozen=True, slots=True)
class TransactionSendResult:
    """The results of a message that was sent in a transaction, and of the transaction."""

    send_result: SendResult
    status: TransactionStatus
    error: Exception | None = None
    """What the local transaction raised; its status is UNKNOWN then."""


def send_result(
    reply: Reply[SendMessageResponseHeader], queue: MessageQueue, msg_id: str
) -> SendResult:
    """The result of a broker's answer to a message that was sent to a queue."""
    header = reply.header
    ext_fields = reply.ext_fields or {}
    region_id = ext_fields.get("MSG_REGION") or "DefaultRegion"
    is_traced = ext_fields.get("TRACE_ON") != "false"
    status = _STATUS[reply.code]
    if header is None:
        return _made(status, msg_id, "", queue, -1, None, region_id, is_traced, None)
    if header.queue_id != queue.queue_id:
        queue = MessageQueue(queue.topic, queue.broker_name, header.queue_id)
    return _made(
        status, msg_id, header.msg_id, queue, header.queue_offset, header.transaction_id,
        region_id, is_traced, header.recall_handle,
    )  # fmt: skip
