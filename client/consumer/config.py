# SPDX-License-Identifier: Apache-2.0
"""Settings of consumers.

Defaults and the ranges that are accepted are the Java client's; times are in milliseconds, sizes in
bytes. A value out of its range raises ValueError, which says what is valid. Counterpart of the
fields of DefaultMQPushConsumer and DefaultLitePullConsumer, and of their checkConfig.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from typing import Final, Self

from txrocketmq.client.base.config import TRACE_TOPIC
from txrocketmq.remoting.arguments.arguments import checked_settings

MAX_BATCH: Final = 1_024
MAX_POP: Final = 32
"""How many messages brokers let be popped at once."""
_MEBIBYTE: Final = 1024 * 1024


_OTHER_WORDS: Final = {
    "earliest": "FIRST_OFFSET",
    "smallest": "FIRST_OFFSET",
    "beginning": "FIRST_OFFSET",
    "first": "FIRST_OFFSET",
    "latest": "LAST_OFFSET",
    "largest": "LAST_OFFSET",
    "end": "LAST_OFFSET",
    "last": "LAST_OFFSET",
}
"""What Kafka's clients call the ends of a queue, and last what our own commands do."""


class ConsumeFrom(enum.Enum):
    """Where a group begins in a queue that it has never consumed; the values are the wire's.

    Kafka's words "earliest" and "latest", and those of the commands, "first" and "last", stand for
    FIRST_OFFSET and LAST_OFFSET.
    """

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        name = _OTHER_WORDS.get(value.lower()) if isinstance(value, str) else None
        return None if name is None else cls[name]


class MessageModel(enum.Enum):
    """Whether the members of a group share the messages, or each member receives all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class PushConsumerConfig:
    """How a push consumer pulls and consumes."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """Whether the members of the group share the messages, or each member receives all of them."""
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where the group begins in a queue that it has never consumed. Kafka's words "earliest" and
    "latest" will do as well."""
    consume_timestamp_ms: int | None = None
    """With ConsumeFrom.TIMESTAMP, the time at which to begin, in milliseconds since the epoch; None
    means half an hour ago."""
    consume_concurrency: int = 20
    """How many batches are consumed at the same time at most (consumeThreadMax)."""
    consume_in_threads: bool = False
    """For asyncio and Twisted: whether listeners run in threads, as many as consume_concurrency,
    where they may block, and not in the event loop or the reactor, where they may not. The blocking
    client always calls them in threads."""
    consume_message_batch_max_size: int = 1
    """How many messages a listener receives at once at most."""
    pull_batch_size: int = 32
    """How many messages are pulled at once at most."""
    pull_batch_bytes: int = 256 * 1024
    """About how many bytes of messages are pulled at once from a 5.x broker."""
    pull_interval_ms: int = 0
    """The pause between two pulls of a queue."""
    pull_threshold_for_queue: int = 1_000
    """While this many messages of a queue wait to be consumed, the queue is not pulled."""
    pull_threshold_size_for_queue: int = 100 * _MEBIBYTE
    """The same limit in bytes of bodies."""
    pull_threshold_for_topic: int = -1
    """A limit for all queues of a topic together, which replaces pull_threshold_for_queue; -1 means
    that there is none."""
    pull_threshold_size_for_topic: int = -1
    """The same limit in bytes of bodies."""
    consume_concurrently_max_span: int = 2_000
    """A queue is also not pulled while the offsets of the oldest and the newest message that wait
    are further apart than this."""
    post_subscription_when_pull: bool = False
    """Whether each pull contains the subscription, which heartbeats contain in any case."""
    max_reconsume_times: int = -1
    """How often a message is delivered again before it becomes a dead letter; -1 means as often as
    the broker says (16 times) or, for consumers in order, without a limit."""
    suspend_current_queue_ms: int = 1_000
    """How long a queue that is consumed in order rests after a message that failed."""
    consume_timeout_ms: int = 15 * 60 * 1_000
    """How long a listener may work on a message; after that, the message is sent back so that
    another member consumes it."""
    rebalance_interval_ms: int = 20_000
    """The period between two checks of who consumes which queue. Brokers also ask for a check when
    the group changes."""
    persist_interval_ms: int = 5_000
    """The period between two commits of the group's offsets."""
    await_termination_ms: int = 0
    """How long shutting down waits for listeners that are still running."""
    local_offset_store_dir: str | os.PathLike[str] | None = None
    """The folder for the offsets of broadcasting consumers; None means ~/.rocketmq_offsets."""
    client_rebalance: bool = True
    """Whether the members distribute the queues among themselves. Otherwise a 5.x broker does, and
    says for each topic whether it is pulled or popped (`mqadmin setConsumeMode`). Groups in order
    and in broadcasting always distribute the queues themselves."""
    pop_invisible_ms: int = 60_000
    """For how long a popped message is hidden from other members; if it has not been consumed by
    then, it is delivered again."""
    pop_batch_size: int = 32
    """How many messages are popped at once, at most 32 (popBatchNums)."""
    pop_threshold_for_queue: int = 96
    """While more popped messages than this wait to be acknowledged, no more are popped."""
    enable_trace: bool = False
    """Whether each call of the listener writes traces of its messages."""
    trace_topic: str = TRACE_TOPIC
    """The topic to which traces are written."""

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


