# SPDX-License-Identifier: Apache-2.0
"""The classes of apache/rocketmq-client-python (the package `rocketmq`), on top of this client.

A program that was written for it runs after one changed import:

    from txrocketmq.client.compat import Message, Producer, PushConsumer

No C++ library is needed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from txrocketmq.client import blocking
from txrocketmq.client.consumer.config import MessageModel as CoreMessageModel
from txrocketmq.client.consumer.listening.listener import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from txrocketmq.client.consumer.listening.listener import ConsumeStatus as CoreConsumeStatus
from txrocketmq.client.faces.compat_messages import Message, ReceivedMessage, as_text
from txrocketmq.client.producer.send.selectors import by_hash
from txrocketmq.client.producer.send_result import SendResult as CoreSendResult
from txrocketmq.client.producer.send_result import SendStatus as CoreSendStatus
from txrocketmq.client.producer.send_result import TransactionStatus as CoreTransactionStatus
from txrocketmq.remoting.arguments.arguments import checked_class
from txrocketmq.remoting.message import message as core

__all__ = [
    "ConsumeStatus",
    "Message",
    "MessageModel",
    "Producer",
    "ProducerException",
    "ProducerSendOnewayFailed",
    "ProducerSendOrderlyFailed",
    "ProducerSendSyncFailed",
    "ProducerStartFailed",
    "PushConsumer",
    "PushConsumerException",
    "PushConsumerStartFailed",
    "ReceivedMessage",
    "RocketMQException",
    "SendResult",
    "SendStatus",
    "TransactionMQProducer",
    "TransactionStatus",
]


class RocketMQException(Exception):
    """The base class of the errors here; the cause of most is an error of the client."""


class ProducerException(RocketMQException):
    """The base class of the errors of producers."""


class ProducerStartFailed(ProducerException):
    """A producer could not start."""


class ProducerSendSyncFailed(ProducerException):
    """A message, or a transaction's message, could not be sent."""


class ProducerSendOnewayFailed(ProducerException):
    """A message could not be sent one-way."""


class ProducerSendOrderlyFailed(ProducerException):
    """A message with a sharding key could not be sent."""


class PushConsumerException(RocketMQException):
    """The base class of the errors of consumers."""


class PushConsumerStartFailed(PushConsumerException):
    """A consumer could not start."""


class SendStatus(enum.IntEnum):
    """How safe a stored message is: OK means as safe as the broker is configured to make it."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class TransactionStatus(enum.IntEnum):
    """How a local transaction ended; UNKNOWN lets the broker ask again later."""

    COMMIT = 0
    ROLLBACK = 1
    UNKNOWN = 2


class ConsumeStatus(enum.IntEnum):
    """The answer of a function: whether it has consumed the message or wants it again later."""

    CONSUME_SUCCESS = 0
    RECONSUME_LATER = 1


class MessageModel(enum.IntEnum):
    """Whether the members of a group share the messages (CLUSTERING), or each receives all."""

    BROADCASTING = 0
    CLUSTERING = 1


class SendResult(NamedTuple):
    """The result of a send: how safe the message is, its id, and its offset in its queue."""

    status: SendStatus
    msg_id: str
    offset: int


_STATUSES = {
    CoreSendStatus.SEND_OK: SendStatus.OK,
    CoreSendStatus.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    CoreSendStatus.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    CoreSendStatus.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}
_TRANSACTIONS = {
    TransactionStatus.COMMIT: CoreTransactionStatus.COMMIT,
    TransactionStatus.ROLLBACK: CoreTransactionStatus.ROLLBACK,
    TransactionStatus.UNKNOWN: CoreTransactionStatus.UNKNOWN,
}


def _send_result(result: CoreSendResult) -> SendResult:
    return SendResult(_STATUSES[result.status], result.msg_id, result.queue_offset)


@checked_class
class _Client:
    """What producers and consumers have in common: settings, and the client that has them.

    `start` makes the client. From then on `set_group` has no effect, and the other settings raise
    RocketMQException.
    """

    def __init__(self, group_id: str | bytes) -> None:
        self._group = as_text(group_id)
        self._settings: dict[str, Any] = {}
        self._started: Any = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def set_group(self, group_name: str | bytes) -> None:
        """Sets the name of the group."""
        self._check_not_started("group")
        self._group = as_text(group_name)

    def set_instance_name(self, name: str | bytes) -> None:
        """Sets the instance name, which is the second part of the client's id."""
        self._set("instance_name", as_text(name))

    def set_name_server_address(self, addr: str | bytes) -> None:
        """Sets the addresses of name servers as "host:port", separated by semicolons."""
        self._set("namesrv_addr", as_text(addr))

    set_namesrv_addr = set_name_server_address

    def set_name_server_domain(self, domain: str | bytes) -> None:
        """Sets the host and port of an HTTP server that returns the addresses of name servers."""
        self._set("namesrv_domain", as_text(domain))

    def set_session_credentials(
        self, access_key: str | bytes, access_secret: str | bytes, channel: str | bytes = ""
    ) -> None:
        """Sets the account that signs requests; `channel` is that of a cloud and has no effect."""
        self._set("access_key", as_text(access_key))
        self._set("secret_key", as_text(access_secret))

    def start(self) -> None:
        """Starts it."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Stops the client; a second call does nothing."""
        if self._started is not None:
            self._started.shutdown()
            self._started = None

    def _set(self, name: str, value: Any) -> None:
        self._check_not_started(name)
        self._settings[name] = value

    def _check_not_started(self, name: str) -> None:
        if self._started is not None:
            raise RocketMQException(f"{name} can be set only before the start")


