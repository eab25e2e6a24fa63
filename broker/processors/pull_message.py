# SPDX-License-Identifier: Apache-2.0
"""PULL_MESSAGE, LITE_PULL_MESSAGE: messages of a queue, or a wait for them.

Checked in the original's order: broker permission, lite pull, group, topic and its permission,
queue id, subscription (in the header or of the heartbeat). Found messages leave as slices of the
mapped log. A pull that finds nothing and may be suspended is parked, and run once more when a
message is there or its time is over. Codes: 0, 19, 20, 21; 1, 16, 17, 23, 24, 25, 26, 29. Not done:
SQL92 filters (refused as with enablePropertyFilter=false), cold-data flow control, static topics.

Java: PullMessageProcessor, DefaultPullMessageResultHandler.
"""

from __future__ import annotations

from txrocketmq.broker.clients import Consumers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.long_polling import LongPolling, ParkedPull, TagCodes
from txrocketmq.broker.offset import ConsumerOffsets
from txrocketmq.broker.stats import BrokerStats
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult, MessageStore
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import Topics
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import PullSysFlag, is_readable
from txrocketmq.remoting.message.tags import (
    SUB_ALL,
    TAG,
    SubscriptionData,
    SubscriptionError,
    build_subscription_data,
)
from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
_NO_BYTE_LIMIT = 2**31 - 1

BROKER_FORBIDDEN = 1
GROUP_FORBIDDEN = 2
TOPIC_FORBIDDEN = 3
BROADCASTING_FORBIDDEN = 4
SUBSCRIPTION_FORBIDDEN = 5

_CODES = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
"""Codes of statuses; those of an empty queue depend on the offset that was asked for."""