@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullConsumerConfig:
    """How a lite pull consumer pulls and commits."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """Whether the members of the group share the messages, or each member receives all of them."""
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where the group begins in a queue that it has never consumed. Kafka's words "earliest" and
    "latest" will do as well."""
    consume_timestamp_ms: int | None = None
    """With ConsumeFrom.TIMESTAMP, the time at which to begin, in milliseconds since the epoch; None
    means half an hour ago."""
    auto_commit: bool = True
    """Whether `poll` commits the messages that earlier calls have returned."""
    auto_commit_interval_ms: int = 5_000
    """The shortest period between two such commits."""
    poll_timeout_ms: int = 5_000
    """How long `poll` waits for messages unless it is called with another time."""
    pull_batch_size: int = 10
    """How many messages are pulled at once, and returned by one `poll`, at most."""
    pull_threshold_for_all: int = 10_000
    """While about this many messages of all queues wait for `poll`, nothing is pulled."""
    pull_threshold_for_queue: int = 1_000
    """While this many messages of a queue wait for `poll`, the queue is not pulled."""
    pull_threshold_size_for_queue: int = 100 * _MEBIBYTE
    """The same limit in bytes of bodies."""
    consume_max_span: int = 2_000
    """A queue is also not pulled while the offsets of the oldest and the newest message that wait
    are further apart than this."""
    broker_suspend_max_ms: int = 20_000
    """How long a broker may hold back the answer to a pull while it has no message."""
    timeout_when_suspended_ms: int = 30_000
    """How long the client waits for such an answer (consumerTimeoutMillisWhenSuspend)."""
    topic_metadata_check_interval_ms: int = 30_000
    """The period between two checks of whether the queues of a watched topic have changed."""
    rebalance_interval_ms: int = 20_000
    """The period between two checks of who consumes which queue. Brokers also ask for a check when
    the group changes."""
    persist_interval_ms: int = 5_000
    """The period in which the offsets that were committed are sent to the brokers."""
    local_offset_store_dir: str | os.PathLike[str] | None = None
    """The folder for the offsets of broadcasting consumers; None means ~/.rocketmq_offsets."""
    enable_trace: bool = False
    """Whether the messages that `poll` returns leave traces."""
    trace_topic: str = TRACE_TOPIC
    """The topic to which traces are written."""

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


@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class PopConsumerConfig:
    """How a pop consumer takes messages."""

    consume_from: ConsumeFrom = ConsumeFrom.FIRST_OFFSET
    """Where the group begins in a queue that it has never popped: FIRST_OFFSET or LAST_OFFSET."""
    batch_size: int = MAX_POP
    """How many messages `receive` takes unless it is called with another number; at most 32."""
    invisible_ms: int = 60_000
    """For how long messages are hidden unless `receive` is called with another time; after that
    they are delivered again."""
    wait_ms: int = 15_000
    """How long `receive` waits for messages unless it is called with another time."""
    enable_trace: bool = False
    """Whether each message leaves traces: when it is delivered, and when it is acknowledged or its
    time is over."""
    trace_topic: str = TRACE_TOPIC
    """The topic to which traces are written."""

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
