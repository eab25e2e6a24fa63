# SPDX-License-Identifier: Apache-2.0
"""Settings of consumers.

Defaults and the ranges that are accepted are the Java client's; times are in milliseconds, sizes in
bytes. A value out of its range raises ValueError, which says what is valid. Counterpart of the
fields of DefaultMQPushConsumer and DefaultLitePullConsumer, and of their checkConfig.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from txrocketmq.client.config import TRACE_TOPIC

MAX_BATCH: Final = 1_024
MAX_POP: Final = 32
"""How many messages brokers let be popped at once."""
_MEBIBYTE: Final = 1024 * 1024


class ConsumeFrom(enum.Enum):
    """Where a group begins in a queue that it has never consumed; the values are the wire's."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageModel(enum.Enum):
    """Whether the members of a group share the messages, or each gets all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushConsumerConfig:
    """How a push consumer pulls and consumes."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """Whether messages are shared by the group, or go to each of its members."""
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where a group begins that has never consumed a queue."""
    consume_timestamp_ms: int | None = None
    """With ConsumeFrom.TIMESTAMP: messages stored then or later; None: half an hour ago."""
    consume_concurrency: int = 20
    """How many batches are consumed at the same time, at most (consumeThreadMax)."""
    consume_in_threads: bool = False
    """Whether listeners run in so many threads of their own, where they may block, rather than
    where the client runs, where they may not."""
    consume_message_batch_max_size: int = 1
    """How many messages the listener gets at once, at most."""
    pull_batch_size: int = 32
    """How many messages are pulled at once, at most."""
    pull_batch_bytes: int = 256 * 1024
    """How many bytes of messages are pulled at once from a 5.x broker, about."""
    pull_interval_ms: int = 0
    """The pause between two pulls of a queue."""
    pull_threshold_for_queue: int = 1_000
    """A queue of which so many messages wait to be consumed is not pulled."""
    pull_threshold_size_for_queue: int = 100 * _MEBIBYTE
    """The same in bytes of bodies."""
    pull_threshold_for_topic: int = -1
    """Instead of that for a queue: so many messages for all its queues together; -1: not set."""
    pull_threshold_size_for_topic: int = -1
    """The same in bytes of bodies."""
    consume_concurrently_max_span: int = 2_000
    """The same as for a queue, for how far the oldest and the newest message lie apart in it."""
    post_subscription_when_pull: bool = False
    """Whether each pull says what is subscribed to, beside the heartbeats."""
    max_reconsume_times: int = -1
    """How often a message comes again before it is a dead letter; -1: as the broker has it, 16,
    and in order for ever."""
    suspend_current_queue_ms: int = 1_000
    """In order: how long a queue rests whose messages could not be consumed."""
    consume_timeout_ms: int = 15 * 60 * 1_000
    """A message that is consumed for longer is sent back, to be consumed by somebody else."""
    rebalance_interval_ms: int = 20_000
    """How often it is looked at who reads which queue, beside when a broker says so."""
    persist_interval_ms: int = 5_000
    """How often brokers are told how far the group has come."""
    await_termination_ms: int = 0
    """How long `stop` waits for listeners that are at work."""
    local_offset_store_dir: Path | None = None
    """In broadcasting: the folder of the files with the offsets; None: ~/.rocketmq_offsets."""
    client_rebalance: bool = True
    """Whether members share the queues among themselves; if not, a 5.x broker does, and says of
    each topic whether it is pulled or popped (`mqadmin setConsumeMode`). In order and in
    broadcasting members always do."""
    pop_invisible_ms: int = 60_000
    """When popped: how long messages are hidden from others; what is not consumed then comes
    again."""
    pop_batch_size: int = 32
    """When popped: how many messages are taken at once, at most 32 (popBatchNums)."""
    pop_threshold_for_queue: int = 96
    """When popped: no more are taken while more messages than that wait to be acknowledged."""
    enable_trace: bool = False
    """Whether each call of the listener leaves traces of its messages."""
    trace_topic: str = TRACE_TOPIC
    """The topic of the traces."""

    def __post_init__(self) -> None:
        check_range("consume_concurrency", self.consume_concurrency, 1, 1_000)
        check_range(
            "consume_message_batch_max_size", self.consume_message_batch_max_size, 1, MAX_BATCH
        )
        check_range("pull_batch_size", self.pull_batch_size, 1, MAX_BATCH)
        check_range("pull_batch_bytes", self.pull_batch_bytes, 1, 2**31 - 1)
        check_range("pull_interval_ms", self.pull_interval_ms, 0, 65_535)
        check_range("consume_concurrently_max_span", self.consume_concurrently_max_span, 1, 65_535)
        check_range("pull_threshold_for_queue", self.pull_threshold_for_queue, 1, 65_535)
        size = self.pull_threshold_size_for_queue
        check_range("pull_threshold_size_for_queue", size, 1, 1_024 * _MEBIBYTE)
        if self.pull_threshold_for_topic != -1:
            check_range("pull_threshold_for_topic", self.pull_threshold_for_topic, 1, 6_553_500)
        if self.pull_threshold_size_for_topic != -1:
            size = self.pull_threshold_size_for_topic
            check_range("pull_threshold_size_for_topic", size, 1, 102_400 * _MEBIBYTE)
        check_range("max_reconsume_times", self.max_reconsume_times, -1, 2**31 - 1)
        check_range("suspend_current_queue_ms", self.suspend_current_queue_ms, 10, 30_000)
        for name in ("consume_timeout_ms", "rebalance_interval_ms", "persist_interval_ms"):
            check_range(name, getattr(self, name), 1, 2**53)
        check_range("await_termination_ms", self.await_termination_ms, 0, 2**53)
        check_range("pop_invisible_ms", self.pop_invisible_ms, 5_000, 300_000)
        check_range("pop_batch_size", self.pop_batch_size, 1, MAX_POP)
        check_range("pop_threshold_for_queue", self.pop_threshold_for_queue, 1, 65_535)

    def threshold_for_queue(self, queues: int) -> int:
        """Messages that may wait of each of so many queues (RebalancePushImpl)."""
        if self.pull_threshold_for_topic == -1 or not queues:
            return self.pull_threshold_for_queue
        return max(1, self.pull_threshold_for_topic // queues)

    def threshold_size_for_queue(self, queues: int) -> int:
        """The same in bytes of bodies."""
        if self.pull_threshold_size_for_topic == -1 or not queues:
            return self.pull_threshold_size_for_queue
        return max(1, self.pull_threshold_size_for_topic // queues)


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullConsumerConfig:
    """How a lite pull consumer pulls and commits."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """Whether messages are shared by the group, or go to each of its members."""
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where a group begins that has never consumed a queue."""
    consume_timestamp_ms: int | None = None
    """With ConsumeFrom.TIMESTAMP: messages stored then or later; None: half an hour ago."""
    auto_commit: bool = True
    """Whether `poll` commits what earlier calls of it have given."""
    auto_commit_interval_ms: int = 5_000
    """How often it does so, at most."""
    poll_timeout_ms: int = 5_000
    """How long `poll` waits for messages unless it is told otherwise."""
    pull_batch_size: int = 10
    """How many messages are pulled at once, and given by one `poll`, at most."""
    pull_threshold_for_all: int = 10_000
    """While about so many messages of all queues wait for `poll`, none is pulled."""
    pull_threshold_for_queue: int = 1_000
    """A queue of which so many messages wait is not pulled."""
    pull_threshold_size_for_queue: int = 100 * _MEBIBYTE
    """The same in bytes of bodies."""
    consume_max_span: int = 2_000
    """The same for how far the oldest and the newest of these messages lie apart."""
    broker_suspend_max_ms: int = 20_000
    """How long a broker may hold a pull for which it has nothing."""
    timeout_when_suspended_ms: int = 30_000
    """How long the answer to such a pull may take (consumerTimeoutMillisWhenSuspend)."""
    topic_metadata_check_interval_ms: int = 30_000
    """How often it is looked at whether the queues of a topic have changed that is watched."""
    rebalance_interval_ms: int = 20_000
    """How often it is looked at who reads which queue, beside when a broker says so."""
    persist_interval_ms: int = 5_000
    """How often brokers are told what was committed."""
    local_offset_store_dir: Path | None = None
    """In broadcasting: the folder of the files with the offsets; None: ~/.rocketmq_offsets."""
    enable_trace: bool = False
    """Whether the messages that `poll` gives leave traces."""
    trace_topic: str = TRACE_TOPIC
    """The topic of the traces."""

    def __post_init__(self) -> None:
        check_range("auto_commit_interval_ms", self.auto_commit_interval_ms, 1_000, 2**53)
        check_range("poll_timeout_ms", self.poll_timeout_ms, 0, 2**53)
        check_range("pull_batch_size", self.pull_batch_size, 1, MAX_BATCH)
        for name in (
            "pull_threshold_for_all",
            "pull_threshold_for_queue",
            "pull_threshold_size_for_queue",
            "consume_max_span",
            "broker_suspend_max_ms",
            "topic_metadata_check_interval_ms",
            "rebalance_interval_ms",
            "persist_interval_ms",
        ):
            check_range(name, getattr(self, name), 1, 2**53)
        least = self.broker_suspend_max_ms
        check_range("timeout_when_suspended_ms", self.timeout_when_suspended_ms, least, 2**53)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopConsumerConfig:
    """How a pop consumer takes messages."""

    consume_from: ConsumeFrom = ConsumeFrom.FIRST_OFFSET
    """Where a group begins in a queue that it has never popped: FIRST_OFFSET or LAST_OFFSET."""
    batch_size: int = MAX_POP
    """How many messages are taken at once unless it is told otherwise, at most 32."""
    invisible_ms: int = 60_000
    """How long messages are hidden unless it is told otherwise; then they come again."""
    wait_ms: int = 15_000
    """How long `receive` waits for messages unless it is told otherwise."""
    enable_trace: bool = False
    """Whether each message leaves traces: that it was given, and that it was acknowledged, or was
    not in time."""
    trace_topic: str = TRACE_TOPIC
    """The topic of the traces."""

    def __post_init__(self) -> None:
        if self.consume_from is ConsumeFrom.TIMESTAMP:
            raise ValueError("consume_from must be FIRST_OFFSET or LAST_OFFSET: POP has no times")
        check_range("batch_size", self.batch_size, 1, MAX_POP)
        check_range("invisible_ms", self.invisible_ms, 1_000, 12 * 60 * 60 * 1_000)
        check_range("wait_ms", self.wait_ms, 0, 60_000)


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Raises ValueError unless a setting is within its range."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value!r:.40}")