class PullMessageProcessor:
    """Serves pulls."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        consumers: Consumers,
        offsets: ConsumerOffsets,
        store: MessageStore,
        stats: BrokerStats,
        polling: LongPolling,
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._polling = polling

    @serves(pull.PULL_MESSAGE, pull.LITE_PULL_MESSAGE, vip=False)
    def pull(
        self, request: Request[PullMessageRequestHeader]
    ) -> Reply[PullMessageResponseHeader] | PendingReply:
        """Messages, or why there are none; may wait for suspendTimeoutMillis."""
        header = request.header
        reply = self._run(request)
        if header.sys_flag & PullSysFlag.COMMIT_OFFSET and not self._store.config.is_slave:
            self._offsets.commit(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
        if reply.code != ResponseCode.PULL_NOT_FOUND or not header.sys_flag & PullSysFlag.SUSPEND:
            return reply
        return self._park(request) or reply

    def _park(self, request: Request[PullMessageRequestHeader]) -> PendingReply | None:
        header = request.header
        hold_ms = header.suspend_timeout_millis
        if not self._config.long_polling_enable:
            hold_ms = self._config.short_polling_time_mills
        pending = PendingReply()
        # However large they were, they are not kept while it waits.
        request.command.body, request.command.ext_fields = b"", None

        def resume() -> None:
            try:
                pending.resolve(self._run(request))
            except Exception as error:  # noqa: BLE001 - the answer of one pull, not of all
                pending.resolve(error)

        parked = self._polling.park(
            ParkedPull(
                peer=request.peer,
                topic=header.topic,
                queue_id=header.queue_id,
                offset=header.queue_offset,
                deadline_ms=request.now_ms + hold_ms,
                tag_codes=self._tag_codes(self._subscription(header, self._group(header))),
                resume=resume,
            )
        )
        return pending if parked else None

    def _run(self, request: Request[PullMessageRequestHeader]) -> Reply[PullMessageResponseHeader]:
        header = request.header
        group = self._group(header)
        topic = self._topic(request)
        subscription = self._subscription(header, group)
        result = self._get(header, subscription)
        code = _CODES.get(result.status)
        if code is None:  # nothing in the queue
            moved = header.queue_offset != 0
            code = ResponseCode.PULL_OFFSET_MOVED if moved else ResponseCode.PULL_NOT_FOUND
        if code == ResponseCode.SUCCESS:
            self._stats.got(header.consumer_group, header.topic, result.count, result.size_bytes)
        answer = PullMessageResponseHeader(
            suggest_which_broker_id=self._suggested_broker(group, result),
            next_begin_offset=result.next_begin_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            topic_sys_flag=topic.topic_sys_flag,
            group_sys_flag=group.group_sys_flag,
        )
        return Reply(answer, result.buffers, code, result.status.name)

    def _get(self, header: PullMessageRequestHeader, subscription: SubscriptionData) -> GetResult:
        reset = self._offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
        if reset is not None:
            return GetResult(
                GetMessageStatus.OFFSET_RESET,
                reset,
                self._store.min_offset(header.topic, header.queue_id),
                self._store.max_offset(header.topic, header.queue_id),
            )
        return self._store.get(
            header.topic,
            header.queue_id,
            header.queue_offset,
            header.max_msg_nums,
            header.max_msg_bytes or _NO_BYTE_LIMIT,
            self._tag_codes(subscription),
        )

    def _suggested_broker(self, group: SubscriptionGroupConfig, result: GetResult) -> int:
        if not self._config.slave_read_enable:
            return 0
        return group.which_broker_when_consume_slowly if result.suggest_slave else group.broker_id

    # ---------------------------------------------------------------- checks

    def _group(self, header: PullMessageRequestHeader) -> SubscriptionGroupConfig:
        group = self._groups.find(header.consumer_group)
        if group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist, {FAQ}",
            )
        if not group.consume_enable:
            raise _forbidden(
                GROUP_FORBIDDEN, f"subscription group no permission, {header.consumer_group}"
            )
        return group

    def _topic(self, request: Request[PullMessageRequestHeader]) -> TopicConfig:
        header = request.header
        if not is_readable(self._config.broker_permission):
            raise _forbidden(
                BROKER_FORBIDDEN,
                f"the broker[{self._config.broker_ip1}] pulling message is forbidden",
            )
        lite = request.command.code == RequestCode.LITE_PULL_MESSAGE
        if lite and not self._config.lite_pull_message_enable:
            raise _forbidden(
                BROKER_FORBIDDEN,
                f"the broker[{self._config.broker_ip1}] for lite pull consumer is forbidden",
            )
        topic = self._topics.get(header.topic)
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please! {FAQ}",
            )
        if not is_readable(topic.perm):
            raise _forbidden(
                TOPIC_FORBIDDEN, f"the topic[{header.topic}] pulling message is forbidden"
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}]"
                f" consumer:[{request.peer.remote_address}]",
            )
        return topic

    def _subscription(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        if header.sys_flag & PullSysFlag.SUBSCRIPTION:
            try:
                subscription = build_subscription_data(
                    header.topic, header.subscription, header.expression_type or TAG
                )
            except SubscriptionError:
                raise ResponseError(
                    ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                    "parse the consumer's subscription failed",
                ) from None
        else:
            subscription = self._registered_subscription(header, group)
        if subscription.expression_type not in (TAG, ""):
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "The broker does not support consumer to filter message by"
                f" {subscription.expression_type}",
            )
        return subscription

    def _registered_subscription(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        consumer_group = self._consumers.group(header.consumer_group)
        if consumer_group is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{FAQ}"
            )
        if not group.consume_broadcast_enable and consumer_group.message_model == "BROADCASTING":
            raise _forbidden(
                BROADCASTING_FORBIDDEN,
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
            )
        if self._groups.is_read_forbidden(header.consumer_group, header.topic):
            raise _forbidden(
                SUBSCRIPTION_FORBIDDEN,
                f"the consumer group[{header.consumer_group}] is forbidden for"
                f" topic[{header.topic}]",
            )
        subscription = consumer_group.subscriptions.get(header.topic)
        if subscription is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist{FAQ}"
            )
        if subscription.sub_version < header.sub_version:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
            )
        return subscription

    @staticmethod
    def _tag_codes(subscription: SubscriptionData) -> TagCodes:
        if subscription.sub_string == SUB_ALL or subscription.class_filter_mode:
            return None
        return subscription.code_set


def _forbidden(kind: int, remark: str) -> ResponseError:
    """NO_PERMISSION, with the kind in the header as 5.x has it."""
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0,
        next_begin_offset=0,
        min_offset=0,
        max_offset=0,
        forbidden_type=kind,
    )
    return ResponseError(ResponseCode.NO_PERMISSION, remark, header)
