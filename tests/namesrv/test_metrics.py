# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.fakes import NOW_MS
from tests.namesrv.conftest import registration, table_with
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.housekeeping import BrokerHousekeeping
from txrocketmq.namesrv.metrics import NamesrvMetrics
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Turns
from txrocketmq.remoting.host.exporter import exposition
from txrocketmq.remoting.host.life import Gauge
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.transport.client import Connections


def never() -> Connections:
    raise AssertionError("no broker is to be told")


def gauges_of(table: RouteTable) -> list[Gauge]:
    """The gauges of a name server with five connections."""
    configuration = Configuration((NamesrvConfig(),), {})
    brokers = BrokerHousekeeping(
        table, configuration, lambda: NOW_MS, Turns(print, lambda: 0.0), never
    ).life()
    return [*brokers.gauges, Gauge("txrocketmq_namesrv_connections", lambda: 5)]


def test_brokers_topics_and_connections_are_counted() -> None:
    table = table_with()
    table.register(registration(), "a", NOW_MS)
    table.register(registration(name="broker-b", port=20911), "b", NOW_MS)
    text = exposition(NamesrvMetrics(gauges_of(table), {"uid": "x"}).collect()).decode()
    found = {
        sample.name: (sample.value, sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    labels = {"node_type": "nameserver", "uid": "x"}
    assert found["txrocketmq_namesrv_brokers"] == (2, labels)
    assert found["txrocketmq_namesrv_topics"] == (2, labels)
    assert found["txrocketmq_namesrv_connections"] == (5, labels)
    assert found["process_resident_memory_bytes"][0] > 0
