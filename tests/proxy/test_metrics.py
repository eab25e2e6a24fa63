# SPDX-License-Identifier: Apache-2.0
"""The metrics of a proxy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from txrocketmq.proxy.grpc.counts import Counts
from txrocketmq.proxy.grpc.status import GrpcStatus
from txrocketmq.proxy.metrics import ProxyMetrics


def test_calls_are_told_by_method_and_status() -> None:
    counts = Counts()
    of = counts.of("SendMessage")
    for status in [GrpcStatus.OK] * 3 + [GrpcStatus.UNAVAILABLE]:
        of.end(status)
    of.open, of.received, of.sent = 2, 6, 4
    of.times.add(7)
    samples = {
        (each.name, each.labels.get("status") or each.labels.get("le")): each.value
        for metric in ProxyMetrics(counts, lambda: 5, {"host": "h"}).collect()
        for each in metric.samples
        if each.labels.get("method", "SendMessage") == "SendMessage"
    }
    assert samples["rocketmq_proxy_up", None] == 1
    assert samples["txrocketmq_proxy_connections", None] == 5
    assert samples["txrocketmq_proxy_calls_total", "OK"] == 3
    assert samples["txrocketmq_proxy_calls_total", "UNAVAILABLE"] == 1
    assert samples["txrocketmq_proxy_open_calls", None] == 2
    assert samples["txrocketmq_proxy_messages_received_total", None] == 6
    assert samples["txrocketmq_proxy_messages_sent_total", None] == 4
    assert samples["txrocketmq_proxy_call_milliseconds_bucket", "5.0"] == 0
    assert samples["txrocketmq_proxy_call_milliseconds_bucket", "10.0"] == 1
    assert samples["txrocketmq_proxy_call_milliseconds_sum", None] == 7


def test_refused_calls_are_told_by_method_and_reason() -> None:
    gate: Any = SimpleNamespace(refused={("SendMessage", "wrong signature"): 2})
    samples = [
        (each.labels["method"], each.labels["reason"], each.value)
        for metric in ProxyMetrics(Counts(), lambda: 0, {}, gate).collect()
        for each in metric.samples
        if each.name == "txrocketmq_proxy_calls_refused_total"
    ]
    assert samples == [("SendMessage", "wrong signature", 2)]
