# SPDX-License-Identifier: Apache-2.0
"""Sends messages that nobody sees before a local transaction has been committed.

The message is stored first; then the local transaction runs, and the broker is told how it ended.
That message of the end may be lost, or this program may end before it: the broker then asks any
producer of the group, whose `check` answers. Counterpart of TransactionMQProducer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import isawaitable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import BrokerNotExist, MQClientError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.hooks import EndTransactionContext, EndTransactionHook
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send_result import (
    SendResult,
    SendStatus,
    TransactionSendResult,
    TransactionStatus,
)
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue
from txrocketmq.remoting.protocol.transaction import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)

Execute = Callable[[Message, Any], "TransactionStatus | Awaitable[TransactionStatus]"]
"""Runs the local transaction of a message; its second argument is the caller's own."""
Check = Callable[[MessageExt], "TransactionStatus | Awaitable[TransactionStatus]"]
"""Says what became of the local transaction of a message."""

MAX_CHECKS: Final = 2_000
"""Questions that wait; more are dropped, since the broker asks again (checkRequestHoldMax)."""

_DECISIONS: Final = {
    TransactionStatus.COMMIT: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    TransactionStatus.ROLLBACK: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
    TransactionStatus.UNKNOWN: MessageSysFlag.TRANSACTION_NOT_TYPE,
}

log = Logger()


class TransactionProducer(Producer):
    """A producer that can also send in transactions; `check` answers the brokers' questions.

    Brokers may ask any member of a group about a transaction of another member. `check_concurrency`
    is the number of questions that are answered at the same time.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        check: Check,
        config: ProducerConfig | None = None,
        *,
        check_concurrency: int = 1,
    ) -> None:
        self._check = check
        self._concurrency = check_concurrency
        self._checks: deque[tuple[str, MessageExt, CheckTransactionStateRequestHeader]] = deque()
        self._checking = 0
        self._end_watching: Callable[[], None] = lambda: None
        super().__init__(instance, group, config)

    def _register(self) -> None:
        self._instance.register_producer(self._registered_group, self)

    async def start(self) -> None:
        """As that of a producer, and brokers that create topics hear of it as well.

        They may ask from now on, also about transactions of a producer that has ended, before this
        one has sent anything. Raises the same as that of a producer.
        """
        asked = self._instance.refresh(self.config.create_topic_key)
        with suppress(MQClientError, RemotingError):  # the client asks for it again later
            await asked
        self._end_watching = self._instance.watch(self.config.create_topic_key, lambda: None)
        await super().start()

    async def shutdown(self) -> None:
        """As that of a producer; questions that wait are left to the others of the group."""
        self._checks.clear()
        self._end_watching()
        await self._instance.unregister_producer(self._registered_group, self)
        await super().shutdown()

    async def send_in_transaction(
        self, message: Message, execute: Execute, argument: Any = None
    ) -> TransactionSendResult:
        """Sends a message, runs `execute(message, argument)`, and tells the broker the outcome.

        If `execute` raises an exception, the result contains it, and the broker asks later. If the
        message was not stored as safely as the brokers are configured to store it, `execute` is not
        called and the message is rolled back. Raises whatever a send raises; `execute` is not
        called then either.
        """
        message.properties.pop(names.DELAY, None)
        message.properties[names.TRAN_MSG] = "true"
        message.properties[names.PGROUP] = self._registered_group
        result = await self.send(message)
        status, error = TransactionStatus.ROLLBACK, None
        if result.status is SendStatus.SEND_OK:
            if result.transaction_id is not None:
                message.properties[names.TRANSACTION_ID] = result.transaction_id
            message.transaction_id = message.unique_key
            status, error = await _decided(execute, message, argument)
        await self._end(message, result, status)
        return TransactionSendResult(result, status, error)

    def check_transaction(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """Queues the question of the broker at this address; the client instance calls it."""
        if len(self._checks) >= MAX_CHECKS:
            log.warn(
                "a check is left out, since {count} transactions wait for theirs", count=MAX_CHECKS
            )
            return
        self._checks.append((address, message, header))
        self._go_on()

    def add_end_transaction_hook(self, hook: EndTransactionHook) -> None:
        """Adds a hook that is called with the end of each transaction."""
        self._hooks.end_transaction.append(hook)

    def _go_on(self) -> None:
        while self._checks and self._checking < self._concurrency:
            self._checking += 1
            answering = Deferred.fromCoroutine(self._answer(*self._checks.popleft()))
            answering.addErrback(lambda failure: log.failure("a check failed", failure))
            answering.addBoth(lambda _: self._answered())

    def _answered(self) -> None:
        self._checking -= 1
        self._instance.clock.later(0, self._go_on)

    async def _answer(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        status, _ = await _decided(self._check, message)
        msg_id = message.unique_key or message.msg_id
        told = EndTransactionRequestHeader(
            topic=header.topic,
            producer_group=self._registered_group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=_DECISIONS[status],
            from_transaction_check=True,
            msg_id=msg_id,
            transaction_id=header.transaction_id,
            bname=header.bname,
        )
        self._tell(address, told, message, status)

    async def _end(self, message: Message, result: SendResult, status: TransactionStatus) -> None:
        topic = self._instance.with_namespace(message.topic)
        queue = MessageQueue(topic, result.queue.broker_name, result.queue.queue_id)
        try:
            address = await self._instance.address_to_publish(queue)
        except (BrokerNotExist, MQClientError) as error:
            log.warn("the broker will ask about a transaction: {error}", error=error)
            return
        told = EndTransactionRequestHeader(
            topic=topic,
            producer_group=self._registered_group,
            tran_state_table_offset=result.queue_offset,
            commit_log_offset=decode_message_id(result.offset_msg_id).commit_log_offset,
            commit_or_rollback=_DECISIONS[status],
            msg_id=result.msg_id,
            transaction_id=result.transaction_id,
            bname=queue.broker_name,
        )
        self._tell(address, told, message, status)

    def _tell(
        self,
        address: str,
        told: EndTransactionRequestHeader,
        message: Message,
        status: TransactionStatus,
    ) -> None:
        context = EndTransactionContext(
            self.group, message, told.msg_id, address, status, told.transaction_id,
            told.from_transaction_check,
        )  # fmt: skip
        self._hooks.ended(context)
        self._instance.api.end_transaction(address, told)


async def _decided(
    function: Callable[..., Any], *arguments: Any
) -> tuple[TransactionStatus, Exception | None]:
    """Returns the function's decision, or UNKNOWN and an error if it raises or is invalid."""
    try:
        status = function(*arguments)
        if isawaitable(status) or isinstance(status, Deferred):
            status = await status
        if status is None:
            status = TransactionStatus.UNKNOWN
        if not isinstance(status, TransactionStatus):
            raise TypeError(  # noqa: TRY301 - reported as whatever else the function raises
                f"a transaction ends with a TransactionStatus, not with {status!r:.80}"
            )
    except Exception as error:  # noqa: BLE001 - whatever it is, the broker asks later
        log.failure("the function that decides a transaction failed; the broker will ask again")
        return TransactionStatus.UNKNOWN, error
    return status, None
