# SPDX-License-Identifier: Apache-2.0
# Made by docs/generate_client_stubs.py of the classes of the core: do not edit.
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from txrocketmq.client.consumer.config import ConsumeFrom
from txrocketmq.client.consumer.config import MessageModel
from txrocketmq.client.consumer.listener import Listener
from txrocketmq.client.consumer.listener import OrderlyListener
from txrocketmq.client.consumer.lite_pull import WatchListener
from txrocketmq.client.consumer.rebalance import QueuesListener
from txrocketmq.client.consumer.subscription import Expression
from txrocketmq.client.producer.hooks import CheckForbidden
from txrocketmq.client.producer.hooks import EndTransactionHook
from txrocketmq.client.producer.hooks import SendHook
from txrocketmq.client.producer.selectors import Selector
from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.client.producer.send_result import TransactionSendResult
from txrocketmq.client.producer.transaction import Check
from txrocketmq.client.producer.transaction import Execute
from txrocketmq.remoting.message.allocate import Strategy
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.message import MessageQueue
from typing import Any
from typing import Self
import asyncio

from txrocketmq.client.names import (
    BrokerNotExist as BrokerNotExist,
    ClientClosed as ClientClosed,
    CompressionType as CompressionType,
    ConnectError as ConnectError,
    ConsumeContext as ConsumeContext,
    ConsumeFrom as ConsumeFrom,
    ConsumeOrderlyContext as ConsumeOrderlyContext,
    ConsumeOrderlyStatus as ConsumeOrderlyStatus,
    ConsumeStatus as ConsumeStatus,
    EndTransactionContext as EndTransactionContext,
    MQBrokerError as MQBrokerError,
    MQClientError as MQClientError,
    Message as Message,
    MessageExt as MessageExt,
    MessageIllegal as MessageIllegal,
    MessageModel as MessageModel,
    MessageQueue as MessageQueue,
    MessageSelector as MessageSelector,
    NoNameServer as NoNameServer,
    NoRoute as NoRoute,
    NotARequest as NotARequest,
    NotAssigned as NotAssigned,
    NotRunning as NotRunning,
    OffsetIllegal as OffsetIllegal,
    OffsetsUnreadable as OffsetsUnreadable,
    RemotingError as RemotingError,
    RequestTimedOut as RequestTimedOut,
    RequestTimeout as RequestTimeout,
    SendContext as SendContext,
    SendFailed as SendFailed,
    SendHook as SendHook,
    SendResult as SendResult,
    SendStatus as SendStatus,
    SubscriptionError as SubscriptionError,
    TooMuchOnTheWay as TooMuchOnTheWay,
    TransactionSendResult as TransactionSendResult,
    TransactionStatus as TransactionStatus,
    averagely as averagely,
    averagely_by_circle as averagely_by_circle,
    by_config as by_config,
    by_hash as by_hash,
    by_machine_room as by_machine_room,
    by_random as by_random,
    consistent_hash as consistent_hash,
    nearby_machine_room as nearby_machine_room,
    new_message as new_message,
    orderly as orderly,
    split_batches as split_batches,
)

