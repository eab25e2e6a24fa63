# SPDX-License-Identifier: Apache-2.0
"""Messages that a pop consumer has delivered and that are not acknowledged yet, for its hooks.

Each message is treated by itself. It is consumed when it is acknowledged. If its invisible time
ends before, it was not consumed in time and is delivered again; messages that are left at the end
were given up. For consumers without hooks, nothing is kept.

Java: the hooks of ConsumeMessagePopConcurrentlyService, which has a listener for this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from txrocketmq.client.consumer.listening.hooks import ConsumeHooks, Consuming
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

LOOK_MS: Final = 1_000
MAX_OPEN: Final = 10_000
"""How many messages are kept for hooks; beyond that, the oldest are dropped unreported."""


class GivenMessages:
    """The messages that a consumer has delivered."""

    def __init__(self, clock: Clock, hooks: ConsumeHooks) -> None:
        self._clock = clock
        self._hooks = hooks
        self._open: dict[str, tuple[int, Consuming]] = {}
        """The open messages by handle, each with the time until which it is hidden."""
        self._looking: Any = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, messages: Iterable[MessageExt], until_ms: int) -> None:
        """Adds messages that are given to the program and hidden from others until `until_ms`."""
        if not self._hooks:
            return
        for message in messages:
            queue = MessageQueue(message.topic, message.broker_name or "", message.queue_id)
            consuming = self._hooks.begin([message], queue)
            self._open[message.properties[names.POP_CK]] = until_ms, consuming
            if len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]
        if self._looking is None and self._open:
            self._looking = self._clock.every(LOOK_MS, self._look)

    def acknowledged(self, messages: Iterable[MessageExt]) -> None:
        """Reports messages as consumed, because the brokers have acknowledged them."""
        for message in messages:
            _, consuming = self._open.pop(message.properties[names.POP_CK], (0, None))
            if consuming is not None:
                self._hooks.end(consuming, ConsumeStatus.CONSUME_SUCCESS)

    def hidden(self, old_handle: str, message: MessageExt, until_ms: int) -> None:
        """Updates the handle of a message, and the time until which it is hidden."""
        _, consuming = self._open.pop(old_handle, (0, None))
        if consuming is not None:
            self._open[message.properties[names.POP_CK]] = until_ms, consuming

    def stop(self) -> None:
        """Reports all messages that are left as given up."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        left, self._open = self._open, {}
        for _, consuming in left.values():
            self._hooks.end(consuming, ConsumeStatus.RECONSUME_LATER)

    def _look(self) -> None:
        now_ms = self._clock.steady_ms()
        over = [handle for handle, (until_ms, _) in self._open.items() if until_ms <= now_ms]
        for handle in over:
            _, consuming = self._open.pop(handle)
            self._hooks.end(consuming, ConsumeStatus.RECONSUME_LATER, is_too_late=True)
