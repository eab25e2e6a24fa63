# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.certificates import certified
from txrocketmq.remoting.settings.open_ports import of_metrics, of_requests
from txrocketmq.remoting.settings.tls import TlsConfig


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "192.0.2.7", "2001:db8::7", "broker.example"]
)
def test_a_port_that_others_reach_is_warned_of(host: str) -> None:
    requests, metrics = of_requests(host, 10911, TlsConfig()), of_metrics(host, 5557)
    where = host or "0.0.0.0"
    assert requests.startswith(f"everybody who reaches port 10911 of {where} may read, change and ")
    assert "bindAddress=127.0.0.1" in requests
    assert metrics.startswith(f"everybody who reaches port 5557 of {where} may read the metrics")
    assert "metricsPromExporterHost=127.0.0.1" in metrics


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_port_of_this_machine_alone_is_not(host: str) -> None:
    assert of_requests(host, 10911, TlsConfig()) == of_metrics(host, 5557) == ""


def test_certificates_keep_strangers_out_if_they_are_demanded(tmp_path: Path) -> None:
    own = certified(tmp_path, "server")
    files: dict[str, Any] = {"test_mode": False, "server_cert_path": own, "server_key_path": own}
    asks: dict[str, Any] = {"server_client_auth": "require", "server_auth_client": True}
    for settings, warns in (
        ({"server_mode": "enforcing"}, True),  # encryption alone lets everybody in
        ({"server_mode": "enforcing", **files}, True),
        ({"server_mode": "permissive", **files, **asks}, True),
        ({"server_mode": "enforcing", **files, "server_auth_client": True}, True),
        ({"server_mode": "enforcing", **files, **asks}, False),
    ):
        assert bool(of_requests("", 1, TlsConfig(**settings))) is warns


def test_accounts_need_encryption() -> None:
    told = of_requests("", 10911, TlsConfig(), has_accounts=True)
    assert told.startswith(
        "requests to port 10911 of 0.0.0.0 need an account, but whoever sees one"
    )
    assert "tls.server.mode=enforcing" in told
    assert not of_requests("", 10911, TlsConfig(server_mode="enforcing"), has_accounts=True)
    assert not of_requests("127.0.0.1", 10911, TlsConfig(), has_accounts=True)
