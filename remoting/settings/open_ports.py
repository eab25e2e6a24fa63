# SPDX-License-Identifier: Apache-2.0
"""Open ports: what a server says at its start of ports that strangers can reach.

Without accounts, whoever reaches such a port may do everything there. With accounts but without
encryption, whoever sees a request can send it again, also as another one, since the signature says
nothing about time and code. The original says nothing about this.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.primitives.networks import is_loopback
from txrocketmq.remoting.settings.tls import ENFORCING, TlsConfig

_ALL: Final = "0.0.0.0"


def of_requests(host: str, port: int, tls: TlsConfig, *, has_accounts: bool = False) -> str:
    """Returns a warning of a port for requests; none if it is for this machine only, or lets nobody
    in without a certificate, or without an account over an encrypted connection.
    """
    if is_loopback(host) or tls.keeps_strangers_out:
        return ""
    if has_accounts:
        if tls.server_mode == ENFORCING:
            return ""
        return (
            f"requests to port {port} of {host or _ALL} need an account, but whoever sees one on"
            " its way can send it again: encrypt all connections (tls.server.mode=enforcing)"
        )
    return (
        f"everybody who reaches port {port} of {host or _ALL} may read, change and delete"
        " everything here: listen on this machine only (bindAddress=127.0.0.1), demand certificates"
        " (tls.server.mode=enforcing with tls.server.need.client.auth=require), or let a firewall"
        " decide who reaches it"
    )


def of_metrics(host: str, port: int) -> str:
    """Returns a warning of a port for metrics; none if only this machine gets in."""
    if is_loopback(host):
        return ""
    return (
        f"everybody who reaches port {port} of {host or _ALL} may read the metrics, with the names"
        " of topics and groups: set metricsPromExporterHost=127.0.0.1, or let a firewall decide who"
        " reaches it"
    )
