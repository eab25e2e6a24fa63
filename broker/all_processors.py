# SPDX-License-Identifier: Apache-2.0
"""All processors of a broker, each with the parts that it uses; none gets the broker itself."""

from __future__ import annotations

from txrocketmq.access.needs import Action
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.processors.admin.admin_acl import AdminAclProcessor
from txrocketmq.broker.processors.admin.admin_auth import AdminAuthProcessor
from txrocketmq.broker.processors.admin.admin_config import AdminConfigProcessor
from txrocketmq.broker.processors.admin.admin_group import AdminGroupProcessor
from txrocketmq.broker.processors.admin.admin_ha import AdminHaProcessor
from txrocketmq.broker.processors.admin.admin_offset import AdminOffsetProcessor
from txrocketmq.broker.processors.admin.admin_progress import AdminProgressProcessor
from txrocketmq.broker.processors.admin.admin_stats import AdminStatsProcessor
from txrocketmq.broker.processors.admin.admin_timer import AdminTimerProcessor
from txrocketmq.broker.processors.admin.admin_topic import AdminTopicProcessor
from txrocketmq.broker.processors.client.call_client import CallClientProcessor
from txrocketmq.broker.processors.client.heartbeat import HeartbeatProcessor
from txrocketmq.broker.processors.client.queue_lock import QueueLockProcessor
from txrocketmq.broker.processors.pop.ack_message import AckMessageProcessor
from txrocketmq.broker.processors.pop.assignment import AssignmentProcessor
from txrocketmq.broker.processors.pop.peek_message import PeekMessageProcessor
from txrocketmq.broker.processors.pop.pop_checks import Attempts, PopChecks
from txrocketmq.broker.processors.pop.pop_message import PopMessageProcessor
from txrocketmq.broker.processors.pop.pop_notification import PopNotificationProcessor
from txrocketmq.broker.processors.pull.offset import OffsetProcessor
from txrocketmq.broker.processors.pull.pull_message import PullMessageProcessor
from txrocketmq.broker.processors.pull.pull_subscription import PullSubscriptions
from txrocketmq.broker.processors.pull.query_message import QueryMessageProcessor
from txrocketmq.broker.processors.raw_pulls import RawPulls
from txrocketmq.broker.processors.raw_sends import RawSends
from txrocketmq.broker.processors.send.batches import Batches
from txrocketmq.broker.processors.send.end_transaction import EndTransactionProcessor
from txrocketmq.broker.processors.send.recall_message import RecallMessageProcessor
from txrocketmq.broker.processors.send.reply_message import ReplyMessageProcessor
from txrocketmq.broker.processors.send.send_answers import SendAnswers
from txrocketmq.broker.processors.send.send_back import SendBackProcessor
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.processors.send.send_message import SendMessageProcessor
from txrocketmq.broker.processors.send.writes import Writes
from txrocketmq.remoting.codes import SerializeType


def all_processors(
    parts: Parts, serialize_type: SerializeType = SerializeType.JSON
) -> list[object]:
    """Makes the processors that answer the requests to a broker with these parts.

    `serialize_type` is the form in which headers are written.
    """
    config, topics, groups, store = parts.config, parts.topics, parts.groups, parts.store
    send_checks = SendChecks(config, topics, store)
    pop_checks = PopChecks(config, topics, groups)
    return [
        *_writing_processors(parts, send_checks, pop_checks, serialize_type),
        *_send_processors(parts, send_checks),
        *_reading_processors(parts, serialize_type),
        HeartbeatProcessor(
            parts.topics,
            parts.groups,
            parts.consumers,
            parts.producers,
            parts.filters,
            parts.walks,
            parts.in_order,
        ),
        QueueLockProcessor(
            parts.locks, parts.walks, parts.strict_locks if config.lock_in_strict_mode else None
        ),
        AssignmentProcessor(
            parts.config,
            parts.topics,
            parts.groups,
            parts.consumers,
            parts.routes,
            parts.modes,
            parts.walks,
        ),
        CallClientProcessor(
            config,
            topics,
            groups,
            parts.consumers,
            store,
            parts.patience,
            parts.walks,
            parts.access.found_check(Action.SUB),
        ),
        *_pop_processors(parts, pop_checks),
        *_admin_processors(parts),
        *_account_processors(parts),
    ]


def _reading_processors(parts: Parts, serialize_type: SerializeType) -> list[object]:
    pulls = PullMessageProcessor(
        parts.config,
        parts.topics,
        PullSubscriptions(parts.config, parts.groups, parts.consumers, parts.filters),
        parts.offsets,
        parts.store,
        parts.stats,
        parts.polling,
        parts.patience,
        parts.broadcast_offsets,
    )
    if parts.slave is not None:
        pulls.on_slave(lambda: parts.acting.has_master)
    if parts.kernel is not None:
        pulls.with_kernel(parts.kernel, serialize_type)
        raw_pulls = RawPulls(
            parts.kernel,
            pulls,
            parts.offsets,
            parts.steady_clock or parts.clock,
            lambda: parts.dispatcher,
        )
        if parts.access.guard is not None:
            raw_pulls.with_guard(parts.access.guard)
        parts.raw_requests.append(raw_pulls)
    return [
        pulls,
        OffsetProcessor(
            parts.offsets,
            parts.groups,
            parts.topics,
            parts.store,
            parts.schedule,
            parts.walks,
            parts.patience,
        ),
        QueryMessageProcessor(
            parts.store,
            parts.consumers,
            parts.walks,
            parts.patience,
            parts.access.found_check(Action.GET),
        ),
    ]


