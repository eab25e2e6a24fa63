# SPDX-License-Identifier: Apache-2.0
"""The metrics of a proxy for Prometheus. The original has nothing of its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from txrocketmq.proxy.accounts.gate import Gate
from txrocketmq.proxy.grpc.counts import Counts

_PREFIX = "txrocketmq_proxy"


class ProxyMetrics:
    """Collects what was counted of calls, and the number of `connections`.

    With a `gate`, those that it has refused are among them.
    """

    def __init__(
        self,
        counts: Counts,
        connections: Callable[[], int],
        labels: Mapping[str, str],
        gate: Gate | None = None,
    ) -> None:
        self._gate = gate
        self._counts = counts
        self._connections = connections
        self.own = {"node_type": "proxy", **labels}

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; there are as many as the service has methods."""
        own = list(self.own.values())
        up = GaugeMetricFamily("rocketmq_proxy_up", "always 1", labels=list(self.own))
        up.add_metric(own, 1)
        yield up
        connections = GaugeMetricFamily(
            f"{_PREFIX}_connections", "connections of clients", labels=list(self.own)
        )
        connections.add_metric(own, self._connections())
        yield connections
        names = [*self.own, "method"]
        calls = CounterMetricFamily(
            f"{_PREFIX}_calls", "calls that have ended, by status", labels=[*names, "status"]
        )
        open_calls = GaugeMetricFamily(f"{_PREFIX}_open_calls", "calls under way", labels=names)
        received = CounterMetricFamily(
            f"{_PREFIX}_messages_received", "messages of gRPC that came", labels=names
        )
        sent = CounterMetricFamily(
            f"{_PREFIX}_messages_sent", "messages of gRPC that were sent", labels=names
        )
        times = HistogramMetricFamily(
            f"{_PREFIX}_call_milliseconds", "how long calls took", labels=names
        )
        for method, its in self._counts.methods.items():
            labels = [*own, method]
            for status, number in its.ended.items():
                calls.add_metric([*labels, status.name], number)
            open_calls.add_metric(labels, its.open)
            received.add_metric(labels, its.received)
            sent.add_metric(labels, its.sent)
            times.add_metric(labels, its.times.buckets(), its.times.total)
        yield from (calls, open_calls, received, sent, times)
        if self._gate is not None:
            refused = CounterMetricFamily(
                f"{_PREFIX}_calls_refused",
                "calls that need another account, or none that there is",
                labels=[*names, "reason"],
            )
            for (method, reason), number in self._gate.refused.items():
                refused.add_metric([*own, method, reason], number)
            yield refused
