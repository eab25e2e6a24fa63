# SPDX-License-Identifier: Apache-2.0
"""The metrics of a name server for Prometheus.

The original has no metrics of its name server; these are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from txrocketmq.namesrv.routes.route_table import RouteTable

_HELP: Final[Mapping[str, str]] = {
    "txrocketmq_namesrv_brokers": "brokers that live",
    "txrocketmq_namesrv_topics": "topics that some broker has",
    "txrocketmq_namesrv_connections": "connections of brokers and clients",
}


class NamesrvMetrics:
    """Collects the metrics. `connections` returns the number of connections."""

    def __init__(
        self, table: RouteTable, connections: Callable[[], int], labels: Mapping[str, str]
    ) -> None:
        self._table = table
        self._connections = connections
        self.own = {"node_type": "nameserver", **labels}

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; the time this takes does not depend on the number of brokers or
        topics.
        """
        values = (self._table.live_brokers, self._table.topic_count, self._connections())
        for (name, text), value in zip(_HELP.items(), values, strict=True):
            gauge = GaugeMetricFamily(name, text, labels=list(self.own))
            gauge.add_metric(list(self.own.values()), value)
            yield gauge
