# SPDX-License-Identifier: Apache-2.0
"""Functions of a program that see each message before and after it is sent.

They run on the client's own thread, so they must be quick and may not call the client. Counterpart
of SendMessageHook, CheckForbiddenHook and EndTransactionHook.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from twisted.logger import Logger

from txrocketmq.client.core.trace import MessageType
from txrocketmq.client.producer.send_result import SendResult, TransactionStatus
from txrocketmq.remoting.message.message import Message, MessageQueue

log = Logger()


@dataclass(slots=True)
class SendContext:
    """An attempt to send, and afterwards its `result` or `error`; hooks may use `state`.

    A one-way send has neither.
    """

    group: str
    message: Message
    queue: MessageQueue
    broker_address: str
    message_type: MessageType
    begun_ms: int
    result: SendResult | None = None
    error: Exception | None = None
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndTransactionContext:
    """What a producer reports to a broker at the end of a transaction."""

    group: str
    message: Message
    msg_id: str
    broker_address: str
    status: TransactionStatus
    transaction_id: str | None
    from_check: bool


class SendHook(Protocol):
    """Observes each attempt to send; what it raises is logged and changes nothing."""

    def before_send(self, context: SendContext) -> None: ...

    def after_send(self, context: SendContext) -> None: ...


CheckForbidden = Callable[[SendContext], None]
"""Raises anything to keep a message from being sent; the send fails with that."""
EndTransactionHook = Callable[[EndTransactionContext], None]
"""Sees how transactions end."""


class Hooks:
    """The hooks of one producer; there is a context if there are any of the first two kinds."""

    def __init__(self) -> None:
        self.send: list[SendHook] = []
        self.forbidden: list[CheckForbidden] = []
        self.end_transaction: list[EndTransactionHook] = []

    def before(self, context: SendContext) -> None:
        """Calls the hooks before an attempt; raises what a CheckForbidden raises."""
        for check in self.forbidden:
            check(context)
        for hook in self.send:
            quietly(hook.before_send, context)

    def after(self, context: SendContext) -> None:
        """Calls the hooks after an attempt."""
        for hook in self.send:
            quietly(hook.after_send, context)

    def ended(self, context: EndTransactionContext) -> None:
        """Calls the hooks for the end of a transaction."""
        for hook in self.end_transaction:
            quietly(hook, context)


def quietly(hook: Callable[[Any], None], context: Any) -> None:
    """Calls a hook; what it raises is logged."""
    try:
        hook(context)
    except Exception:  # noqa: BLE001 - a hook that fails must not lose a message
        log.failure("a hook failed")
