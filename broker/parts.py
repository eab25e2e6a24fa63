# SPDX-License-Identifier: Apache-2.0
"""The parts of a broker, built once, for its service, its processors and the tests.

`Parts` owns no thread, no timer and no socket. The service opens what has files, lets the parts
hear of each other, and sets `known_as` when it knows the broker's address; only then can processors
be built. Counterpart of the fields of BrokerController.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from txrocketmq.broker.cluster.topic_routes import TopicRoutes
from txrocketmq.broker.delays.schedule import Schedule
from txrocketmq.broker.filter.consumer_filters import ConsumerFilters
from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.all_transforms import Others, all_transforms
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import Transforms
from txrocketmq.broker.pop.pop import Pop
from txrocketmq.broker.pulls.broadcast_offsets import BroadcastOffsets
from txrocketmq.broker.pulls.long_polling import LongPolling
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.light_queues import is_light, is_served
from txrocketmq.broker.tables.attributes import GROUP_ATTRIBUTES, TOPIC_ATTRIBUTES, unserved_in
from txrocketmq.broker.tables.clients import Consumers, Producers
from txrocketmq.broker.tables.group_changes import GroupChanges
from txrocketmq.broker.tables.message_request_mode import MessageRequestModes
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.queue_locks import QueueLocks
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.subscription import SubscriptionGroups, is_system_group
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.timer.delivery import DEAD_LETTER_TOPIC as TIMER_DEAD_LETTER_TOPIC
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.transaction.check import TransactionCheck
from txrocketmq.broker.transaction.metrics import TransactionMetrics
from txrocketmq.broker.transaction.question import Questions
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.settings.config_file import Configuration


@dataclass(frozen=True, slots=True)
class KnownAs:
    """How others know this broker, once it listens."""

    address: str = ""
    """The address that clients are told, "host:port"."""
    store_host: bytes = b""
    """The same address as in records: 4 or 16 bytes of IP, 4 of port."""

    def unique_keys(self) -> UniqueKeys:
        """A source of unique keys for messages that come without one."""
        return UniqueKeys(self.store_host[:-4] or bytes(4), os.getpid(), id(self))


def unanswered(_: str) -> PendingReply:
    """Answers for name servers while the broker knows none."""
    pending = PendingReply()
    pending.resolve(ConnectError("this broker has not started"))
    return pending


@dataclass(kw_only=True)
class Parts:
    """The parts of a broker.

    `clock` returns the time in milliseconds since the epoch, `steady_clock` the time by which
    durations are measured; without the latter, the former is used for both. The service provides
    the rest: `ask_route` asks a name server for the route of a topic, `wake_soon` has
    `polling.run_woken` called in a later turn of the reactor, `call_soon` anything else, and
    `in_thread` runs what may block. `walks` is the service's too; without a service a walk runs to
    its end at once.
    """

    configuration: Configuration
    """The settings of the broker: a BrokerConfig and a StoreConfig."""
    clock: Callable[[], int]
    steady_clock: Callable[[], int] | None = None
    ask_route: Callable[[str], PendingReply] = unanswered
    wake_soon: Callable[[], None] = lambda: None
    call_soon: Callable[[Callable[[], None]], object] = lambda call: call()
    in_thread: InThread = at_once
    walks: Walks = field(default_factory=lambda: Walks(lambda call: call(), lambda: 0.0))
    known_as: KnownAs = field(default_factory=KnownAs)

    config: BrokerConfig = field(init=False)
    store: MessageStore = field(init=False)
    topics: Topics = field(init=False)
    groups: SubscriptionGroups = field(init=False)
    offsets: ConsumerOffsets = field(init=False)
    broadcast_offsets: BroadcastOffsets = field(init=False)
    delay_levels: DelayLevels = field(init=False)
    intake: Intake = field(init=False)
    after_durable: AfterDurable = field(init=False)
    schedule: Schedule = field(init=False)
    timers: Timers = field(init=False)
    transaction_check: TransactionCheck = field(init=False)
    transaction_metrics: TransactionMetrics = field(init=False)
    consumers: Consumers = field(init=False)
    producers: Producers = field(init=False)
    filters: ConsumerFilters = field(init=False)
    group_changes: GroupChanges = field(init=False)
    locks: QueueLocks = field(init=False)
    modes: MessageRequestModes = field(init=False)
    routes: TopicRoutes = field(init=False)
    stats: BrokerStats = field(init=False)
    polling: LongPolling = field(init=False)
    pop: Pop = field(init=False)
    patience: Patience = field(init=False)
    _files: list[JsonFile] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Builds all parts; reads no file yet."""
        clock, steady_clock = self.clock, self.steady_clock or self.clock
        config = self.config = self.configuration.get(BrokerConfig)
        store_config = self.configuration.get(StoreConfig)
        folder = Path(store_config.store_path_root_dir) / "config"

        def file(name: str) -> JsonFile:
            self._files.append(JsonFile(folder / name))
            return self._files[-1]

        self.patience = self.walks.patience = Patience(self.in_thread)
        self.store = MessageStore(store_config, files=(files := OsFiles()))
        light = is_served(store_config)
        self.topics = Topics(config, file("topics.json"), clock, has_light_queues=light)
        self.groups = SubscriptionGroups(
            config, file("subscriptionGroup.json"), clock, has_light_queues=light
        )
        offsets_file = file("consumerOffset.json")
        self.offsets = ConsumerOffsets(offsets_file, clock)
        if light:
            light_file = file("lmqConsumerOffset.json")
            self.offsets = ConsumerOffsets(light_file, clock, before=offsets_file)
        self.delay_levels = DelayLevels(store_config.message_delay_level)
        self.consumers = Consumers(expired_ms=config.channel_expired_timeout)
        self.producers = Producers(config.channel_expired_timeout)
        self.filters = self._filters(file("consumerFilter.json"))
        self.store.set_bitmap_of(self.filters.bitmap)
        self.broadcast_offsets = BroadcastOffsets(
            config, self.consumers, self.offsets, self.store, steady_clock
        )
        self.group_changes = GroupChanges(config, self.groups, self.consumers, self.call_soon)
        self.locks = QueueLocks()
        self.modes = MessageRequestModes(file("messageRequestMode.json"))
        self.routes = TopicRoutes(self.ask_route, lambda steps: self.walks.run(steps, _raise))
        self.stats = BrokerStats(config.broker_cluster_name, self.topics.is_system, steady_clock())
        self.transaction_metrics = TransactionMetrics(file("transactionMetrics"), clock)
        self.intake = Intake(self.store, self.stats, self._transforms(store_config, steady_clock))
        self.after_durable = AfterDurable(self.intake, clock, self.call_soon)
        self._make_timers(files, file("timermetrics"))
        self.transaction_check = self._check()
        self.schedule = Schedule(
            self.delay_levels, self.intake, file("delayOffset.json"), clock, self.patience
        )
        self.polling = LongPolling(self.store, self.wake_soon, self.walks.timer)
        self.pop = self._pop(file("consumerOrderInfo.json"))

    def _transforms(self, store_config: StoreConfig, steady_clock: Callable[[], int]) -> Transforms:
        return all_transforms(
            self.config,
            self.topics,
            self.groups,
            self.locks,
            store_config,
            self.delay_levels,
            steady_clock,
            Others(
                self.transaction_metrics.add,
                self.stats.died,
                lambda due_ms: self.timers.rejected(due_ms),  # noqa: PLW0108 - made later
            ),
        )

    def _filters(self, file: JsonFile) -> ConsumerFilters:
        return ConsumerFilters(
            self.config,
            file,
            self.clock,
            lambda: max(self.clock(), self.store.flush.log_timestamp_ms),
            self.in_thread,
            lambda steps: self.walks.run(steps, _raise),
        )

    def _check(self) -> TransactionCheck:
        return TransactionCheck(
            self.config,
            self.intake,
            self.topics,
            self.offsets,
            Questions(self.producers, self.config.broker_name),
            self.transaction_metrics,
            self.after_durable,
            lambda: self.known_as.store_host,
            self.patience,
        )

    def _pop(self, order_file: JsonFile) -> Pop:
        return Pop(
            config=self.config,
            order_file=order_file,
            intake=self.intake,
            after_durable=self.after_durable,
            topics=self.topics,
            groups=self.groups,
            offsets=self.offsets,
            stats=self.stats,
            clock=self.clock,
            store_host=lambda: self.known_as.store_host,
            call_soon=self.call_soon,
            patience=self.patience,
            timer=self.walks.timer,
        )

    def _make_timers(self, files: OsFiles, file: JsonFile) -> None:
        metrics = TimerMetrics(file, self.clock)
        self.timers = Timers(files, self.intake, metrics, self.in_thread, self.patience)
        self.timers.delivery.on_dead_letters.append(self._dead_timers)
        self.topics.on_change.append(self._topic_changed)

    def _dead_timers(self, count: int, why: str) -> None:
        self.topics.create_in_heartbeat(TIMER_DEAD_LETTER_TOPIC, 1)

    def _topic_changed(self, name: str) -> None:
        if self.topics.get(name) is None:
            self.timers.metrics.forget(name)

    def load(self) -> list[str]:
        """Loads the files of all parts but the store; raises JsonFileError.

        Returns warnings about files that were broken but had a usable .bak.
        """
        parts: tuple[Any, ...] = (
            self.topics, self.groups, self.offsets, self.schedule, self.modes,
            self.filters, self.transaction_metrics, self.pop.orders, self.timers.metrics,
        )  # fmt: skip
        for part in parts:
            part.load()
        return [file.warning for file in self._files if file.warning]

    def restore(self, *, after_crash: bool = False) -> list[str]:
        """Makes up for lost files, once the store is open; returns warnings about them."""
        said: list[str] = []
        store = self.store
        queue_nums = {name: max(store.queue_ids(name), default=0) + 1 for name in store.topics()}
        restored = self.topics.restore(
            queue_nums, after_crash=after_crash, has_batches=store.has_batches
        )
        if restored:
            said.append(
                f"topics.json did not name {restored} topics that have queues in the store: they"
                " were created again, with default permissions and as many queues as have had"
                " messages"
            )
        if store.max_physical_offset <= 0 and any(
            offset > 0 for _, its in self.offsets.entries() for offset in its.values()
        ):
            said.append(
                "consumerOffset.json has offsets of messages that were consumed, but the store has"
                " no log: is another volume mounted there, or none? Nothing has been"
                " changed, but new messages are accepted"
            )
        elif after_crash and (behind := self.offsets.set_back(store.max_offset)):
            said.append(
                f"{behind} offsets of groups were beyond the ends of their queues, whose last"
                " messages were not durable yet: the groups continue at the ends"
            )
        queues = sum(
            _has_messages(store, name, each)
            for name in queue_nums
            for each in store.queue_ids(name)
        )
        if queues:
            said += self._lost_groups(queues)
            said += self._lost_progress()
        light = sum(map(is_light, queue_nums))
        if light and not is_served(self.configuration.get(StoreConfig)):
            said.append(
                f"the store has {light} light queues, but enableLmq and enableMultiDispatch are"
                " off: nothing enters them, and nobody can read them"
            )
        said += unserved_in("topic", TOPIC_ATTRIBUTES, self.topics.all())
        return said + unserved_in("group", GROUP_ATTRIBUTES, self.groups.all())

    def flush_all(self) -> None:
        """Makes everything durable at once, with what was to be put after that; raises OSError."""
        self.store.flush.flush_all()
        self.after_durable.put_all()
        self.store.flush.flush_all()

    def _lost_groups(self, queues: int) -> list[str]:
        """Returns warnings about lost groups and offsets; `queues` is how many queues have
        messages.
        """
        said: list[str] = []
        groups = {name for name in self.groups.all() if not is_system_group(name)}
        is_missing = self.groups.is_missing
        if is_missing:
            lost = len({key.split("@")[1] for key, _ in self.offsets.entries()} - groups)
            said.append(
                f"subscriptionGroup.json is missing, and so is its .bak: the {lost} groups that"
                " have offsets, and all others that existed, are created again with default"
                " settings when their consumers connect"
            )
        if self.offsets.is_empty and (groups or is_missing):
            said.append(
                f"consumerOffset.json holds no offsets, though there are {len(groups)} groups and"
                f" {queues} queues with messages: the groups begin like new ones"
            )
        return said

    def _lost_progress(self) -> list[str]:
        """Returns warnings about lost progress of delayed messages."""
        store = self.store
        waiting = [
            store.max_offset(SCHEDULE_TOPIC, each) - store.min_offset(SCHEDULE_TOPIC, each)
            for each in store.queue_ids(SCHEDULE_TOPIC)
            if _has_messages(store, SCHEDULE_TOPIC, each)
        ]
        if not waiting or not self.schedule.is_missing:
            return []
        return [
            (
                f"delayOffset.json is missing, and so is its .bak: all {messages(sum(waiting))} of"
                f" {len(waiting)} delay levels that the store still has are delivered, even if they"
                " were delivered before"
            )
        ]


def _raise(error: Exception) -> None:
    raise error


def _has_messages(store: MessageStore, topic: str, queue_id: int) -> bool:
    return store.max_offset(topic, queue_id) > store.min_offset(topic, queue_id)
