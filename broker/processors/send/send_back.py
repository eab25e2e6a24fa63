# SPDX-License-Identifier: Apache-2.0
"""CONSUMER_SEND_MSG_BACK: stores a message that could not be consumed for another attempt.

A copy goes to %RETRY%group, by way of the schedule topic; with a negative delay level, or after too
many attempts, it goes to %DLQ%group at once. With level 0 the broker chooses the level: 3 plus the
number of attempts. A group without retry queues is answered success, and nothing is done. Where
there are accounts, the topic of the message needs Sub. Codes: 0; 1 when the message is not found or
cannot be put; 16, 26. Java: AbstractSendMessageProcessor.consumerSendMsgBack.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from txrocketmq.broker.accounts.access import CheckFound
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import TopicSysFlag, is_writable
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.send import ConsumerSendMsgBackRequestHeader

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
DLQ_QUEUES = 1
_FIRST_LEVEL = 3


class SendBackProcessor:
    """Takes messages back; `store_host` is the broker's advertised address, as in records."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        intake: Intake,
        stats: BrokerStats,
        store_host: bytes,
        clock: Callable[[], int],
        patience: Patience,
        check_taken: CheckFound | None = None,
    ) -> None:
        self._check_taken = check_taken
        self._config = config
        self._topics = topics
        self._groups = groups
        self._intake = intake
        self._stats = stats
        self._store_host = store_host
        self._now_ms = clock
        self._patience = patience

    @serves(send.CONSUMER_SEND_MSG_BACK)
    def send_back(
        self, request: Request[ConsumerSendMsgBackRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Puts a copy of a message where its group gets it again, or among the dead letters."""
        return self._patience.answer(request.peer, partial(self._send_back, request))

    def _send_back(self, request: Request[ConsumerSendMsgBackRequestHeader]) -> Reply[NoHeader]:
        header = request.header
        drafts = self._topics.drafts
        drafts.clear()
        group = self._group(header.group)
        if group.retry_queue_nums <= 0:
            return Reply()
        retry_topic = RETRY_PREFIX + header.group
        self._draft_topic(
            retry_topic,
            group.retry_queue_nums,
            sys_flag=TopicSysFlag.UNIT_SUB if header.unit_mode else 0,
        )
        stored = self._stored(header.offset)
        if self._check_taken is not None:
            # It is found by its place, and whoever may consume as a group would get any message.
            self._check_taken(request.peer, request.command, stored.topic)
        origin = stored.properties.get(names.RETRY_TOPIC, stored.topic)
        message = self._copy(stored, origin)
        is_dead = header.delay_level < 0 or stored.reconsume_times >= self._limit(request, group)
        if is_dead:
            message.topic = DLQ_PREFIX + header.group
            self._draft_topic(message.topic, DLQ_QUEUES)
            message.properties[names.DELAY] = "0"
        else:
            message.topic = retry_topic
            message.queue_id = random.randrange(group.retry_queue_nums)
            level = header.delay_level or _FIRST_LEVEL + stored.reconsume_times
            message.properties[names.DELAY] = str(level)
        drafts.end(0, 1)
        (status,) = self._intake.take([message], self._now_ms())
        if status is not PutStatus.PUT_OK:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, status.name)
        drafts.make(())
        self._stats.sent_back(header.group, origin)
        if is_dead:
            self._stats.died(header.group, origin)
        return Reply()

    def _group(self, name: str) -> SubscriptionGroupConfig:
        group = self._groups.expected(name)
        if group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group not exist, {name} {self._groups.why_full or FAQ}",
            )
        if not is_writable(self._config.broker_permission):
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self._config.broker_ip1}] sending message is forbidden",
            )
        self._topics.drafts.want("group", name, partial(self._groups.find, name))
        return group

    def _draft_topic(self, name: str, queues: int, sys_flag: int = 0) -> None:
        topic = self._topics.draft_in_send_back(name, queues, sys_flag=sys_flag)
        if topic is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"topic[{name}] not exist, and {self._topics.why_full(name)}",
            )
        if not is_writable(topic.perm):
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"the topic[{name}] sending message is forbidden"
            )

    def _stored(self, offset: int) -> MessageExt:
        record = self._intake.store.message_at(offset)
        try:
            if record is not None:
                return decode_message(record, decompress_body=False)[0]
        except MessageDecodeError:
            pass
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset}")

    def _copy(self, stored: MessageExt, origin: str) -> InnerMessage:
        message = InnerMessage.of_stored(stored, stored.topic, 0, self._store_host, Way.SEND_BACK)
        message.reconsume_times += 1
        properties = message.properties
        properties[names.RETRY_TOPIC] = origin
        properties[names.WAIT] = "false"
        if not properties.get(names.ORIGIN_MESSAGE_ID, "").strip():
            properties[names.ORIGIN_MESSAGE_ID] = stored.offset_msg_id
        return message

    @staticmethod
    def _limit(
        request: Request[ConsumerSendMsgBackRequestHeader], group: SubscriptionGroupConfig
    ) -> int:
        """How often a message may be tried: the consumer's limit, or else that of the group."""
        wanted = request.header.max_reconsume_times
        if wanted is not None and request.command.version >= MQVersion.V3_4_9:
            return wanted
        return group.retry_max_times