def _account_processors(parts: Parts) -> list[object]:
    address = parts.known_as.address
    return [
        AdminAuthProcessor(parts.access, parts.walks),
        AdminAclProcessor(parts.config, parts.access, address, parts.write_in_thread),
    ]


def _pop_processors(parts: Parts, checks: PopChecks) -> list[object]:
    config, topics, pop = parts.config, parts.topics, parts.pop
    clocks = parts.clock, parts.steady_clock or parts.clock
    attempts = Attempts(pop.walks)
    return [
        PopMessageProcessor(checks, parts.filters, pop.queues, pop.polling, attempts, *clocks),
        PopNotificationProcessor(config, checks, topics, parts.store, pop, attempts, *clocks),
        PeekMessageProcessor(
            config, checks, topics, parts.store, parts.stats, pop.queues, attempts
        ),
    ]


def _writing_processors(
    parts: Parts, send_checks: SendChecks, pop_checks: PopChecks, serialize_type: SerializeType
) -> list[object]:
    """Those whose requests are served in one run."""
    config = parts.config
    answers = SendAnswers(parts.known_as.store_host, serialize_type)
    ends = EndTransactionProcessor(
        parts.config,
        parts.intake,
        send_checks,
        parts.transaction_check,
        parts.after_durable,
        parts.transaction_metrics,
        parts.clock,
        parts.patience,
        parts.access.found_check,
    )
    batches = Batches(
        send_checks, parts.intake, parts.walks, answers, config.broker_cluster_name, parts.clock
    )
    sends = SendMessageProcessor(
        parts.configuration,
        send_checks,
        parts.intake,
        answers,
        batches,
        parts.known_as.store_host,
        parts.known_as.unique_keys(),
    )
    if parts.kernel is not None:
        raw_sends = RawSends(
            parts.kernel,
            parts.configuration,
            send_checks,
            parts.intake,
            answers,
            parts.known_as.store_host,
            parts.clock,
            parts.steady_clock or parts.clock,
            ends,
        )
        if parts.access.guard is not None:
            raw_sends.with_guard(parts.access.guard)
        parts.raw_requests.append(raw_sends)
    acks = AckMessageProcessor(
        config, pop_checks, parts.intake, parts.offsets, parts.pop, parts.walks
    )
    writes = Writes(parts.intake, send_checks, answers, sends, ends, acks)
    return [writes, sends, ends, acks]


def _send_processors(parts: Parts, send_checks: SendChecks) -> list[object]:
    return [
        RecallMessageProcessor(parts.config, parts.topics, parts.intake, parts.known_as.store_host),
        ReplyMessageProcessor(
            parts.config,
            send_checks,
            parts.intake,
            parts.producers,
            parts.known_as.address,
            parts.known_as.store_host,
        ),
        SendBackProcessor(
            parts.config,
            parts.topics,
            parts.groups,
            parts.intake,
            parts.stats,
            parts.known_as.store_host,
            parts.clock,
            parts.patience,
            parts.access.found_check(Action.SUB),
        ),
    ]


def _admin_processors(parts: Parts) -> list[object]:
    return [
        AdminTopicProcessor(
            parts.config,
            parts.topics,
            parts.offsets,
            parts.store,
            parts.stats,
            parts.polling,
            parts.walks,
        ),
        AdminGroupProcessor(
            parts.config,
            parts.groups,
            parts.consumers,
            parts.offsets,
            parts.known_as.address,
            parts.walks,
        ),
        AdminOffsetProcessor(
            parts.config,
            parts.topics,
            parts.groups,
            parts.consumers,
            parts.offsets,
            parts.store,
            parts.polling,
            parts.walks,
        ),
        AdminProgressProcessor(
            parts.config,
            parts.topics,
            parts.groups,
            parts.consumers,
            parts.offsets,
            parts.store,
            parts.stats,
            parts.known_as.address,
            parts.walks,
        ),
        _admin_stats(parts),
        *_other_admin_processors(parts),
    ]


def _admin_stats(parts: Parts) -> AdminStatsProcessor:
    stats = AdminStatsProcessor(
        parts.config,
        parts.consumers,
        parts.producers,
        parts.store,
        parts.schedule,
        parts.timers,
        parts.stats,
        parts.walks,
        parts.clock,
    )
    if parts.slave is not None:
        stats.on_slave(lambda: parts.acting.acts)
    return stats


def _other_admin_processors(parts: Parts) -> list[object]:
    """Those for settings, timers and slaves."""
    return [
        AdminConfigProcessor(
            parts.config,
            parts.configuration,
            parts.topics,
            parts.store,
            parts.walks,
            parts.clock(),
        ),
        AdminTimerProcessor(parts.configuration, parts.timers),
        AdminHaProcessor(
            parts.master,
            lambda: parts.known_as.address,
            parts.slave,
            parts.acting,
            parts.controlled,
        ),
    ]
