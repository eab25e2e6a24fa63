# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs, formatEvent

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.metrics_port import MetricsPort

CONFIG = NamesrvConfig(bind_address="10.0.0.1", metrics_label="uid:x")


@pytest.mark.parametrize(("host", "told"), [("", "10.0.0.1"), ("127.0.0.1", "127.0.0.1")])
def test_it_opens_where_it_is_switched_on(host: str, told: str) -> None:
    reactor = MemoryReactorClock()
    config = dataclasses.replace(
        CONFIG, metrics_exporter_type="PROM", metrics_prom_exporter_host=host
    )
    given: list[Mapping[str, str]] = []

    def collecting(labels: Mapping[str, str]) -> Any:
        given.append(labels)
        return _nothing

    port = MetricsPort()
    port.open(Clock(reactor), config, collecting)
    ((number, _, _, interface),) = reactor.tcpServers
    assert (number, interface) == (5557, told)
    assert given == [{"uid": "x"}]
    port.close()


def test_a_port_that_is_taken_is_told_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    reactor = MemoryReactorClock()

    def taken(*_: object, **__: object) -> None:
        raise CannotListenError("", 5557, OSError(98, "in use"))

    monkeypatch.setattr(reactor, "listenTCP", taken)
    config = dataclasses.replace(CONFIG, metrics_exporter_type="PROM")
    with pytest.raises(OSError, match="5557 of 10.0.0.1 for metrics: .*metricsPromExporterPort"):
        MetricsPort().open(Clock(reactor), config, lambda _: _nothing)


def _nothing() -> Iterator[Any]:
    return iter(())


def test_else_there_is_none() -> None:
    reactor = MemoryReactorClock()
    port = MetricsPort()
    port.open(Clock(reactor), CONFIG, lambda _: _nothing)
    assert (port.port, reactor.tcpServers) == (0, [])
    port.close()


def test_servers_without_metrics_do_not_import_what_they_need() -> None:
    program = """
import sys
import txrocketmq.broker.service, txrocketmq.namesrv.service, txrocketmq.cli.servers.standalone
print([name for name in ("prometheus_client", "twisted.web.server", "logging.handlers",
                         "twisted.python.logfile") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("host", "count"), [("0.0.0.0", 1), ("127.0.0.1", 0)])
def test_a_port_that_others_reach_is_announced(host: str, count: int) -> None:
    config = dataclasses.replace(
        CONFIG, metrics_exporter_type="PROM", metrics_prom_exporter_host=host
    )
    with capturedLogs() as events:
        MetricsPort().open(Clock(MemoryReactorClock()), config, lambda _: _nothing)
    said = [formatEvent(each) for each in events]
    assert len([each for each in said if each.startswith("everybody who reaches")]) == count
