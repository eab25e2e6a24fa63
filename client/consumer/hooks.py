# SPDX-License-Identifier: Apache-2.0
"""Functions of a program that see messages before a listener has them, and after it is done.

They run on the client's own thread, so they must be quick and may not call the client. What an
administrator gives to a listener directly is not seen.

Java: ConsumeMessageHook, ConsumeMessageContext, ConsumeReturnType.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from txrocketmq.client.consumer.listener import ConsumeOrderlyStatus, ConsumeStatus
from txrocketmq.client.producer.hooks import quietly
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.transport.clock import Clock

Status = ConsumeStatus | ConsumeOrderlyStatus
_FAILED: Final = frozenset(
    {
        ConsumeStatus.RECONSUME_LATER,
        ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
        ConsumeOrderlyStatus.ROLLBACK,
    }
)


class ConsumeReturnType(enum.IntEnum):
    """How a listener ended; the numbers are those of traces. 3 is Java's for having given null."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    FAILED = 4


@dataclass(slots=True)
class ConsumeHookContext:
    """One call of a listener; what became of it is there afterwards. `state` is the hooks' own."""

    group: str
    queue: MessageQueue
    messages: list[MessageExt]
    begun_ms: int
    success: bool = False
    status: Status | None = None
    """What the listener has given; None: nothing, which is success, or it has raised `error`."""
    error: Exception | None = None
    return_type: ConsumeReturnType | None = None
    state: dict[Any, Any] = field(default_factory=dict)


class ConsumeHook(Protocol):
    """Sees what is consumed; what it raises is logged and changes nothing."""

    def before_consume(self, context: ConsumeHookContext) -> None: ...

    def after_consume(self, context: ConsumeHookContext) -> None: ...


class ConsumeHooks:
    """The hooks of one consumer, around each call of its listener."""

    def __init__(self, clock: Clock, group: str, timeout_ms: int) -> None:
        """`timeout_ms`: a listener that takes longer has taken too long, even if it succeeds."""
        self._clock = clock
        self._group = group
        self._timeout_ms = timeout_ms
        self._hooks: list[ConsumeHook] = []

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: ConsumeHook) -> None:
        """From now on the hook sees each call."""
        self._hooks.append(hook)

    def around(
        self, call: Callable[[], Any], messages: list[MessageExt], queue: MessageQueue
    ) -> Any:
        """The answer of a call, or something to wait for; raises what it raises."""
        begun_ms = self._clock.steady_ms()
        context = ConsumeHookContext(self._group, queue, messages, self._clock.now_ms())
        for hook in self._hooks:
            quietly(hook.before_consume, context)
        try:
            answer = call()
        except Exception as error:
            self._ended(context, begun_ms, None, error)
            raise
        if answer is not None and not isinstance(answer, Status):
            return self._awaited(context, begun_ms, answer)
        self._ended(context, begun_ms, answer, None)
        return answer

    async def _awaited(
        self, context: ConsumeHookContext, begun_ms: int, answer: Awaitable[Status | None]
    ) -> Status | None:
        try:
            status = await answer
        except Exception as error:
            self._ended(context, begun_ms, None, error)
            raise
        self._ended(context, begun_ms, status, None)
        return status

    def _ended(
        self,
        context: ConsumeHookContext,
        begun_ms: int,
        status: Status | None,
        error: Exception | None,
    ) -> None:
        context.status, context.error = status, error
        context.success = error is None and status not in _FAILED
        if error is not None:
            context.return_type = ConsumeReturnType.EXCEPTION
        elif self._clock.steady_ms() - begun_ms >= self._timeout_ms:
            context.return_type = ConsumeReturnType.TIME_OUT
        elif context.success:
            context.return_type = ConsumeReturnType.SUCCESS
        else:
            context.return_type = ConsumeReturnType.FAILED
        for hook in self._hooks:
            quietly(hook.after_consume, context)
