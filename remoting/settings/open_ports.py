# SPDX-License-Identifier: Apache-2.0
"""Open ports: what a server says at its start of ports that strangers can reach.

Whoever reaches such a port may do everything there, since the servers have no accounts. The
original says nothing about this.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.primitives.networks import is_loopback
from txrocketmq.remoting.settings.tls import TlsConfig

_ALL: Final = "0.0.0.0"


def of_requests(host: str, port: int, tls: TlsConfig) -> str:
    """Returns a warning of a port for requests; none if it is for this machine only, or lets nobody
    in without a certificate.
    """
    if is_loopback(host) or tls.keeps_strangers_out:
        return ""
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
