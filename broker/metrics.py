# SPDX-License-Identifier: Apache-2.0
"""The metrics of a broker for Prometheus, named and labelled as in the original's exporter (5.x).

Everything is read from counters of the parts; nothing here is on the path of a message. The sizes
of messages and the times of requests are counted only when they are shown, and once for all that
came in one read. The type of a message is known by its topic: delay in the schedule topic,
transaction in that of half messages, otherwise normal. docs/operations.md has the list.

Java: BrokerMetricsManager, ConsumerLagCalculator, DefaultStoreMetricsManager, PopMetricsManager,
RemotingMetricsManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from txrocketmq.broker.parts import Parts
from txrocketmq.broker.store.disk.in_memory import ColdRead
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.store.get.jumps import KINDS
from txrocketmq.broker.store_services import ON_DISK
from txrocketmq.broker.tables.clients import CONSUME_ACTIVELY, Client
from txrocketmq.broker.tables.subscription import is_system_group
from txrocketmq.remoting.codes import RequestCode, ResponseCode, code_name, version_name
from txrocketmq.remoting.host.life import Gauge
from txrocketmq.remoting.message.topics import (
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
)
from txrocketmq.remoting.process.histogram import Histogram
from txrocketmq.remoting.rpc_times import RpcTimes

METER: Final = "broker-meter"
_TYPES: Final[Mapping[str, str]] = {SCHEDULE_TOPIC: "delay", TRANS_HALF_TOPIC: "transaction"}
_OWN_LABELS: Final = ("cluster", "node_type", "node_id", "otel_scope_name")
_KIND: Final = ("language", "version", "protocol_type")
_LATER: Final = (
    "lag_latency_milliseconds",
    "inflight_messages",
    "ready_messages",
    "queueing_latency_milliseconds",
)
"""Metrics that are computed together with the lag of a group, and sent after it: all samples of a
name have to follow one another."""
_HISTOGRAMS_A_PIECE: Final = 3
_TIMER_BOUNDS_S: Final = (5, 60, 300, 900, 3600, 4 * 3600, 8 * 3600, 24 * 3600)
_SLOTS_A_PIECE: Final = 2_000
"""How many slots of the timer wheel are looked at in a step."""
_A_PIECE: Final = 32
"""How many samples a piece of a metric has, and how many clients are counted in a step."""

Family = GaugeMetricFamily | CounterMetricFamily

Collecting = Iterator[Metric | ColdRead]
Sample = tuple[tuple[str, ...], float]
"""The values of the labels, and the value of the sample."""


class Behind(NamedTuple):
    """How far a group is behind in a topic; a time of -1 means that there is none."""

    not_consumed: int = 0
    oldest_ms: int = -1
    """When the oldest message that is not consumed was stored, in ms."""
    in_flight: int = 0
    """Messages that consumers have got and not committed."""
    ready: int = 0
    """Messages that no consumer has got yet."""
    oldest_ready_ms: int = -1


class BrokerMetrics:
    """Collects the metrics.

    `labels` are those that the settings add to each metric; `times` counts the durations of
    requests. `gauges` are those that parts declare; what has many samples, or must read the store,
    is collected here.
    """

    def __init__(
        self,
        parts: Parts,
        labels: Mapping[str, str],
        now_ms: Callable[[], int],
        times: RpcTimes | None = None,
        gauges: Sequence[Gauge] = (),
    ) -> None:
        self._parts = parts
        self._now_ms = now_ms
        self._times = times or RpcTimes()
        self._gauges = gauges
        if parts.stats.sizes is None:
            parts.stats.sizes = {}
        config = parts.config
        own = config.broker_cluster_name, "broker", config.broker_name, METER
        self.own = {**dict(zip(_OWN_LABELS, own, strict=True)), **labels}

    def collect(self) -> Collecting:
        """Yields all metrics in pieces of a few samples, those of one name in succession."""
        yield from self._whole()
        yield from self._clients()
        yield from self._in()
        yield from self._out()
        yield from self._lags()
        yield from self._dead_letters()
        yield from self._transactions()
        yield from self._pops()
        if self._parts.store.config.timer_wheel_enable:
            yield from self._timers()
        yield from self._requests()
        yield from self._refused()

    # ------------------------------------------------------------------ families

    def _one(self, name: str, value: float, **labels: str) -> Metric:
        return self._piece(
            GaugeMetricFamily, name, tuple(labels), [(tuple(labels.values()), value)]
        )

    def _pieces(
        self,
        family: type[Family],
        name: str,
        labels: tuple[str, ...],
        samples: Iterable[Sample | None],
    ) -> Collecting:
        """Yields a metric with many samples in small pieces, each of which a None ends."""
        piece: list[Sample] = []
        for sample in samples:
            if sample is not None:
                piece.append(sample)
            if sample is None or len(piece) == _A_PIECE:
                yield self._piece(family, name, labels, piece)
                piece = []
        if piece:
            yield self._piece(family, name, labels, piece)

    def _piece(
        self,
        family: type[Family],
        name: str,
        labels: tuple[str, ...],
        samples: Iterable[Sample],
    ) -> Metric:
        metric = family(name, name.replace("_", " "), labels=[*self.own, *labels])
        own = tuple(self.own.values())
        for values, value in samples:
            metric.add_metric(own + values, value)
        return metric

    def _histograms(
        self,
        name: str,
        labels: tuple[str, ...],
        samples: Iterable[tuple[tuple[str, ...], Histogram]],
    ) -> Collecting:
        """Yields a metric of histograms in small pieces, as each histogram is many samples."""
        own = tuple(self.own.values())
        piece: HistogramMetricFamily | None = None
        for number, (values, histogram) in enumerate(samples):
            if piece is None:
                text = name.replace("_", " ")
                piece = HistogramMetricFamily(name, text, labels=[*self.own, *labels])
            piece.add_metric(own + values, histogram.buckets(), histogram.total)
            if number % _HISTOGRAMS_A_PIECE == _HISTOGRAMS_A_PIECE - 1:
                yield piece
                piece = None
        if piece is not None:
            yield piece

    # --------------------------------------------------------------- collecting

    def _whole(self) -> Collecting:
        """Yields the metrics that exist once: those of the broker and of its store."""
        store = self._parts.store
        oldest_ms = yield from when_in_memory(store.earliest_message_ms)
        age_ms = self._now_ms() - oldest_ms if oldest_ms >= 0 else 0
        yield _target()
        for each in self._gauges:
            yield self._one(each.name, max(each.value(), 0), **each.labels)
        yield self._one(
            "rocketmq_storage_message_reserve_time_milliseconds", max(age_ms, 0), **ON_DISK
        )
        disk = tuple(ON_DISK.values())
        damages = (("no_record", store.damaged.count), ("wrong_body", store.wrong_bodies.count))
        found = [((kind, *disk), count) for kind, count in damages]
        name = "txrocketmq_storage_damaged_messages"  # the original looks for none
        yield self._piece(CounterMetricFamily, name, ("damage", *ON_DISK), found)
        jumps = [((kind, *disk), store.jumps.messages[kind]) for kind in KINDS]
        name = "txrocketmq_storage_jumped_messages"
        yield self._piece(CounterMetricFamily, name, ("reader", *ON_DISK), jumps)
        kernel = self._parts.kernel
        label = ("none" if kernel is None else kernel.name,)
        for name, code in (
            ("txrocketmq_kernel_sends", RequestCode.SEND_MESSAGE),
            ("txrocketmq_kernel_pulls", RequestCode.PULL_MESSAGE),
        ):
            taken = [h.taken for h in self._parts.raw_requests if code in h.request_codes]
            yield self._piece(CounterMetricFamily, name, ("kernel",), [(label, sum(taken))])

    def _clients(self) -> Collecting:
        yield from self._pieces(
            GaugeMetricFamily, "rocketmq_producer_connections", _KIND, self._producing()
        )
        yield from self._pieces(
            GaugeMetricFamily,
            "rocketmq_consumer_connections",
            ("consumer_group", "consume_mode", "is_system", *_KIND),
            self._consuming(),
        )

    def _producing(self) -> Iterator[Sample | None]:
        producers = self._parts.producers
        counted: Counter[tuple[str, ...]] = Counter()
        for group in producers.groups():
            yield from _count(counted, producers.members(group))
        yield from counted.items()

    def _consuming(self) -> Iterator[Sample | None]:
        for each in self._parts.consumers.groups():
            mode = "pull" if each.consume_type == CONSUME_ACTIVELY else "push"
            labels = (each.name, mode, _true(is_system_group(each.name)))
            counted: Counter[tuple[str, ...]] = Counter()
            yield from _count(counted, list(each.members.values()))
            for kind, count in counted.items():
                yield (*labels, *kind), count

    def _in(self) -> Collecting:
        stats = self._parts.stats
        for name, at in (("rocketmq_messages_in", 1), ("rocketmq_throughput_in", 2)):
            yield from self._pieces(
                CounterMetricFamily,
                name,
                ("topic", "message_type", "is_system"),
                (
                    ((each[0], _TYPES.get(each[0], "normal"), _true(each[3])), int(each[at]))
                    for each in stats.topics_put()
                ),
            )

        yield from self._histograms(
            "rocketmq_message_size",
            ("topic", "message_type", "is_system"),
            (
                (
                    (
                        topic,
                        _TYPES.get(topic, "normal"),
                        _true(self._parts.topics.is_system(topic)),
                    ),
                    sizes,
                )
                for topic, sizes in list((self._parts.stats.sizes or {}).items())
            ),
        )

    def _out(self) -> Collecting:
        stats = self._parts.stats
        for name, at in (("rocketmq_messages_out", 2), ("rocketmq_throughput_out", 3)):
            yield from self._pieces(
                CounterMetricFamily,
                name,
                ("topic", "consumer_group", "is_system"),
                (
                    ((each[0], each[1], _true(each[4] or is_system_group(each[1]))), int(each[at]))
                    for each in stats.groups_got()
                ),
            )

    def _lags(self) -> Collecting:
        """Yields the lags of groups that have members now, in the topics that they subscribe to.

        Retry topics are left out: in the original, too, only those of POP count as retries.
        """
        labels = ("consumer_group", "topic", "is_retry", "is_system")
        parts, now_ms = self._parts, self._now_ms()
        found: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in _LATER}
        for group in parts.consumers.groups():
            for topic in list(group.subscriptions):
                if topic.startswith(RETRY_PREFIX):
                    continue
                behind = yield from self._behind(group.name, topic)
                is_system = parts.topics.is_system(topic) or is_system_group(group.name)
                values = (group.name, topic, "false", _true(is_system))
                yield self._piece(
                    GaugeMetricFamily,
                    "rocketmq_consumer_lag_messages",
                    labels,
                    [(values, behind.not_consumed)],
                )
                for name, value in zip(
                    _LATER,
                    (
                        _age(now_ms, behind.oldest_ms),
                        behind.in_flight,
                        behind.ready,
                        _age(now_ms, behind.oldest_ready_ms),
                    ),
                    strict=True,
                ):
                    found[name].append((values, value))
        for name, samples in found.items():
            yield from self._pieces(GaugeMetricFamily, f"rocketmq_consumer_{name}", labels, samples)

    def _behind(self, group: str, topic: str) -> Steps[Behind]:
        """How far a group is behind in a topic, in all of its queues."""
        parts, store = self._parts, self._parts.store
        offsets, pulled = parts.offsets.of(group, topic), parts.offsets.pulled_of(group, topic)
        not_consumed = in_flight = ready = 0
        oldest: list[int] = []
        oldest_ready: list[int] = []
        for queue_id in offsets.keys() | pulled.keys():
            start, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
            given = min(pulled.get(queue_id, -1), end)
            committed = offsets.get(queue_id, -1)
            if 0 <= committed < end:
                offset = max(committed, start)
                not_consumed += end - offset
                look = partial(store.store_time_at, topic, queue_id, offset)
                oldest.append((yield from when_in_memory(look)))
                in_flight += max(given - offset, 0)
            if 0 <= given < end:
                offset = max(given, start)
                ready += end - offset
                look = partial(store.store_time_at, topic, queue_id, offset)
                oldest_ready.append((yield from when_in_memory(look)))
        return Behind(not_consumed, _least(oldest), in_flight, ready, _least(oldest_ready))

    def _dead_letters(self) -> Collecting:
        parts = self._parts
        yield from self._pieces(
            CounterMetricFamily,
            "rocketmq_send_to_dlq_messages",
            ("consumer_group", "topic", "is_system"),
            (
                ((group, topic, _true(parts.topics.is_system(topic) or is_system_group(group))), n)
                for topic, group, n in parts.stats.dead_letters()
            ),
        )

    def _refused(self) -> Collecting:
        """Yields how many requests were refused for want of an account or of a policy."""
        access = self._parts.access
        if access.audit.refused:
            yield from self._pieces(
                CounterMetricFamily,
                "txrocketmq_access_refused",
                ("code", "why"),
                (
                    ((code_name(code) if code >= 0 else "UNKNOWN", why), count)
                    for (code, why), count in list(access.audit.refused.items())
                ),
            )

    def _transactions(self) -> Collecting:
        """Yields the metrics of transactions, by the topic that a message is for."""
        metrics = self._parts.transaction_metrics
        open_now, ends = metrics.counts(), list(metrics.ends.items())
        labels = ("topic",)
        for name, family, samples in (
            ("half_messages", GaugeMetricFamily, open_now.items()),
            ("commit_messages", CounterMetricFamily, [(t, e.committed) for t, e in ends]),
            ("rollback_messages", CounterMetricFamily, [(t, e.rolled_back) for t, e in ends]),
        ):
            values = (((topic,), count) for topic, count in samples)
            yield from self._pieces(family, f"rocketmq_{name}", labels, values)
        ages = (((topic,), its.ages_s) for topic, its in ends)
        yield from self._histograms("rocketmq_finish_message_latency_milliseconds", labels, ages)

    def _pops(self) -> Collecting:
        pop, counts = self._parts.pop, self._parts.pop.metrics
        behind = yield from pop.revive.behind(self._now_ms())
        for name, at in (("lag", 1), ("latency", 2)):
            values = (((str(each[0]),), each[at]) for each in behind)
            metric = f"rocketmq_pop_revive_{name}_milliseconds"  # the original's unit of both
            yield from self._pieces(GaugeMetricFamily, metric, ("queue_id",), values)
        of_group = ("consumer_group", "topic")
        for name, more, counter in (
            ("in_message", ("revive_message_type", "put_status"), counts.written),
            ("out_message", ("queue_id", "revive_message_type"), counts.read),
            ("retry_messages", ("put_status",), counts.brought_back),
        ):
            samples: list[Sample] = list(counter.items())
            metric = f"rocketmq_pop_revive_{name}"
            yield from self._pieces(CounterMetricFamily, metric, (*of_group, *more), samples)

    def _timers(self) -> Collecting:
        timers, now_ms = self._parts.timers, self._now_ms()
        is_open, wheelwork = timers.is_open, timers.wheelwork
        behind_since_ms = -1
        if is_open:
            behind_since_ms = yield from when_in_memory(timers.enqueue.behind_since_ms)
        for name, value in (
            ("enqueue_lag", timers.enqueue.behind if is_open else 0),
            ("enqueue_latency_milliseconds", _age(now_ms, behind_since_ms)),
            ("dequeue_lag", wheelwork.waiting),
            ("dequeue_latency_milliseconds", now_ms - wheelwork.read_ms if is_open else 0),
        ):
            yield self._one(f"rocketmq_timer_{name}", max(value, 0), **ON_DISK)
        labels, disk = ("topic", *ON_DISK), tuple(ON_DISK.values())
        flows = list(timers.metrics.flows.items())
        for name, family, counted in (
            ("timing_messages", GaugeMetricFamily, timers.metrics.counts().items()),
            ("timer_enqueue", CounterMetricFamily, [(t, flow.entered) for t, flow in flows]),
            ("timer_dequeue", CounterMetricFamily, [(t, flow.left) for t, flow in flows]),
        ):
            values = (((topic, *disk), count) for topic, count in counted)
            yield from self._pieces(family, f"rocketmq_{name}", labels, values)
        delays = (((topic, *disk), flow.delays_s) for topic, flow in flows)
        yield from self._histograms("rocketmq_delay_message_latency_seconds", labels, delays)
        yield from self._pieces(
            GaugeMetricFamily,
            "rocketmq_timer_message_snapshot",
            ("timer_bound_s", *ON_DISK),
            self._due_within(now_ms),
        )

    def _due_within(self, now_ms: int) -> Iterator[Sample | None]:
        """Counts the timer messages that are due between two bounds; yields None to pause."""
        wheel, disk = self._parts.timers.wheelwork.wheel, tuple(ON_DISK.values())
        after_ms = 0
        for bound_s in _TIMER_BOUNDS_S:
            count = 0
            for looked, at_ms in enumerate(range(after_ms, bound_s * 1000, wheel.precision_ms)):
                slot = wheel.slot(now_ms + at_ms) if self._parts.timers.is_open else None
                count += 0 if slot is None else slot.num
                if looked % _SLOTS_A_PIECE == _SLOTS_A_PIECE - 1:
                    yield None
            yield (str(bound_s), *disk), count
            after_ms = bound_s * 1000

    def _requests(self) -> Collecting:
        yield from self._histograms(
            "rocketmq_rpc_latency_milliseconds",
            ("protocol_type", "request_code", "response_code", "is_long_polling", "result"),
            (
                (
                    (
                        "remoting",
                        _named(RequestCode, kind.code),
                        _named(ResponseCode, kind.answer),
                        _true(kind.is_held),
                        "oneway" if kind.is_oneway else "success",
                    ),
                    histogram,
                )
                for kind, histogram in self._times.items()
            ),
        )


def _named(codes: type[IntEnum], code: int) -> str:
    """The original's name of a code; the number if the code is unknown."""
    try:
        return codes(code).name.lower()
    except ValueError:
        return str(code)


def _least(times_ms: Sequence[int]) -> int:
    """The earliest of these times; negative ones, of messages that do not exist, are ignored."""
    return min((each for each in times_ms if each >= 0), default=-1)


def _age(now_ms: int, stored_ms: int) -> int:
    return max(now_ms - stored_ms, 0) if stored_ms >= 0 else 0


def _target() -> Metric:
    """The metric at the end of the output of OpenTelemetry's exporters."""
    target = GaugeMetricFamily("target_info", "target info")
    target.add_metric([], 1)
    return target


def _count(counted: Counter[tuple[str, ...]], members: Sequence[Client]) -> Iterator[None]:
    """Counts members by kind; yields after each step of a few members."""
    for at in range(0, len(members), _A_PIECE):
        counted.update(map(_kind, members[at : at + _A_PIECE]))
        yield


def _kind(client: Client) -> tuple[str, ...]:
    return client.language.lower(), version_name(client.version).lower(), "remoting"


def _true(value: object) -> str:
    return "true" if value else "false"