class LitePullConsumer:
    """Gives messages to a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` gives topics, each with an expression, as `subscribe` does one after the other.

    Raises MessageIllegal for names that cannot be, and SubscriptionError.
    """
    def __init__(
        self,
        group: str,
        subscriptions: Mapping[str, Expression] | None = ...,
        *,
        strategy: Strategy = ...,
        message_model: MessageModel = ...,
        consume_from: ConsumeFrom = ...,
        consume_timestamp_ms: int | None = ...,
        auto_commit: bool = ...,
        auto_commit_interval_ms: int = ...,
        poll_timeout_ms: int = ...,
        pull_batch_size: int = ...,
        pull_threshold_for_all: int = ...,
        pull_threshold_for_queue: int = ...,
        pull_threshold_size_for_queue: int = ...,
        consume_max_span: int = ...,
        broker_suspend_max_ms: int = ...,
        timeout_when_suspended_ms: int = ...,
        topic_metadata_check_interval_ms: int = ...,
        rebalance_interval_ms: int = ...,
        persist_interval_ms: int = ...,
        local_offset_store_dir: Path | None = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    async def start(self) -> Self: ...
    async def shutdown(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> MessageExt: ...
    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Has these queues and no others, whoever else reads them.

        Raises ValueError for no queues, and for a consumer that has subscribed.
        """
    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that are its own now."""
    async def commit(self, offsets: Mapping[MessageQueue, int] | None = ...) -> None:
        """Tells the brokers how far it has come: what `poll` has given, or what is said here.

        Returns when they know. Raises MQBrokerError, BrokerNotExist and errors of the connection.
        """
    async def committed(self, queue: MessageQueue) -> int | None:
        """What was committed of a queue, here or by the group; None when nothing was."""
    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic, as the name server has them now. Raises NoRoute."""
    def filter_assigned(self, topic: str, expression: Expression) -> None:
        """What is wanted of assigned queues of a topic (setSubExpressionForAssign).

        Raises ValueError once the consumer has started, and for one that has subscribed.
        """
    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message of a queue that was stored then or later."""
    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Pulls these queues no more; what was pulled is still given by `poll`."""
    async def poll(self, timeout_ms: int | None = ...) -> list[MessageExt]:
        """Messages of one queue as they were pulled, or none when time is over.

        Raises NotRunning.
        """
    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Pulls these queues again."""
    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Goes on at an offset of a queue; what was pulled of it is dropped.

        Raises NotAssigned, OffsetIllegal, MQBrokerError, BrokerNotExist, errors of the connection.
        """
    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Goes on at the first message that a queue has."""
    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Goes on after the last message that a queue has."""
    async def seek_to_time(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Goes on at the first message of a queue that was stored then or later."""
    async def subscribe(self, topic: str, expression: Expression = ..., queues_changed: QueuesListener | None = ...) -> None:
        """Shares the queues of a topic; `queues_changed` hears whenever its own ones change.

        Raises ValueError for a consumer that was assigned queues.
        """
    async def unsubscribe(self, topic: str) -> None:
        """Shares the queues of a topic no more."""
    async def watch_queues(self, topic: str, listener: WatchListener) -> None:
        """Lets `listener` know when the queues of a topic change (TopicMessageQueueChangeListener).

        It is looked for every 30 s. A second listener of a topic takes the place of the first.
        """

class Producer:
    """A producer of a group.

    Every send raises MessageIllegal for what no broker would take, NoRoute and NoNameServer when
    there is nowhere to send to, MQBrokerError for an answer that no other broker would give
    differently, and SendFailed when all attempts failed.
    """
    def __init__(
        self,
        group: str,
        *,
        send_timeout_ms: int = ...,
        send_max_timeout_per_request_ms: int = ...,
        retry_times: int = ...,
        retry_another_broker_when_not_store_ok: bool = ...,
        retry_response_codes: frozenset[int] = ...,
        max_message_bytes: int = ...,
        compress_body_over_bytes: int = ...,
        compression: CompressionType = ...,
        compression_level: int = ...,
        create_topic_key: str = ...,
        default_topic_queue_nums: int = ...,
        topics: tuple[str, ...] = ...,
        send_latency_fault_enable: bool = ...,
        start_detector_enable: bool = ...,
        detect_timeout_ms: int = ...,
        detect_interval_ms: int = ...,
        backpressure_enable: bool = ...,
        backpressure_send_num: int = ...,
        backpressure_send_size: int = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    async def start(self) -> Self: ...
    async def shutdown(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    def add_check_forbidden_hook(self, hook: CheckForbidden) -> None:
        """From now on the hook may keep messages from being sent."""
    def add_send_hook(self, hook: SendHook) -> None:
        """From now on the hook sees each attempt to send."""
    @property
    def group(self) -> str:
        """The name of its group."""
    async def publish_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic that messages can be sent to. Raises NoRoute and NoNameServer."""
    async def recall(self, topic: str, recall_handle: str) -> str:
        """Takes back a message with a time of delivery that has not come; the message's id.

        The handle is the one of its SendResult, which 5.x brokers give. Raises MessageIllegal for
        what is no handle, and MQBrokerError when the broker does not take the message back.
        """
    async def reply(self, request: Message, body: bytes, *, timeout_ms: int | None = ...) -> SendResult:
        """Answers a message that was sent with `request`.

        Raises NotARequest for any other message, and what a send raises.
        """
    async def request(self, message: Message, *, timeout_ms: int, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> MessageExt:
        """Sends a message and waits for the reply of whoever consumes it.

        Raises RequestTimedOut when none comes in time, and what a send raises.
        """
    async def send(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> SendResult:
        """Sends a message, to this queue, to the one that a selector chooses, or to the next.

        The message is given a unique key if it has none. With a queue or a selector there is one
        attempt, whose error is raised as it is. Raises what the class says.
        """
    async def send_async(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> asyncio.Future[SendResult]:
        """Begins to send a message; what it gives is done when a broker has answered.

        With `backpressure_enable` it waits while too much is on its way, and raises TooMuchOnTheWay
        when that takes longer than the time of the send. What the class says is raised by what it
        gives.
        """
    async def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = ..., timeout_ms: int | None = ...) -> SendResult:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` makes batches of any number of messages. Raises what the class says.
        """
    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> None:
        """Sends a message once, without waiting for an answer: it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """

class PushConsumer:
    """Consumes as a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` gives the topics, each with an expression: tags separated by `||`, or `*`, or a
    MessageSelector. All members of a group have the same subscriptions and share queues by the same
    strategy. A listener that `listener.orderly` marks gets the messages of a queue in order; so
    does any other with `orderly=True`. `queues_changed` hears of each change of its queues.

    Raises MessageIllegal for names that cannot be, and SubscriptionError.
    """
    def __init__(
        self,
        group: str,
        subscriptions: Mapping[str, Expression],
        listener: Listener | OrderlyListener,
        *,
        strategy: Strategy = ...,
        orderly: bool | None = ...,
        queues_changed: QueuesListener | None = ...,
        message_model: MessageModel = ...,
        consume_from: ConsumeFrom = ...,
        consume_timestamp_ms: int | None = ...,
        consume_concurrency: int = ...,
        consume_in_threads: bool = ...,
        consume_message_batch_max_size: int = ...,
        pull_batch_size: int = ...,
        pull_batch_bytes: int = ...,
        pull_interval_ms: int = ...,
        pull_threshold_for_queue: int = ...,
        pull_threshold_size_for_queue: int = ...,
        pull_threshold_for_topic: int = ...,
        pull_threshold_size_for_topic: int = ...,
        consume_concurrently_max_span: int = ...,
        post_subscription_when_pull: bool = ...,
        max_reconsume_times: int = ...,
        suspend_current_queue_ms: int = ...,
        consume_timeout_ms: int = ...,
        rebalance_interval_ms: int = ...,
        persist_interval_ms: int = ...,
        await_termination_ms: int = ...,
        local_offset_store_dir: Path | None = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    async def start(self) -> Self: ...
    async def shutdown(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are this member's own now."""
    def resume(self) -> None:
        """Pulls again, and looks for its queues."""
    async def subscribe(self, topic: str, expression: Expression = ...) -> None:
        """Subscribes to a topic as well, or otherwise; the brokers hear of it at once."""
    def suspend(self) -> None:
        """Pulls no more until `resume`; what was pulled is consumed."""
    async def unsubscribe(self, topic: str) -> None:
        """Subscribes to a topic no more."""

class TransactionProducer:
    """A producer of a group that also sends in transactions; `check` answers for all of them.

    The members of a group must be able to answer for each other's transactions. `check_concurrency`
    is how many questions are answered at the same time.
    """
    def __init__(
        self,
        group: str,
        check: Check,
        *,
        check_concurrency: int = ...,
        send_timeout_ms: int = ...,
        send_max_timeout_per_request_ms: int = ...,
        retry_times: int = ...,
        retry_another_broker_when_not_store_ok: bool = ...,
        retry_response_codes: frozenset[int] = ...,
        max_message_bytes: int = ...,
        compress_body_over_bytes: int = ...,
        compression: CompressionType = ...,
        compression_level: int = ...,
        create_topic_key: str = ...,
        default_topic_queue_nums: int = ...,
        topics: tuple[str, ...] = ...,
        send_latency_fault_enable: bool = ...,
        start_detector_enable: bool = ...,
        detect_timeout_ms: int = ...,
        detect_interval_ms: int = ...,
        backpressure_enable: bool = ...,
        backpressure_send_num: int = ...,
        backpressure_send_size: int = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    async def start(self) -> Self: ...
    async def shutdown(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    def add_check_forbidden_hook(self, hook: CheckForbidden) -> None:
        """From now on the hook may keep messages from being sent."""
    def add_end_transaction_hook(self, hook: EndTransactionHook) -> None:
        """From now on the hook sees how transactions end."""
    def add_send_hook(self, hook: SendHook) -> None:
        """From now on the hook sees each attempt to send."""
    @property
    def group(self) -> str:
        """The name of its group."""
    async def publish_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic that messages can be sent to. Raises NoRoute and NoNameServer."""
    async def recall(self, topic: str, recall_handle: str) -> str:
        """Takes back a message with a time of delivery that has not come; the message's id.

        The handle is the one of its SendResult, which 5.x brokers give. Raises MessageIllegal for
        what is no handle, and MQBrokerError when the broker does not take the message back.
        """
    async def reply(self, request: Message, body: bytes, *, timeout_ms: int | None = ...) -> SendResult:
        """Answers a message that was sent with `request`.

        Raises NotARequest for any other message, and what a send raises.
        """
    async def request(self, message: Message, *, timeout_ms: int, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> MessageExt:
        """Sends a message and waits for the reply of whoever consumes it.

        Raises RequestTimedOut when none comes in time, and what a send raises.
        """
    async def send(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> SendResult:
        """Sends a message, to this queue, to the one that a selector chooses, or to the next.

        The message is given a unique key if it has none. With a queue or a selector there is one
        attempt, whose error is raised as it is. Raises what the class says.
        """
    async def send_async(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> asyncio.Future[SendResult]:
        """Begins to send a message; what it gives is done when a broker has answered.

        With `backpressure_enable` it waits while too much is on its way, and raises TooMuchOnTheWay
        when that takes longer than the time of the send. What the class says is raised by what it
        gives.
        """
    async def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = ..., timeout_ms: int | None = ...) -> SendResult:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` makes batches of any number of messages. Raises what the class says.
        """
    async def send_in_transaction(self, message: Message, execute: Execute, argument: Any = ...) -> TransactionSendResult:
        """Sends a message, runs `execute(message, argument)`, and tells the broker how that ended.

        What `execute` raises is in the result, and the broker asks later. When the message was not
        stored as safely as brokers are configured to, `execute` is not called and the message is
        rolled back. Raises what a send raises; then nothing was executed either.
        """
    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> None:
        """Sends a message once, without waiting for an answer: it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """

def aio(core: type) -> type: ...

__all__ = ['BrokerNotExist', 'ClientClosed', 'CompressionType', 'ConnectError', 'ConsumeContext', 'ConsumeFrom', 'ConsumeOrderlyContext', 'ConsumeOrderlyStatus', 'ConsumeStatus', 'EndTransactionContext', 'MQBrokerError', 'MQClientError', 'Message', 'MessageExt', 'MessageIllegal', 'MessageModel', 'MessageQueue', 'MessageSelector', 'NoNameServer', 'NoRoute', 'NotARequest', 'NotAssigned', 'NotRunning', 'OffsetIllegal', 'OffsetsUnreadable', 'RemotingError', 'RequestTimedOut', 'RequestTimeout', 'SendContext', 'SendFailed', 'SendHook', 'SendResult', 'SendStatus', 'SubscriptionError', 'TooMuchOnTheWay', 'TransactionSendResult', 'TransactionStatus', 'averagely', 'averagely_by_circle', 'by_config', 'by_hash', 'by_machine_room', 'by_random', 'consistent_hash', 'nearby_machine_room', 'new_message', 'orderly', 'split_batches', 'LitePullConsumer', 'Producer', 'PushConsumer', 'TransactionProducer']
