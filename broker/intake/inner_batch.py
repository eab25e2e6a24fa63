# SPDX-License-Identifier: Apache-2.0
"""INNER_NUM and the flag INNER_BATCH: batches stored as one record, which this broker has not.

Topics whose attributes promise what is not served, queues of batches or compaction, take nothing
either: the original would find plain queues where it expects others. Java:
HookUtils.checkInnerBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from txrocketmq.broker.attributes import CLEANUP_POLICY, QUEUE_TYPE, why_nothing_is_taken
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, NotTaken
from txrocketmq.broker.store.put_message import PutStatus
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag


class InnerBatch:
    """Refuses them; `attributes_of` gives the attributes of a topic."""

    acts_on = ActsOn(
        properties=frozenset({names.INNER_NUM}),
        topic_attributes=frozenset({QUEUE_TYPE, CLEANUP_POLICY}),
        sys_flags=MessageSysFlag.INNER_BATCH,
        ways=Way.SEND | Way.BATCH | Way.SEND_BACK | Way.REPLY,
    )

    def __init__(self, attributes_of: Callable[[str], Mapping[str, str] | None]) -> None:
        self._attributes_of = attributes_of

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Refuses the message, unless it is a plain one to a topic of plain queues."""
        if message.sys_flag & MessageSysFlag.INNER_BATCH or names.INNER_NUM in message.properties:
            raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
        why = why_nothing_is_taken(self._attributes_of(message.topic))
        if why:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"the topic {message.topic} takes no messages here: {why}",
            )
