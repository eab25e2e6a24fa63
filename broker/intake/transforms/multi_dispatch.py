# SPDX-License-Identifier: Apache-2.0
"""INNER_MULTI_DISPATCH: messages that also enter light queues (LMQ).

The store writes the offsets that it gets there behind its properties
(store/queues/light_queues.py); what a client has written in their place does not count. A list with
anything but names of light queues, each once, is refused: the original stores such a message, and
is then stuck at it, or leaves it out of all of them. Retry topics and the broker's own take part in
nothing, as in the original; nor do half messages, whose copies the original shows before the
transaction is committed.

Java: LmqDispatch.wrapLmqDispatch, MessageExtBrokerInner.needDispatchLMQ.
"""

from __future__ import annotations

from txrocketmq.broker.intake.inner_message import ALL_WAYS, InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH
from txrocketmq.broker.store.queues.light_queues import is_light, listed
from txrocketmq.broker.tables.topic import validate_topic
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC, may_enter_light_queues


class MultiDispatch:
    """Marks such messages for the store. It is the last transform, as it needs the final topic."""

    acts_on = ActsOn(properties=frozenset({names.INNER_MULTI_DISPATCH}), ways=ALL_WAYS & ~Way.BATCH)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Marks the message, if its topic takes part."""
        message.properties.pop(names.INNER_MULTI_QUEUE_OFFSET, None)
        text = message.properties[names.INNER_MULTI_DISPATCH]
        topic = message.topic
        if not text.strip() or topic == TRANS_HALF_TOPIC or not may_enter_light_queues(topic):
            return
        listing = listed(text)
        for name in listing:
            if not is_light(name) or validate_topic(name) is not None:
                raise ResponseError(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"{names.INNER_MULTI_DISPATCH} lists light queues (%LMQ%...), not {name!r}",
                )
        if len(set(listing)) < len(listing):
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"{names.INNER_MULTI_DISPATCH} lists a light queue more than once",
            )
        message.sys_flag |= MULTI_DISPATCH
