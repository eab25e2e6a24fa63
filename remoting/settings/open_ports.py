# SPDX-License-Identifier: Apache-2.0
"""Open ports: what a server says at its start of ports that strangers can reach.

Whoever reaches such a port may do everything there, since the servers know no accounts. The
original says nothing about this.
"""

from __future__ import annotations

from twisted.logger import Logger

from txrocketmq.remoting.primitives.networks import is_loopback
from txrocketmq.remoting.settings.tls import TlsConfig

log = Logger()


def warn_of_requests(host: str, port: int, tls: TlsConfig) -> None:
    """Warns of a port for requests, unless only this machine or holders of a certificate get in."""
    if not is_loopback(host) and not tls.keeps_strangers_out:
        log.warn(
            "everybody who reaches port {port} of {host} may read, change and delete everything"
            " here: listen on this machine only (bindAddress=127.0.0.1), demand certificates"
            " (tls.server.mode=enforcing with tls.server.need.client.auth=require), or let a"
            " firewall decide who reaches it",
            host=host or "0.0.0.0",
            port=port,
        )


def warn_of_metrics(host: str, port: int) -> None:
    """Warns of a port for metrics, which nobody needs a certificate for."""
    if not is_loopback(host):
        log.warn(
            "everybody who reaches port {port} of {host} may read the metrics, with the names of"
            " topics and groups: set metricsPromExporterHost=127.0.0.1, or let a firewall decide"
            " who reaches it",
            host=host or "0.0.0.0",
            port=port,
        )
