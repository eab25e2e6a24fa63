# SPDX-License-Identifier: Apache-2.0
"""Gives a listener one message because an administrator asked for it, and reports the outcome.

Nothing follows from the answer: no offset is committed, and nothing is sent back.

Java: consumeMessageDirectly of ConsumeMessageConcurrentlyService and ConsumeMessageOrderlyService.
"""

from __future__ import annotations

from typing import Any, Final

from txrocketmq.client.consumer.listening.listener import (
    Calls,
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
)
from txrocketmq.client.consumer.listening.listener_failures import Fate
from txrocketmq.client.consumer.queue.pull_result import restore_topic
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.protocol.body.client import ConsumeMessageDirectlyResult

_RESULTS: Final[dict[Any, str]] = {
    None: "CR_SUCCESS",
    ConsumeStatus.CONSUME_SUCCESS: "CR_SUCCESS",
    ConsumeStatus.RECONSUME_LATER: "CR_LATER",
    ConsumeOrderlyStatus.SUCCESS: "CR_SUCCESS",
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
    ConsumeOrderlyStatus.COMMIT: "CR_COMMIT",
    ConsumeOrderlyStatus.ROLLBACK: "CR_ROLLBACK",
}


async def consume_directly(
    calls: Calls, clock: Clock, message: MessageExt, *, is_orderly: bool
) -> ConsumeMessageDirectlyResult:
    """Calls the listener with a message; returns its answer and how long it took."""
    restore_topic(message)
    queue = MessageQueue(message.topic, message.broker_name or "", message.queue_id)
    context = ConsumeOrderlyContext(queue) if is_orderly else ConsumeContext(queue)
    begun_ms = clock.steady_ms()
    remark = None
    try:
        answer = calls.call_unseen([message], context)
        if hasattr(answer, "__await__"):
            answer = await answer
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        fate = Fate("not be delivered again, as an administrator had delivered it directly")
        calls.failures.tell([message], queue, error, fate)
        result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
    else:
        if answer is None or isinstance(answer, (ConsumeStatus, ConsumeOrderlyStatus)):
            result = _RESULTS[answer]
        else:
            result, remark = "CR_RETURN_NULL", f"the listener returned {answer!r:.80}, no status"
    return ConsumeMessageDirectlyResult(
        order=is_orderly,
        auto_commit=context.auto_commit if isinstance(context, ConsumeOrderlyContext) else True,
        consume_result=result,
        remark=remark,
        spent_time_mills=clock.steady_ms() - begun_ms,
    )
