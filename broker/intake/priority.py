# SPDX-License-Identifier: Apache-2.0
"""_SYS_MSG_PRIORITY_: a message with a priority (5.4), which this broker does not serve.

The original puts it into the queue of that number, for consumers that pop and see high numbers
first; messages in a batch are stored as they are, there as here. A message that goes to a retry
topic is a delivered one, whose priority is spent.

Java: SendMessageProcessor.sendMessage.
"""

from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import RETRY_PREFIX


class Priority:
    """Refuses such messages."""

    acts_on = ActsOn(properties=frozenset({names.PRIORITY}), ways=Way.SEND | Way.BATCH)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Refuses the message, unless a consumer sends it to be retried."""
        if not message.topic.startswith(RETRY_PREFIX):
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                "priorities of messages are not served; send the message without one",
            )
