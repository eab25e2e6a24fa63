# SPDX-License-Identifier: Apache-2.0
"""Traces of consumption: one record for each message before the listener, and one after it.

The dispatcher that sends the traces of producers sends these too. Messages that say that they are
not to be traced leave none.

Java: ConsumeMessageTraceHookImpl.
"""

from __future__ import annotations

from typing import Protocol

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.consumer.listening.hooks import (
    ConsumeHookContext,
    ConsumeHooks,
    ConsumeReturnType,
)
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.core.trace import SubAfter, SubBefore
from txrocketmq.client.producer import trace_dispatcher
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.trace_dispatcher import TraceDispatcher
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt


class Traced(Protocol):
    """Settings of a consumer that may leave traces."""

    @property
    def enable_trace(self) -> bool: ...

    @property
    def trace_topic(self) -> str: ...


def start_trace(
    instance: ClientInstance, group: str, config: Traced, hooks: ConsumeHooks
) -> ConsumeTrace | None:
    """Adds the traces of a consumer to its hooks, and returns them, if it is to leave any."""
    if not config.enable_trace:
        return None
    trace = ConsumeTrace(instance, group, config.trace_topic)
    trace.start()
    hooks.add(trace)
    return trace


class ConsumeTrace:
    """A ConsumeHook that writes traces of `group` to `topic`."""

    def __init__(self, instance: ClientInstance, group: str, topic: str) -> None:
        self._instance = instance
        self._clock = instance.clock
        self._group = instance.without_namespace(group)
        config = ProducerConfig(
            send_timeout_ms=trace_dispatcher.SEND_TIMEOUT_MS,
            max_message_bytes=trace_dispatcher.MAX_MESSAGE_BYTES,
        )
        sender = trace_dispatcher.trace_group(self._group, "CONSUME")
        self._tracer = Producer(instance, sender, config)
        self._dispatcher = TraceDispatcher(self._clock, self._group, topic, self._tracer.send)

    def start(self) -> None:
        """Begins to send traces that have waited for five seconds."""
        self._dispatcher.start()

    async def shutdown(self) -> None:
        """Sends the traces that wait."""
        await self._dispatcher.shutdown()
        await self._tracer.shutdown()

    def before_consume(self, context: ConsumeHookContext) -> None:
        """Adds one record for each message; those of one call share a request id."""
        request_id = self._instance.unique_keys.create(self._clock.now_ms())
        traced = [each for each in context.messages if _is_traced(each)]
        context.state[self] = request_id, traced
        for message in traced:
            self._dispatcher.append(
                message.topic,
                SubBefore(
                    timestamp_ms=context.begun_ms,
                    region=message.properties.get(names.MSG_REGION),
                    group=self._group,
                    request_id=request_id,
                    msg_id=message.msg_id,
                    retry_times=message.reconsume_times,
                    keys=message.properties.get(names.KEYS),
                ),
            )

    def after_consume(self, context: ConsumeHookContext) -> None:
        """Adds one record for each message; the time that consuming took is divided among them."""
        request_id, traced = context.state[self]
        now_ms = self._clock.now_ms()
        cost_ms = (now_ms - context.begun_ms) // len(context.messages)
        code = ConsumeReturnType.SUCCESS if context.return_type is None else context.return_type
        for message in traced:
            self._dispatcher.append(
                message.topic,
                SubAfter(
                    request_id=request_id,
                    msg_id=message.msg_id,
                    cost_ms=cost_ms,
                    success=context.success,
                    keys=message.properties.get(names.KEYS),
                    context_code=code,
                    timestamp_ms=now_ms,
                    group=self._group,
                ),
            )


def _is_traced(message: MessageExt) -> bool:
    return message.properties.get(names.TRACE_ON) != "false"
