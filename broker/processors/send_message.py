# SPDX-License-Identifier: Apache-2.0
"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE: every kind of send, one at a time.

What is checked, in the original's order: broker and topic permission, topic name, forbidden topics,
topic existence with creation on demand, queue id, start time. What is added: MSG_REGION, TRACE_ON,
CLUSTER, UNIQ_KEY where there is none. %RETRY% topics may turn into %DLQ%, a delay level leads over
the schedule topic. Codes: 0, 1, 2, 10, 12, 13, 14, 16, 17, 26, 29. Not done: transactions (refused
with 16, as with rejectTransactionMessage), timer messages (refused with 1, as with
timerWheelEnable=false), inner batches, static topics. Plain sends take `send_many.py`.

Java: SendMessageProcessor, AbstractSendMessageProcessor.msgCheck, HookUtils.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.inner_message import TIMER_PROPERTIES, InnerMessage
from txrocketmq.broker.queue_locks import QueueLocks
from txrocketmq.broker.schedule import DelayLevels
from txrocketmq.broker.stats import BrokerStats
from txrocketmq.broker.store.message_store import Appended, MessageStore, PutStatus
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import Topics, validate_topic
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import (
    MessageSysFlag,
    TopicSysFlag,
    is_writable,
    perm_to_string,
)
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.message.message import MessageDecodeError, decode_batch
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES, decode_properties
from txrocketmq.remoting.message.topics import DLQ_PREFIX, FORBIDDEN_TO_SEND, RETRY_PREFIX
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader, SendMessageResponseHeader

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
_MAX_TOPIC_BYTES = 127
MAX_BATCH = 100_000
"""Messages in a batch."""

_ILLEGAL = (
    ResponseCode.MESSAGE_ILLEGAL,
    (
        "the message is illegal, maybe msg body or properties length not matched. msg body"
        " length limit {limit}B, msg properties length limit 32KB."
    ),
)
_REFUSED = {
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
    PutStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
}