@checked_class
class Producer(_Client):
    """A producer; `timeout` is in milliseconds. `orderly` changes nothing, as in the original."""

    def __init__(
        self,
        group_id: str | bytes,
        orderly: bool = False,  # noqa: FBT001, FBT002 - the original's signature
        timeout: int | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        super().__init__(group_id)
        if timeout is not None:
            self.set_timeout(timeout)
        if compress_level is not None:
            self.set_compress_level(compress_level)
        if max_message_size is not None:
            self.set_max_message_size(max_message_size)

    def set_timeout(self, timeout: int) -> None:
        """Sets how long a send may take, in milliseconds."""
        self._set("send_timeout_ms", timeout)

    def set_compress_level(self, level: int) -> None:
        """Sets the level of compression, from 0 (none) to 9 (smallest)."""
        self._set("compression_level", level)

    def set_max_message_size(self, max_size: int) -> None:
        """Sets the size of the largest body that may be sent, in bytes."""
        self._set("max_message_bytes", max_size)

    def set_message_trace(self, message_trace: bool) -> None:  # noqa: FBT001 - as above
        """Sets whether messages leave a trace that can be queried later."""
        self._set("enable_trace", message_trace)

    def start(self) -> None:
        """Starts the producer. Raises ProducerStartFailed."""
        try:
            self._started = self._make().start()
        except Exception as error:
            raise ProducerStartFailed(str(error)) from error

    def send_sync(self, msg: Message) -> SendResult:
        """Sends a message and waits for the result. Raises ProducerSendSyncFailed."""
        return self._sent(ProducerSendSyncFailed, lambda own: own.send(msg.as_core()))

    def send_oneway(self, msg: Message) -> None:
        """Sends a message that may be lost, as nobody answers. Raises ProducerSendOnewayFailed."""
        try:
            self._own().send_oneway(msg.as_core())
        except RocketMQException:
            raise
        except Exception as error:
            raise ProducerSendOnewayFailed(str(error)) from error

    def send_orderly_with_sharding_key(self, msg: Message, sharding_key: str | bytes) -> SendResult:
        """Sends a message to the queue of its sharding key. Raises ProducerSendOrderlyFailed."""
        return self._sent(
            ProducerSendOrderlyFailed,
            lambda own: own.send(msg.as_core(), selector=by_hash, key=as_text(sharding_key)),
        )

    def _make(self) -> Any:
        return blocking.Producer(self._group, **self._settings)

    def _own(self) -> Any:
        if self._started is None:
            raise ProducerException("the producer is not started: call start()")
        return self._started

    def _sent(
        self, error_class: type[ProducerException], send: Callable[[Any], CoreSendResult]
    ) -> SendResult:
        own = self._own()
        try:
            return _send_result(send(own))
        except Exception as error:
            raise error_class(str(error)) from error


@checked_class
class TransactionMQProducer(Producer):
    """A producer of transactions; `checker_callback(message)` says how one of them has ended."""

    def __init__(
        self,
        group_id: str | bytes,
        checker_callback: Callable[[ReceivedMessage], TransactionStatus],
        user_args: Any = None,
        timeout: int | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        super().__init__(
            group_id, timeout=timeout, compress_level=compress_level,
            max_message_size=max_message_size,
        )  # fmt: skip
        self._checker = checker_callback

    def send_message_in_transaction(
        self,
        message: Message,
        local_execute: Callable[[ReceivedMessage, Any], TransactionStatus],
        user_args: Any = None,
    ) -> SendResult:
        """Sends a message and runs `local_execute(message, user_args)`, which ends the transaction.

        Raises ProducerSendSyncFailed.
        """

        def execute(sent: core.Message, argument: Any) -> CoreTransactionStatus:
            return _transaction_status(local_execute(ReceivedMessage(sent), argument))

        return self._sent(
            ProducerSendSyncFailed,
            lambda own: own.send_in_transaction(message.as_core(), execute, user_args).send_result,
        )

    def _make(self) -> Any:
        def check(message: core.MessageExt) -> CoreTransactionStatus:
            return _transaction_status(self._checker(ReceivedMessage(message)))

        return blocking.TransactionProducer(self._group, check, **self._settings)


def _transaction_status(status: Any) -> CoreTransactionStatus:
    if status not in _TRANSACTIONS:
        raise ValueError(f"a transaction ends with a TransactionStatus, not with {status!r:.80}")
    return _TRANSACTIONS[status]


@checked_class
class PushConsumer(_Client):
    """A consumer in a group; each message goes to the function that its topic was subscribed with.

    If it is `orderly`, the messages of a queue are consumed one after the other.
    """

    def __init__(
        self,
        group_id: str | bytes,
        orderly: bool = False,  # noqa: FBT001, FBT002 - the original's signature
        message_model: int | MessageModel = MessageModel.CLUSTERING,
    ) -> None:
        super().__init__(group_id)
        self._orderly = orderly
        self.set_message_model(message_model)
        self._callbacks: dict[str, Callable[[ReceivedMessage], ConsumeStatus]] = {}
        self._expressions: dict[str, str] = {}

    def set_message_model(self, model: int | MessageModel) -> None:
        """Sets whether the members of the group share the messages, or each receives all."""
        try:
            name = MessageModel(model).name
        except ValueError:
            raise PushConsumerException(f"{model!r:.80} is not a MessageModel") from None
        self._set("message_model", CoreMessageModel[name])

    def set_thread_count(self, thread_count: int) -> None:
        """Sets how many calls of the functions may run at the same time."""
        self._set("consume_concurrency", thread_count)

    def set_message_batch_max_size(self, max_size: int) -> None:
        """Sets how many messages a thread takes from a queue at once."""
        self._set("consume_message_batch_max_size", max_size)

    def subscribe(
        self,
        topic: str | bytes,
        callback: Callable[[ReceivedMessage], ConsumeStatus],
        expression: str | bytes = "*",
    ) -> None:
        """Passes the messages of a topic, or those with the tags of the expression, to a function.

        It has to be called before the start; otherwise it raises PushConsumerException.
        """
        if self._started is not None:
            raise PushConsumerException("subscribe before the start")
        self._callbacks[as_text(topic)] = callback
        self._expressions[as_text(topic)] = as_text(expression)

    def start(self) -> None:
        """Starts consuming as a member of the group. Raises PushConsumerStartFailed."""
        try:
            self._started = blocking.PushConsumer(
                self._group,
                self._expressions,
                self._consume_in_order if self._orderly else self._consume,
                orderly=self._orderly,
                **self._settings,
            ).start()
        except Exception as error:
            raise PushConsumerStartFailed(str(error)) from error

    def _consume(
        self, messages: list[core.MessageExt], context: ConsumeContext
    ) -> CoreConsumeStatus:
        for index, message in enumerate(messages):
            context.ack_index = index - 1
            if not self._succeeds(message):
                return (
                    CoreConsumeStatus.CONSUME_SUCCESS
                    if index
                    else (CoreConsumeStatus.RECONSUME_LATER)
                )
            context.ack_index = index
        return CoreConsumeStatus.CONSUME_SUCCESS

    def _consume_in_order(
        self, messages: list[core.MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        if all(self._succeeds(message) for message in messages):
            return ConsumeOrderlyStatus.SUCCESS
        return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT

    def _succeeds(self, message: core.MessageExt) -> bool:
        status = self._callbacks[message.topic](ReceivedMessage(message))
        if status not in (ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER):
            raise ValueError(f"consuming ends with a ConsumeStatus, not with {status!r:.80}")
        return bool(status == ConsumeStatus.CONSUME_SUCCESS)


def __dir__() -> list[str]:
    """What is public: for completion, and for those who look around."""
    return sorted(__all__)
