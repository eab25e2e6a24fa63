# SPDX-License-Identifier: Apache-2.0
"""Sending: messages, batches, replies, messages to be consumed again; recall of a delayed message.

Java: SendMessageProcessor, ReplyMessageProcessor, RecallMessageProcessor.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader, TopicRequestHeader

RETRY_RESPONSE_CODES: frozenset[int] = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)
"""Answers after which a producer tries another broker (DefaultMQProducer.retryResponseCodes)."""


@header("org.apache.rocketmq.remoting.protocol.header.SendMessageResponseHeader")
class SendMessageResponseHeader(Header):
    """Where the message is stored.

    `msg_id` is its offset message id; for a batch, the ids of all messages, separated by commas.
    """

    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ConsumerSendMsgBackRequestHeader")
class ConsumerSendMsgBackRequestHeader(RpcRequestHeader):
    """A consumer gives back a message that it could not consume, to get it again later.

    `offset` is the message's in the commit log, `group` the consumer's group.
    """

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ReplyMessageRequestHeader")
class ReplyMessageRequestHeader(TopicRequestHeader):
    """The broker hands a reply to the producer that sent the request.

    Hosts are "ip:port", times in ms.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Long


@header("org.apache.rocketmq.remoting.protocol.header.RecallMessageRequestHeader")
class RecallMessageRequestHeader(TopicRequestHeader):
    """Withdraws a delayed message before it is delivered."""

    producer_group: str | None = None
    topic: str
    recall_handle: str


@header("org.apache.rocketmq.remoting.protocol.header.RecallMessageResponseHeader")
class RecallMessageResponseHeader(Header):
    """The id of the message that was withdrawn."""

    msg_id: str


@header(
    "org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeader",
    letters="abcdefghijklmn",
)
class SendMessageRequestHeader(Header):
    """A message without its body, which is the body of the command. `born_timestamp` is in ms.

    The fields are in the order of SendMessageRequestHeaderV2, whose letters are their other names;
    the last letter is the name of the broker. A negative `queue_id` lets the broker choose.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int | None = None
    batch: bool | None = None
    bname: str | None = None
    lo: bool | None = None
    ns: str | None = None
    nsd: bool | None = None
    oway: bool | None = None


SEND_MESSAGE = define(
    RequestCode.SEND_MESSAGE,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    at_slave=ResponseCode.SERVICE_NOT_AVAILABLE,
)
SEND_MESSAGE_V2 = define(
    RequestCode.SEND_MESSAGE_V2,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    letters=True,
    at_slave=ResponseCode.SERVICE_NOT_AVAILABLE,
)
SEND_BATCH_MESSAGE = define(
    RequestCode.SEND_BATCH_MESSAGE,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    letters=True,
    at_slave=ResponseCode.SERVICE_NOT_AVAILABLE,
)
SENDS: Final = (SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE)
"""The calls that send; each can be a batch."""
CONSUMER_SEND_MSG_BACK = define(
    RequestCode.CONSUMER_SEND_MSG_BACK,
    ConsumerSendMsgBackRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
SEND_REPLY_MESSAGE = define(
    RequestCode.SEND_REPLY_MESSAGE,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    at_slave=ResponseCode.SERVICE_NOT_AVAILABLE,
)
SEND_REPLY_MESSAGE_V2 = define(
    RequestCode.SEND_REPLY_MESSAGE_V2,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    letters=True,
    at_slave=ResponseCode.SERVICE_NOT_AVAILABLE,
)
PUSH_REPLY_MESSAGE_TO_CLIENT = define(
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ReplyMessageRequestHeader, NoHeader
)
RECALL_MESSAGE = define(
    RequestCode.RECALL_MESSAGE,
    RecallMessageRequestHeader,
    RecallMessageResponseHeader,
    at_slave=ResponseCode.SLAVE_NOT_AVAILABLE,
)
