# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.certificates import certified
from txrocketmq.remoting.settings.open_ports import warn_of_metrics, warn_of_requests
from txrocketmq.remoting.settings.tls import TlsConfig


def said(warn: Callable[[], None]) -> list[str]:
    with capturedLogs() as events:
        warn()
    return [formatEvent(event) for event in events]


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "192.0.2.7", "2001:db8::7", "broker.example"]
)
def test_a_port_that_others_reach_is_warned_of(host: str) -> None:
    (requests,) = said(lambda: warn_of_requests(host, 10911, TlsConfig()))
    (metrics,) = said(lambda: warn_of_metrics(host, 5557))
    where = host or "0.0.0.0"
    assert requests.startswith(f"everybody who reaches port 10911 of {where} may read, change and ")
    assert "bindAddress=127.0.0.1" in requests
    assert metrics.startswith(f"everybody who reaches port 5557 of {where} may read the metrics")
    assert "metricsPromExporterHost=127.0.0.1" in metrics


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_port_of_this_machine_alone_is_not(host: str) -> None:
    assert said(lambda: warn_of_requests(host, 10911, TlsConfig())) == []
    assert said(lambda: warn_of_metrics(host, 5557)) == []


def test_certificates_keep_strangers_out_if_they_are_demanded(tmp_path: Path) -> None:
    own = certified(tmp_path, "server")
    files: dict[str, Any] = {"test_mode": False, "server_cert_path": own, "server_key_path": own}
    asks: dict[str, Any] = {"server_client_auth": "require", "server_auth_client": True}
    for settings, warnings in (
        ({"server_mode": "enforcing"}, 1),  # encryption alone lets everybody in
        ({"server_mode": "enforcing", **files}, 1),
        ({"server_mode": "permissive", **files, **asks}, 1),
        ({"server_mode": "enforcing", **files, "server_auth_client": True}, 1),
        ({"server_mode": "enforcing", **files, **asks}, 0),
    ):
        assert len(said(partial(warn_of_requests, "", 1, TlsConfig(**settings)))) == warnings
