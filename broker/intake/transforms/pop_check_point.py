# SPDX-License-Identifier: Apache-2.0
"""POP_CK: where a popped message came from.

It is meant for the consumer, and is not stored again. Java: SendMessageProcessor.sendMessage.
"""

from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.remoting.message import properties as names


class PopCheckPointProperty:
    """Removes the property POP_CK."""

    acts_on = ActsOn(properties=frozenset({names.POP_CK}), ways=Way.SEND)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Removes the property from the message."""
        del message.properties[names.POP_CK]
