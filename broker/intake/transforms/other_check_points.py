# SPDX-License-Identifier: Apache-2.0
"""What is sent to the revive topic: check points of other brokers, and acknowledgements.

A slave of the original that acts as master sends them with enableRemoteEscape, one by one. Whoever
sends anything else, or a check point in the name of this broker, is refused: such a record would
bring back, or forget, what this broker has handed out. Codes: 16.

Java: has no counterpart; the original takes whatever is sent to this topic.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.pop import REVIVE_PREFIX

_OTHERWISE = (
    MessageSysFlag.COMPRESSED
    | MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
    | MessageSysFlag.INNER_BATCH
)
"""Flags that no record has: half messages would come by another way later."""


class OtherCheckPoints:
    """Lets records of other brokers pass; `is_taken` says which."""

    acts_on = ActsOn(topic_prefixes=(REVIVE_PREFIX,), ways=Way.SEND | Way.BATCH | Way.REPLY)

    def __init__(self, cluster: str, is_taken: Callable[[InnerMessage], bool]) -> None:
        self._topic = REVIVE_PREFIX + cluster
        self._is_taken = is_taken

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Refuses a message that is no such record, in the revive topic of this cluster."""
        if message.topic != self._topic:
            return
        is_usual = message.way is Way.SEND and not message.sys_flag & _OTHERWISE
        if not (is_usual and self._is_taken(message)):
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"Sending message to topic[{message.topic}] is forbidden: only check points and"
                " acknowledgements that name another broker are taken here, one by one, while there"
                " is room.",
            )
