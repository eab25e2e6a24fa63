# SPDX-License-Identifier: Apache-2.0
"""The metrics of a name server for Prometheus.

The original has no metrics of its name server; these are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from txrocketmq.remoting.host.life import Gauge


class NamesrvMetrics:
    """Collects the gauges of all parts."""

    def __init__(self, gauges: Sequence[Gauge], labels: Mapping[str, str]) -> None:
        self._gauges = gauges
        self.own = {"node_type": "nameserver", **labels}

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics, in a time that does not depend on the number of brokers or topics."""
        for each in self._gauges:
            labels = {**self.own, **each.labels}
            gauge = GaugeMetricFamily(each.name, each.help, labels=list(labels))
            gauge.add_metric(list(labels.values()), each.value())
            yield gauge
