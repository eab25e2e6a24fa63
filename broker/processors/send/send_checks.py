# SPDX-License-Identifier: Apache-2.0
"""Decides whether a message may be sent to its topic and queue, and what a refusal says.

Java: AbstractSendMessageProcessor.msgCheck, SendMessageProcessor.preSend, handlePutMessageResult.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.record_limits import check_topic
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.message_store import MessageStore, PutStatus
from txrocketmq.broker.tables.attributes import why_nothing_is_taken
from txrocketmq.broker.tables.topic import Topics, validate_topic
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import (
    MessageSysFlag,
    TopicSysFlag,
    is_writable,
    perm_to_string,
)
from txrocketmq.remoting.message.message import MAX_TOPIC_BYTES_V1
from txrocketmq.remoting.message.topics import FORBIDDEN_TO_SEND, RETRY_PREFIX
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

_ILLEGAL: Final = (
    ResponseCode.MESSAGE_ILLEGAL,
    (
        "the message is illegal, maybe msg body or properties length not matched. msg body"
        " length limit {limit}B, msg properties length limit 32KB."
    ),
)
_REFUSED: Final = {
    PutStatus.MESSAGE_ILLEGAL: _ILLEGAL,
    PutStatus.PROPERTIES_SIZE_EXCEEDED: _ILLEGAL,
    PutStatus.SERVICE_NOT_AVAILABLE: (
        ResponseCode.SERVICE_NOT_AVAILABLE,
        (
            "service not available now. It may be caused by one of the following reasons: the"
            " broker's disk is full, messages are put to the slave, message store has been shut"
            " down, etc. Here: {why}"
        ),
    ),
    PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH: (
        ResponseCode.SYSTEM_ERROR,
        "in-sync replicas not enough",
    ),
    PutStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED: (
        ResponseCode.SYSTEM_ERROR,
        (
            "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]broker config enableLmq and enableMultiDispatch, lmq"
            " consumeQueue num exceed maxLmqConsumeQueueNum config num, default limit 2w."
        ),
    ),
    PutStatus.WHEEL_TIMER_NOT_ENABLE: (
        ResponseCode.SYSTEM_ERROR,
        "accurate timer message is not enabled, timerWheelEnable is false",
    ),
    PutStatus.WHEEL_TIMER_MSG_ILLEGAL: (
        ResponseCode.MESSAGE_ILLEGAL,
        (
            "timer message illegal, the delay time should not be bigger than the max delay"
            " {max_delay}ms; or if set del msg, the delay time should be bigger than the current"
            " time"
        ),
    ),
    PutStatus.WHEEL_TIMER_FLOW_CONTROL: (
        ResponseCode.SYSTEM_ERROR,
        (
            "timer message is under flow control, max num limit is {congested} or the current value"
            " is greater than {congest} and less than {congested}, trigger random flow control"
        ),
    ),
}


class SendChecks:
    """The checks of a send, of which most depend on its header alone."""

    def __init__(self, config: BrokerConfig, topics: Topics, store: MessageStore) -> None:
        self._config = config
        self.topics = topics
        """The topics. While their version and the broker's permission are unchanged, `topic_of`
        finds the same topic again for the same header."""
        self._store = store

    def is_serving(self, now_ms: int) -> bool:
        """Whether sends are accepted yet."""
        return now_ms >= self._config.start_accept_send_request_time_stamp

    def check_time(self, now_ms: int) -> None:
        """Raises ResponseError while sends are not accepted yet."""
        if not self.is_serving(now_ms):
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "broker unable to service, until"
                f" {self._config.start_accept_send_request_time_stamp}",
            )

    def topic_of(self, header: SendMessageRequestHeader, peer: Peer) -> TopicConfig:
        """Returns the topic of a send, drafted on demand, or raises ResponseError (msgCheck)."""
        name = header.topic
        if not is_writable(self._config.broker_permission) and self.topics.is_order_topic(name):
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self._config.broker_ip1}] sending message is forbidden",
            )
        wrong = validate_topic(name)
        if wrong is not None:
            raise ResponseError(ResponseCode.INVALID_PARAMETER, wrong)
        if name in FORBIDDEN_TO_SEND:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden."
            )
        topic = self.topics.get(name) or self._draft(header)
        why = why_nothing_is_taken(topic.attributes) if topic.attributes else ""
        if why:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL, f"the topic {name} takes no messages here: {why}"
            )
        if header.queue_id >= max(topic.read_queue_nums, topic.write_queue_nums):
            # The code is that of 4.9: after SYSTEM_ERROR, clients try again that have an older
            # route, or that expect a topic just created for them to have more queues. After
            # INVALID_PARAMETER, the code of 5.4, they give up.
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"request queueId[{header.queue_id}] is illegal, {topic_text(topic)}"
                f" Producer: {peer.remote_address}",
            )
        return topic

    def _draft(self, header: SendMessageRequestHeader) -> TopicConfig:
        retry = header.topic.startswith(RETRY_PREFIX)
        sys_flag = 0
        if header.unit_mode:
            sys_flag = TopicSysFlag.UNIT_SUB if retry else TopicSysFlag.UNIT
        topic = self.topics.draft_in_send(
            header.topic, header.default_topic, header.default_topic_queue_nums, sys_flag
        )
        if topic is None and retry:
            topic = self.topics.draft_in_send_back(header.topic, 1, sys_flag=sys_flag)
        if topic is None:
            why = self.topics.why_full(header.topic)
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please!"
                + (f" Here: {why}" if why else FAQ),
            )
        return topic

    def is_storable(self, topic: str) -> bool:
        """Whether messages can be stored under this name."""
        try:
            check_topic(topic)
        except NotTaken:
            return False
        return True

    def check_batch(self, batch: InnerMessage) -> None:
        """Raises ResponseError or NotTaken for a batch that is not valid."""
        topic = batch.topic
        if len(topic) > MAX_TOPIC_BYTES_V1:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}"
            )
        if topic.startswith(RETRY_PREFIX):
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"batch request does not support retry group {topic}",
            )
        if not 0 < len(batch.body) <= self._store.config.max_message_size:
            raise NotTaken(PutStatus.MESSAGE_ILLEGAL)

    def refusal_of(self, status: PutStatus) -> ResponseError:
        """Makes the error answer for a message that was not stored."""
        code, remark = _REFUSED.get(status, (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR"))
        config = self._store.config
        return ResponseError(
            code,
            remark.format(
                limit=config.max_message_size,
                why=self._store.why_not_writeable(),
                max_delay=config.timer_max_delay_sec * 1000,
                congest=config.timer_congest_num_each_slot,
                congested=config.timer_congest_num_each_slot * 2,
            ),
        )


def sys_flag_of(header: SendMessageRequestHeader, topic: TopicConfig) -> int:
    """The sys flag of a message, with what its topic adds."""
    if topic.topic_filter_type == "MULTI_TAG":
        return header.sys_flag | MessageSysFlag.MULTI_TAGS
    return header.sys_flag


def topic_text(topic: TopicConfig) -> str:
    """Formats a topic as in the original's remarks (TopicConfig.toString)."""
    attributes = ", ".join(f"{name}={value}" for name, value in topic.attributes.items())
    return (
        f"TopicConfig [topicName={topic.topic_name}, readQueueNums={topic.read_queue_nums},"
        f" writeQueueNums={topic.write_queue_nums}, perm={perm_to_string(topic.perm)},"
        f" topicFilterType={topic.topic_filter_type}, topicSysFlag={topic.topic_sys_flag},"
        f" order={'true' if topic.order else 'false'}, attributes={{{attributes}}}]"
    )
