# SPDX-License-Identifier: Apache-2.0
"""The metrics of what the peers of a server share: its time and its memory.

The original has none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from txrocketmq.remoting.transport.strangers import Shared


class PeerMetrics:
    """Collects the metrics, each with the same labels."""

    def __init__(self, shared: Shared, labels: Mapping[str, str]) -> None:
        self._shared = shared
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; the time this takes does not depend on the number of peers."""
        held, turns = self._shared.held, self._shared.turns
        for family, name, text, value in (
            (GaugeMetricFamily, "waiting", "peers that wait for their turn", turns.waiting),
            (GaugeMetricFamily, "held_bytes", "bytes that are held for peers", held.total),
            (GaugeMetricFamily, "crowded", "peers that are not read from", held.crowded),
            (CounterMetricFamily, "refused", "peers that held too much", held.refused),
        ):
            metric = family(f"txrocketmq_peers_{name}", text, labels=list(self._labels))
            metric.add_metric(list(self._labels.values()), value)
            yield metric
