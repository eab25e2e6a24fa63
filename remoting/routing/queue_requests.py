# SPDX-License-Identifier: Apache-2.0
"""Headers of requests about one queue, as all our clients send them."""

from __future__ import annotations

from typing import TypedDict

from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, TAG
from txrocketmq.remoting.protocol.offset import UpdateConsumerOffsetRequestHeader
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP, PullMessageRequestHeader


class QueueFields(TypedDict):
    """The fields of a header that name a queue."""

    topic: str
    queue_id: int
    bname: str


def queue_fields(queue: MessageQueue) -> QueueFields:
    """Returns the fields of a header that name a queue."""
    return {"topic": queue.topic, "queue_id": queue.queue_id, "bname": queue.broker_name}


def pull_header(
    queue: MessageQueue,
    offset: int,
    max_messages: int,
    expression: str = SUB_ALL,
    expression_type: str = TAG,
    *,
    group: str = TOOLS_GROUP,
    suspend_ms: int = 0,
) -> PullMessageRequestHeader:
    """Returns the header of a pull that commits no offset.

    With `suspend_ms`, a broker waits for messages for so long. A pull of another group than
    TOOLS_GROUP changes what brokers say about the progress of that group.
    """
    return PullMessageRequestHeader(
        consumer_group=group,
        queue_offset=offset,
        max_msg_nums=max_messages,
        sys_flag=PullSysFlag.SUBSCRIPTION | (PullSysFlag.SUSPEND if suspend_ms else 0),
        commit_offset=0,
        suspend_timeout_millis=suspend_ms,
        subscription=expression,
        sub_version=0,
        expression_type=expression_type,
        **queue_fields(queue),
    )


def commit_header(
    group: str, queue: MessageQueue, next_offset: int
) -> UpdateConsumerOffsetRequestHeader:
    """Returns the header that tells how far a group has consumed a queue."""
    return UpdateConsumerOffsetRequestHeader(
        consumer_group=group, commit_offset=next_offset, **queue_fields(queue)
    )
