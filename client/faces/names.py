# SPDX-License-Identifier: Apache-2.0
"""The names that all faces of the client offer besides their classes."""

from __future__ import annotations

from txrocketmq.client.admin.accounts import Account, Policy
from txrocketmq.client.admin.plain_accounts import PlainAccount, PlainAccountList
from txrocketmq.client.admin.results import (
    BrokerInfo,
    GroupProgress,
    MessageTrack,
    QueueProgress,
    QueueStats,
    TopicStats,
    TrackType,
)
from txrocketmq.client.base.errors import (
    AccountNotFound,
    AdminRefused,
    BackpressureTimeout,
    BrokerNotExist,
    ClientClosed,
    GroupNotFound,
    GroupOffline,
    GroupOnline,
    MessageIllegal,
    MessageNotFound,
    MQBrokerError,
    MQClientError,
    NoNameServer,
    NoRoute,
    NotARequest,
    NotAssigned,
    NotKept,
    NotRunning,
    OffsetIllegal,
    OffsetsUnreadable,
    PartlyFailed,
    PopNotSupported,
    RequestTimedOut,
    SendFailed,
    TooMuchOnTheWay,
)
from txrocketmq.client.base.refusals import Refusal
from txrocketmq.client.consumer.config import ConsumeFrom, MessageModel
from txrocketmq.client.consumer.group.allocation import (
    by_config,
    by_machine_room,
    nearby_machine_room,
)
from txrocketmq.client.consumer.group.subscription import MessageSelector
from txrocketmq.client.consumer.listening.hooks import (
    ConsumeHook,
    ConsumeHookContext,
    ConsumeReturnType,
)
from txrocketmq.client.consumer.listening.listener import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
    orderly,
)
from txrocketmq.client.producer.hooks import EndTransactionContext, SendContext, SendHook
from txrocketmq.client.producer.new_message import new_message
from txrocketmq.client.producer.send.batches import split_batches
from txrocketmq.client.producer.send.selectors import by_hash, by_random
from txrocketmq.client.producer.send_result import (
    SendResult,
    SendStatus,
    TransactionSendResult,
    TransactionStatus,
)
from txrocketmq.remoting.errors import ConnectError, RemotingError, RequestTimeout
from txrocketmq.remoting.message.allocation import (
    averagely,
    averagely_by_circle,
    consistent_hash,
)
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionError

__all__ = [
    "Account",
    "AccountNotFound",
    "AdminRefused",
    "BackpressureTimeout",
    "BrokerInfo",
    "BrokerNotExist",
    "ClientClosed",
    "CompressionType",
    "ConnectError",
    "ConsumeContext",
    "ConsumeFrom",
    "ConsumeHook",
    "ConsumeHookContext",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "ConsumeReturnType",
    "ConsumeStatus",
    "EndTransactionContext",
    "GroupNotFound",
    "GroupOffline",
    "GroupOnline",
    "GroupProgress",
    "MQBrokerError",
    "MQClientError",
    "Message",
    "MessageExt",
    "MessageIllegal",
    "MessageModel",
    "MessageNotFound",
    "MessageQueue",
    "MessageSelector",
    "MessageTrack",
    "NoNameServer",
    "NoRoute",
    "NotARequest",
    "NotAssigned",
    "NotKept",
    "NotRunning",
    "OffsetIllegal",
    "OffsetsUnreadable",
    "PartlyFailed",
    "PlainAccount",
    "PlainAccountList",
    "Policy",
    "PopNotSupported",
    "QueueProgress",
    "QueueStats",
    "Refusal",
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
    "TopicStats",
    "TrackType",
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
