# SPDX-License-Identifier: Apache-2.0
"""POP: messages that are delivered for a limited time and acknowledged one by one (5.x).

These codes do not fit into the binary command header, so they always travel with a JSON one. Java:
PopMessageProcessor, AckMessageProcessor, ChangeInvisibleTimeProcessor, NotificationProcessor.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header
from txrocketmq.remoting.protocol.base import TopicRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader")
class PopMessageRequestHeader(TopicRequestHeader):
    """Asks for messages and hides them from other consumers for `invisible_time` ms.

    `queue_id` -1 stands for any queue. If there is no message, the broker holds the request for
    `poll_time` ms. `exp` is the expression to filter by, and `exp_type` its type.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    max_msg_nums: Int
    invisible_time: Long
    poll_time: Long
    born_time: Long
    init_mode: Int
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.PopMessageResponseHeader")
class PopMessageResponseHeader(Header):
    """What the client needs to make the handles of the messages. Times are in ms.

    The offsets are in texts that `remoting.message.pop` makes (ExtraInfoUtil); `rest_num` is how
    many messages are left.
    """

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.PeekMessageRequestHeader")
class PeekMessageRequestHeader(TopicRequestHeader):
    """Asks for messages without hiding them from other consumers."""

    topic: str
    queue_id: Int
    max_msg_nums: Int
    consumer_group: str


@header("org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader")
class AckMessageRequestHeader(TopicRequestHeader):
    """Acknowledges a message that was consumed; `extra_info` is its handle.

    `lite_topic` names a lite topic (5.5).
    """

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    lite_topic: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ChangeInvisibleTimeRequestHeader")
class ChangeInvisibleTimeRequestHeader(TopicRequestHeader):
    """Hides a message for `invisible_time` ms from now.

    The handle in `extra_info` becomes invalid; the answer has what makes a new one. With `suspend`
    (5.5), the delivery that follows is not counted as an attempt. `lite_topic` names a lite topic.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    invisible_time: Long
    lite_topic: str | None = None
    suspend: bool | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ChangeInvisibleTimeResponseHeader")
class ChangeInvisibleTimeResponseHeader(Header):
    """What the client needs to make the new handle of the message. Times are in ms."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int


@header("org.apache.rocketmq.remoting.protocol.header.NotificationRequestHeader")
class NotificationRequestHeader(TopicRequestHeader):
    """Asks whether there are messages to pop; if not, the broker waits for `poll_time` ms."""

    consumer_group: str
    topic: str
    queue_id: Int
    poll_time: Long
    born_time: Long
    order: bool = False
    attempt_id: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.NotificationResponseHeader")
class NotificationResponseHeader(Header):
    """Whether there are messages; `polling_full` means that too many requests wait already."""

    has_msg: bool
    polling_full: bool = False


@header("org.apache.rocketmq.remoting.protocol.header.PollingInfoRequestHeader")
class PollingInfoRequestHeader(TopicRequestHeader):
    """Asks how many requests of a group wait for messages of a queue."""

    consumer_group: str
    topic: str
    queue_id: Int


@header("org.apache.rocketmq.remoting.protocol.header.PollingInfoResponseHeader")
class PollingInfoResponseHeader(Header):
    """The number of waiting requests."""

    polling_num: Int


POP_MESSAGE = define(
    RequestCode.POP_MESSAGE,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
PEEK_MESSAGE = define(RequestCode.PEEK_MESSAGE, PeekMessageRequestHeader, PopMessageResponseHeader)
ACK_MESSAGE = define(
    RequestCode.ACK_MESSAGE, AckMessageRequestHeader, NoHeader, at_slave=ResponseCode.SYSTEM_ERROR
)
BATCH_ACK_MESSAGE = define(
    RequestCode.BATCH_ACK_MESSAGE, NoHeader, NoHeader, at_slave=ResponseCode.SYSTEM_ERROR
)
CHANGE_MESSAGE_INVISIBLETIME = define(
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
NOTIFICATION = define(
    RequestCode.NOTIFICATION, NotificationRequestHeader, NotificationResponseHeader
)
POLLING_INFO = define(RequestCode.POLLING_INFO, PollingInfoRequestHeader, PollingInfoResponseHeader)
POP_ROLLBACK = define(RequestCode.POP_ROLLBACK, NoHeader, NoHeader)