class SendMessageProcessor:
    """Serves sends; `store_host` is the broker's advertised address, packed as in records."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        locks: QueueLocks,
        delay_levels: DelayLevels,
        store: MessageStore,
        stats: BrokerStats,
        store_host: bytes,
        unique_keys: UniqueKeys,
    ) -> None:
        self.config = config
        self.topics = topics
        self.store = store
        self.stats = stats
        self.store_host = store_host
        self._groups = groups
        self._locks = locks
        self._delay_levels = delay_levels
        self._unique_keys = unique_keys
        self.ext_fields = {
            names.MSG_REGION: config.region_id,
            names.TRACE_ON: "true" if config.trace_on else "false",
        }

    @serves(send.SEND_MESSAGE, send.SEND_MESSAGE_V2, send.SEND_BATCH_MESSAGE)
    def send(
        self, request: Request[SendMessageRequestHeader]
    ) -> Reply[SendMessageResponseHeader] | PendingReply:
        """Any send; a batch is told by its code or by its header."""
        header = request.header
        topic = self.checked_topic(request)
        if header.batch or request.command.code == send.SEND_BATCH_MESSAGE.code:
            messages = self._batch(request, topic)
            # The batch's own: 4.9 clients give it none.
            transaction_id = decode_properties(header.properties or "").get(names.UNIQ_KEY)
        else:
            messages = [self._single(request, topic)]
            transaction_id = messages[0].properties[names.UNIQ_KEY]
        puts = [message.to_put() for message in messages]
        if any(len(each.properties) > MAX_PROPERTIES_BYTES for each in puts):
            raise self._refusal(*self._illegal())  # of a batch none is stored then
        appended = self.store.put(puts, request.now_ms)
        return self._reply(messages, appended, transaction_id, request.now_ms)

    # ---------------------------------------------------------------- checks

    def checked_topic(self, request: Request[SendMessageRequestHeader]) -> TopicConfig:
        """The topic a message may go to, made on demand; raises ResponseError (msgCheck)."""
        header = request.header
        name = header.topic
        if not is_writable(self.config.broker_permission) and self.topics.is_order_topic(name):
            raise self._refusal(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self.config.broker_ip1}] sending message is forbidden",
            )
        wrong = validate_topic(name)
        if wrong is not None:
            raise self._refusal(ResponseCode.INVALID_PARAMETER, wrong)
        if name in FORBIDDEN_TO_SEND:
            raise self._refusal(
                ResponseCode.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden."
            )
        topic = self.topics.get(name) or self._create(header)
        if header.queue_id >= max(topic.read_queue_nums, topic.write_queue_nums):
            raise self._refusal(
                ResponseCode.INVALID_PARAMETER,
                f"request queueId[{header.queue_id}] is illegal, {topic_text(topic)}"
                f" Producer: {request.peer.remote_address}",
            )
        if request.now_ms < self.config.start_accept_send_request_time_stamp:
            raise self._refusal(
                ResponseCode.SYSTEM_ERROR,
                "broker unable to service, until"
                f" {self.config.start_accept_send_request_time_stamp}",
            )
        return topic

    def _create(self, header: SendMessageRequestHeader) -> TopicConfig:
        retry = header.topic.startswith(RETRY_PREFIX)
        sys_flag = 0
        if header.unit_mode:
            sys_flag = TopicSysFlag.UNIT_SUB if retry else TopicSysFlag.UNIT
        topic = self.topics.create_in_send(
            header.topic, header.default_topic, header.default_topic_queue_nums, sys_flag
        )
        if topic is None and retry:
            topic = self.topics.create_in_send_back(header.topic, 1, sys_flag=sys_flag)
        if topic is None:
            raise self._refusal(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please!{FAQ}",
            )
        return topic

    def _refusal(self, code: int, remark: str) -> ResponseError:
        return ResponseError(code, remark)

    # -------------------------------------------------------------- messages

    def _single(
        self, request: Request[SendMessageRequestHeader], topic: TopicConfig
    ) -> InnerMessage:
        header = request.header
        message = self._message(request, topic, request.body, header.properties or "")
        message.properties.pop(names.POP_CK, None)
        message.properties.update(self.ext_fields)
        if not message.properties.get(names.UNIQ_KEY):
            message.properties[names.UNIQ_KEY] = self._unique_keys.create(request.now_ms)
        if header.topic.startswith(RETRY_PREFIX):
            self._retry_or_dead_letter(request, message)
        message.properties[names.CLUSTER] = self.config.broker_cluster_name
        self._check_kind(message)
        if message.delay_level > 0:
            level = self._delay_levels.clamp(message.delay_level)
            message.delay(level, self._delay_levels.deliver_ms(level, request.now_ms))
        return message

    def _message(
        self,
        request: Request[SendMessageRequestHeader],
        topic: TopicConfig,
        body: bytes,
        properties: str,
    ) -> InnerMessage:
        header = request.header
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = random.randrange(topic.write_queue_nums or 1)
        sys_flag = header.sys_flag
        if topic.topic_filter_type == "MULTI_TAG":
            sys_flag |= MessageSysFlag.MULTI_TAGS
        return InnerMessage(
            header.topic,
            queue_id,
            body,
            header.born_timestamp,
            request.peer.remote_host,
            self.store_host,
            decode_properties(properties),
            header.flag,
            sys_flag,
            header.reconsume_times or 0,
        )

    def _retry_or_dead_letter(
        self, request: Request[SendMessageRequestHeader], message: InnerMessage
    ) -> None:
        """An orderly consumer's way to the dead letters, and a failed send-back's to a retry."""
        group_name = message.topic[len(RETRY_PREFIX) :]
        group = self._groups.find(group_name)
        if group is None:
            raise self._refusal(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group not exist, {group_name} {FAQ}",
            )
        limit = group.retry_max_times
        if (
            request.command.version >= MQVersion.V3_4_9
            and request.header.max_reconsume_times is not None
        ):
            limit = request.header.max_reconsume_times
        orderly = not self._locks.all_expired(group_name, request.now_ms)
        if message.reconsume_times <= limit and not orderly:
            return
        name = DLQ_PREFIX + group_name
        self.topics.create_in_send_back(name, 1)
        message.topic = name
        message.queue_id = 0
        message.properties[names.DELAY] = "0"

    def _check_kind(self, message: InnerMessage) -> None:
        properties = message.properties
        if properties.get(names.TRAN_MSG, "").lower() == "true" and not (
            message.reconsume_times > 0 and message.delay_level > 0
        ):
            raise self._refusal(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self.config.broker_ip1}] sending transaction message is forbidden",
            )
        if message.delay_level <= 0 and any(name in properties for name in TIMER_PROPERTIES):
            raise self._refusal(
                ResponseCode.SYSTEM_ERROR,
                "accurate timer message is not enabled, timerWheelEnable is false",
            )
        if names.INNER_NUM in properties:
            raise self._refusal(*self._illegal())

    def _batch(
        self, request: Request[SendMessageRequestHeader], topic: TopicConfig
    ) -> list[InnerMessage]:
        header = request.header
        if len(header.topic) > _MAX_TOPIC_BYTES:
            raise self._refusal(
                ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(header.topic)}"
            )
        if header.topic.startswith(RETRY_PREFIX):
            raise self._refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                f"batch request does not support retry group {header.topic}",
            )
        if len(request.body) > self.store.config.max_message_size:
            raise self._refusal(*self._illegal())  # the original's encoder fails: 4.9 says 13, too
        try:
            inner = decode_batch(request.body, header.topic)
        except MessageDecodeError as error:
            raise self._refusal(
                ResponseCode.MESSAGE_ILLEGAL, f"the batch is broken: {error}"
            ) from None
        if not inner or len(inner) > MAX_BATCH:
            raise self._refusal(*self._illegal())
        base = self._message(request, topic, b"", header.properties or "")
        base.properties.update(self.ext_fields)
        base.properties[names.CLUSTER] = self.config.broker_cluster_name
        return [
            InnerMessage(
                base.topic,
                base.queue_id,
                one.body,
                base.born_timestamp_ms,
                base.born_host,
                base.store_host,
                {**base.properties, **one.properties},
                one.flag,
                base.sys_flag,
                base.reconsume_times,
            )
            for one in inner
        ]

    # --------------------------------------------------------------- answers

    def _reply(
        self,
        messages: Sequence[InnerMessage],
        appended: Sequence[Appended],
        transaction_id: str | None,
        now_ms: int,
    ) -> Reply[SendMessageResponseHeader] | PendingReply:
        first, last = appended[0], appended[-1]
        for one in appended:
            if one.status is not PutStatus.PUT_OK:
                raise self.refusal_of(one.status)
        topic = messages[0].topic
        self.stats.put(topic, len(messages), sum(one.size for one in appended))
        ids = ",".join(message_id(self.store_host, one.physical_offset) for one in appended)
        header = SendMessageResponseHeader(
            msg_id=ids,
            queue_id=messages[0].real_queue_id,
            queue_offset=first.queue_offset,
            transaction_id=transaction_id,
        )
        reply = Reply(header, ext_fields=self.ext_fields)
        if (
            self.store.sync_flush
            and messages[0].properties.get(names.WAIT, "true").lower() == "true"
        ):
            return self._when_durable(reply, last.physical_offset + last.size, now_ms)
        return reply

    def _when_durable(self, reply: Reply[Any], offset: int, now_ms: int) -> PendingReply:
        """Group commit: the answer waits for the fsync that covers the message."""
        pending = PendingReply()

        def flushed(durable: bool) -> None:  # noqa: FBT001 - a callback's one fact
            if not durable:
                reply.code = ResponseCode.FLUSH_DISK_TIMEOUT
            pending.resolve(reply)

        self.store.when_durable(offset, now_ms, flushed)
        return pending

    def _illegal(self) -> tuple[int, str]:
        code, remark = _ILLEGAL
        return code, remark.format(limit=self.store.config.max_message_size)

    def refusal_of(self, status: PutStatus) -> ResponseError:
        """What the answer to a message that was not stored says."""
        code, remark = _REFUSED.get(status, (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR"))
        limit, why = self.store.config.max_message_size, self.store.why_not_writeable()
        return self._refusal(code, remark.format(limit=limit, why=why))


def topic_text(topic: TopicConfig) -> str:
    """A topic as the original's remarks have it (TopicConfig.toString)."""
    attributes = ", ".join(f"{name}={value}" for name, value in topic.attributes.items())
    return (
        f"TopicConfig [topicName={topic.topic_name}, readQueueNums={topic.read_queue_nums},"
        f" writeQueueNums={topic.write_queue_nums}, perm={perm_to_string(topic.perm)},"
        f" topicFilterType={topic.topic_filter_type}, topicSysFlag={topic.topic_sys_flag},"
        f" order={'true' if topic.order else 'false'}, attributes={{{attributes}}}]"
    )


_OFFSET = struct.Struct(">q")


def message_id(store_host: bytes, physical_offset: int) -> str:
    """The offset message id: host, port and offset in upper hexadecimal."""
    return (store_host + _OFFSET.pack(physical_offset)).hex().upper()
