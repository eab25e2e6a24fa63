# SPDX-License-Identifier: Apache-2.0
"""A program's functions that are called before messages are consumed and afterwards.

Of a push consumer they see each call of the listener; what an administrator gives to it directly is
not seen. What `poll` of a lite pull consumer gives is consumed with that, as far as can be told.
What a pop consumer gives is consumed when it is acknowledged.

Hooks run on the client's own thread, so they must be quick and may not call the client.

Java: ConsumeMessageHook, ConsumeMessageContext, ConsumeReturnType.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from txrocketmq.client.consumer.listening.listener import ConsumeOrderlyStatus, ConsumeStatus
from txrocketmq.client.producer.hooks import quietly
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

Status = ConsumeStatus | ConsumeOrderlyStatus
_FAILED: Final = frozenset(
    {
        ConsumeStatus.RECONSUME_LATER,
        ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
        ConsumeOrderlyStatus.ROLLBACK,
    }
)


class ConsumeReturnType(enum.IntEnum):
    """How consuming ended; the numbers are those of traces. 3 is Java's for a null result."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    FAILED = 4


@dataclass(slots=True)
class ConsumeHookContext:
    """Messages that are consumed together, and afterwards the result.

    They are those of a call of the listener or of a `poll`, or one message that was popped. Hooks
    may keep values in `state`.
    """

    group: str
    queue: MessageQueue
    messages: list[MessageExt]
    begun_ms: int
    success: bool = False
    status: Status | None = None
    """What the listener returned. None means success, or that it raised `error`. Without a listener
    it is CONSUME_SUCCESS, or RECONSUME_LATER for messages that are delivered again."""
    error: Exception | None = None
    return_type: ConsumeReturnType | None = None
    state: dict[Any, Any] = field(default_factory=dict)


class ConsumeHook(Protocol):
    """Observes each call of a listener; what it raises is logged and changes nothing."""

    def before_consume(self, context: ConsumeHookContext) -> None: ...

    def after_consume(self, context: ConsumeHookContext) -> None: ...


@dataclass(frozen=True, slots=True)
class Consuming:
    """Messages that hooks were told about before consumption, and will be told about afterwards."""

    context: ConsumeHookContext
    begun_steady_ms: int


class ConsumeHooks:
    """The hooks of one consumer."""

    def __init__(self, clock: Clock, group: str, timeout_ms: int | None = None) -> None:
        """A listener that takes `timeout_ms` or longer is reported as TIME_OUT."""
        self._clock = clock
        self._group = group
        self._timeout_ms = timeout_ms
        self._hooks: list[ConsumeHook] = []

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: ConsumeHook) -> None:
        """Adds a hook, which sees each call from now on."""
        self._hooks.append(hook)

    def around(
        self, call: Callable[[], Any], messages: list[MessageExt], queue: MessageQueue
    ) -> Any:
        """Makes a call between the hooks; returns its answer or an awaitable, or raises."""
        consuming = self.begin(messages, queue)
        try:
            answer = call()
        except Exception as error:
            self.end(consuming, None, error)
            raise
        if hasattr(answer, "__await__"):
            return self._awaited(consuming, answer)
        self.end(consuming, answer)
        return answer

    async def _awaited(
        self, consuming: Consuming, answer: Awaitable[Status | None]
    ) -> Status | None:
        try:
            status = await answer
        except Exception as error:
            self.end(consuming, None, error)
            raise
        self.end(consuming, status)
        return status

    def begin(self, messages: list[MessageExt], queue: MessageQueue) -> Consuming:
        """Tells the hooks that messages begin to be consumed."""
        begun_ms = self._clock.steady_ms()
        context = ConsumeHookContext(self._group, queue, messages, self._clock.now_ms())
        for hook in self._hooks:
            quietly(hook.before_consume, context)
        return Consuming(context, begun_ms)

    def end(
        self,
        consuming: Consuming,
        status: Status | None,
        error: Exception | None = None,
        *,
        is_too_late: bool = False,
    ) -> None:
        """Tells the hooks how the consumption of messages ended."""
        context = consuming.context
        context.status, context.error = status, error
        is_valid = status is None or isinstance(status, Status)
        context.success = error is None and is_valid and status not in _FAILED
        if error is not None:
            context.return_type = ConsumeReturnType.EXCEPTION
        elif is_too_late or self._took_too_long(consuming):
            context.return_type = ConsumeReturnType.TIME_OUT
        elif context.success:
            context.return_type = ConsumeReturnType.SUCCESS
        else:
            context.return_type = ConsumeReturnType.FAILED
        for hook in self._hooks:
            quietly(hook.after_consume, context)

    def _took_too_long(self, consuming: Consuming) -> bool:
        if self._timeout_ms is None:
            return False
        return self._clock.steady_ms() - consuming.begun_steady_ms >= self._timeout_ms
