# SPDX-License-Identifier: Apache-2.0
"""What all faces of the client offer beside their classes: messages, results, errors, settings."""

from __future__ import annotations

from txrocketmq.client.consumer.allocation import (
    by_config,
    by_machine_room,
    nearby_machine_room,
)
from txrocketmq.client.consumer.config import ConsumeFrom, MessageModel
from txrocketmq.client.consumer.listener import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
    orderly,
)
from txrocketmq.client.consumer.subscription import MessageSelector
from txrocketmq.client.errors import (
    BrokerNotExist,
    ClientClosed,
    MessageIllegal,
    MQBrokerError,
    MQClientError,
    NoNameServer,
    NoRoute,
    NotARequest,
    NotAssigned,
    NotRunning,
    OffsetIllegal,
    OffsetsUnreadable,
    RequestTimedOut,
    SendFailed,
    TooMuchOnTheWay,
)
from txrocketmq.client.producer.batches import split_batches
from txrocketmq.client.producer.hooks import EndTransactionContext, SendContext, SendHook
from txrocketmq.client.producer.new_message import new_message
from txrocketmq.client.producer.selectors import by_hash, by_random
from txrocketmq.client.producer.send_result import (
    SendResult,
    SendStatus,
    TransactionSendResult,
    TransactionStatus,
)
from txrocketmq.remoting.errors import ConnectError, RemotingError, RequestTimeout
from txrocketmq.remoting.message.allocate import (
    averagely,
    averagely_by_circle,
    consistent_hash,
)
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionError

__all__ = [
    "BrokerNotExist",
    "ClientClosed",
    "CompressionType",
    "ConnectError",
    "ConsumeContext",
    "ConsumeFrom",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "ConsumeStatus",
    "EndTransactionContext",
    "MQBrokerError",
    "MQClientError",
    "Message",
    "MessageExt",
    "MessageIllegal",
    "MessageModel",
    "MessageQueue",
    "MessageSelector",
    "NoNameServer",
    "NoRoute",
    "NotARequest",
    "NotAssigned",
    "NotRunning",
    "OffsetIllegal",
    "OffsetsUnreadable",
    "RemotingError",
    "RequestTimedOut",
    "RequestTimeout",
    "SendContext",
    "SendFailed",
    "SendHook",
    "SendResult",
    "SendStatus",
    "SubscriptionError",
    "TooMuchOnTheWay",
    "TransactionSendResult",
    "TransactionStatus",
    "averagely",
    "averagely_by_circle",
    "by_config",
    "by_hash",
    "by_machine_room",
    "by_random",
    "consistent_hash",
    "nearby_machine_room",
    "new_message",
    "orderly",
    "split_batches",
]
