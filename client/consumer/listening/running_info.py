# SPDX-License-Identifier: Apache-2.0
"""What administrators see of a consumer: settings, queues, subscriptions, speed and stacks.

The settings have the names that the Java client's fields have, since mqadmin and the dashboard show
them so.

Java: consumerRunningInfo of DefaultMQPushConsumerImpl and DefaultLitePullConsumerImpl,
MQClientInstance.consumerRunningInfo, UtilAll.jstack.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, Final

from txrocketmq.client.consumer.config import LitePullConsumerConfig, PushConsumerConfig
from txrocketmq.client.consumer.queue.offset_store import OffsetStore
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.client import ProcessQueueInfo

_MEBIBYTE: Final = 1024 * 1024
_NAME_WIDTH: Final = 40


def push_properties(config: PushConsumerConfig) -> dict[str, Any]:
    """The settings of a push consumer."""
    return {
        "adjustThreadPoolNumsThreshold": 100_000,
        "awaitTerminationMillisWhenShutdown": config.await_termination_ms,
        "clientRebalance": config.client_rebalance,
        "consumeConcurrentlyMaxSpan": config.consume_concurrently_max_span,
        "consumeFromWhere": config.consume_from.value,
        "consumeMessageBatchMaxSize": config.consume_message_batch_max_size,
        "consumeThreadMax": config.consume_concurrency,
        "consumeThreadMin": config.consume_concurrency,
        "consumeTimeout": config.consume_timeout_ms // 60_000,
        "consumeTimestamp": _timestamp(config.consume_timestamp_ms),
        "maxReconsumeTimes": config.max_reconsume_times,
        "messageModel": config.message_model.value,
        "persistConsumerOffsetInterval": config.persist_interval_ms,
        "popBatchNums": config.pop_batch_size,
        "popInvisibleTime": config.pop_invisible_ms,
        "popThresholdForQueue": config.pop_threshold_for_queue,
        "postSubscriptionWhenPull": config.post_subscription_when_pull,
        "pullBatchSize": config.pull_batch_size,
        "pullBatchSizeInBytes": config.pull_batch_bytes,
        "pullInterval": config.pull_interval_ms,
        "pullThresholdForQueue": config.pull_threshold_for_queue,
        "pullThresholdForTopic": config.pull_threshold_for_topic,
        "pullThresholdSizeForQueue": _mebibytes(config.pull_threshold_size_for_queue),
        "pullThresholdSizeForTopic": _mebibytes(config.pull_threshold_size_for_topic),
        "suspendCurrentQueueTimeMillis": config.suspend_current_queue_ms,
        "PROP_THREADPOOL_CORE_SIZE": config.consume_concurrency,
    }


def lite_properties(config: LitePullConsumerConfig) -> dict[str, Any]:
    """The settings of a lite pull consumer."""
    return {
        "autoCommit": config.auto_commit,
        "autoCommitIntervalMillis": config.auto_commit_interval_ms,
        "brokerSuspendMaxTimeMillis": config.broker_suspend_max_ms,
        "consumeFromWhere": config.consume_from.value,
        "consumeMaxSpan": config.consume_max_span,
        "consumeTimestamp": _timestamp(config.consume_timestamp_ms),
        "consumerTimeoutMillisWhenSuspend": config.timeout_when_suspended_ms,
        "messageModel": config.message_model.value,
        "persistConsumerOffsetInterval": config.persist_interval_ms,
        "pollTimeoutMillis": config.poll_timeout_ms,
        "pullBatchSize": config.pull_batch_size,
        "pullThresholdForAll": config.pull_threshold_for_all,
        "pullThresholdForQueue": config.pull_threshold_for_queue,
        "pullThresholdSizeForQueue": _mebibytes(config.pull_threshold_size_for_queue),
        "topicMetadataCheckIntervalMillis": config.topic_metadata_check_interval_ms,
    }


def properties_of(
    instance: ClientInstance, group: str, started_ms: int, properties: Mapping[str, Any]
) -> dict[str, str]:
    """All properties for administrators, as text."""
    told = {
        **properties,
        "clientIP": instance.client_id.partition("@")[0],
        "consumerGroup": group,
        "heartbeatBrokerInterval": instance.config.heartbeat_broker_interval_ms,
        "instanceName": instance.client_id.split("@")[1],
        "namesrvAddr": instance.config.namesrv_addr,
        "pollNameServerInterval": instance.config.poll_name_server_interval_ms,
        "unitName": instance.config.unit_name,
        "PROP_NAMESERVER_ADDR": instance.config.namesrv_addr,
        "PROP_CONSUMER_START_TIMESTAMP": started_ms,
    }
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in told.items()
    }


def queues_of(
    instance: ClientInstance, offsets: OffsetStore, process_queues: Iterable[ProcessQueue]
) -> dict[MessageQueue, ProcessQueueInfo]:
    """What is at hand of each queue."""
    ahead_ms = instance.clock.now_ms() - instance.clock.steady_ms()
    found = {}
    for each in process_queues:
        noted = offsets.noted(each.queue)
        found[each.queue] = each.describe(-1 if noted is None else noted, ahead_ms)
    return found


def stacks() -> str:
    """Where all threads of this process are, in the form of UtilAll.jstack."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines: list[str] = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - made for this
        name = names.get(ident, "unknown")
        lines.append(f"{name:<{_NAME_WIDTH}}  TID: {ident}  STATE: RUNNABLE")
        for each in reversed(traceback.extract_stack(frame)):
            where = f"{each.name}({each.filename}:{each.lineno})"
            lines.append(f"{name:<{_NAME_WIDTH}}  {where}")
        lines.append("")
    return "\n".join(lines)


def _timestamp(time_ms: int | None) -> str:
    at_s = time.time() - 1_800 if time_ms is None else time_ms / 1000
    return time.strftime("%Y%m%d%H%M%S", time.localtime(at_s))


def _mebibytes(size_bytes: int) -> int:
    return size_bytes if size_bytes < 0 else size_bytes // _MEBIBYTE
