# SPDX-License-Identifier: Apache-2.0
"""The proxy: builds its parts, connects them, starts and stops them.

It is a server of its own (`txrocketmq proxy`), or the port for gRPC of `txrocketmq standalone`.
Either way it reaches name servers and brokers over the network. Counterpart of ProxyStartup.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.logger import Logger

from txrocketmq.proxy.accounts.config import NO_CREDENTIALS, AccountsConfig
from txrocketmq.proxy.accounts.sources import AccountsHere
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.proxy.grpc.server import GrpcServer
from txrocketmq.proxy.messaging import Messaging
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.metrics_port import MetricsPort
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.client import parse_address
from txrocketmq.remoting.transport.tls.renewed_context import own_contexts

log = Logger()


class Proxy:
    """One proxy. `start` listens; `port` is then the real one.

    `places` says for addresses in routes where they really are, for a proxy that does not reach
    brokers at the addresses that clients are told.
    """

    def __init__(
        self,
        config: ProxyConfig,
        messaging: MessagingConfig,
        clock: Clock | None = None,
        *,
        tls: TlsConfig | None = None,
        places: Mapping[str, str] | None = None,
        accounts: AccountsConfig | None = None,
        here: AccountsHere | None = None,
    ) -> None:
        """Raises ConfigError.

        Calls need an account if `accounts` says so: one of the brokers, or one of those `here`.
        """
        accounts = accounts or AccountsConfig()
        self.clock = clock or Clock()
        self.config = config
        self.port = config.grpc_server_port
        name_servers = [each for each in map(str.strip, config.namesrv_addr.split(";")) if each]
        if not name_servers:
            raise ConfigError(
                "namesrvAddr is not set: name servers are found by namesrvAddr in the configuration"
                " file, by --namesrvAddr, or by $NAMESRV_ADDR"
            )
        for each in name_servers:
            try:
                parse_address(each)
            except ValueError as error:
                raise ConfigError(f"namesrvAddr: {error}") from None
        self._tls = tls or TlsConfig()
        options: dict[str, Any] = {"tls": own_contexts(self._tls)} if config.use_tls else {}
        seal = accounts.seal() if here is None else here.seal
        if accounts.authentication_enabled and seal is None:
            raise ConfigError(f"authenticationEnabled {NO_CREDENTIALS}")
        self.messaging = Messaging(
            self.clock,
            messaging,
            name_servers,
            config.rocketmq_cluster_name,
            accounts=accounts,
            here=here,
            seal=seal,
            **options,
        )
        self.messaging.connections.places |= places or {}
        self.server = GrpcServer(
            self.clock, config, self.messaging.rpcs, shown_certificate(config, self._tls)
        )
        self.metrics = MetricsPort()

    def start(self, listening: IListeningPort | None = None) -> None:
        """Listens, unless there is a port that does, and begins to serve.

        Raises ConfigError and CannotListenError.
        """
        config = self.config
        self.server.encryption.prepare()
        if listening is None:
            self.port = self.server.listen(config.grpc_server_port, interface=config.bind_address)
        else:
            self.port = self.server.adopt(listening)
        self.messaging.start()
        self.metrics.open(self.clock, config, self._metrics)
        log.info(
            "the proxy listens on {host}:{port} for gRPC, in front of {namesrv}",
            host=config.bind_address,
            port=self.port,
            namesrv=config.namesrv_addr,
        )

    def stop(self) -> Deferred[Any]:
        """Lets calls end for as long as the settings say, and then closes all connections."""
        log.info("the proxy stops")
        self.metrics.close()
        ended = self.server.end(self.config.grpc_shutdown_time_seconds * 1000)
        return ended.addBoth(self._settle).addBoth(self._close)

    def _settle(self, outcome: Any) -> Deferred[Any]:
        """Waits a moment until what was popped for receives that have ended is given back."""
        settled = self.messaging.receives.settled()
        settled.addTimeout(TIMEOUT_MS / 1_000, self.clock.reactor)
        return settled.addBoth(lambda _: outcome)

    def _close(self, outcome: Any) -> Any:
        self.messaging.stop()
        self.clock.stop()
        return outcome

    def _metrics(self, labels: Mapping[str, str]) -> Any:
        # Not at the top: the package may not be there.
        from txrocketmq.proxy.metrics import ProxyMetrics  # noqa: PLC0415
        from txrocketmq.remoting.transport.peer_metrics import PeerMetrics  # noqa: PLC0415

        metrics = ProxyMetrics(
            self.server.service.counts, partial(len, self.server.peers), labels, self.messaging.gate
        )
        peers = PeerMetrics(self.server.shared, metrics.own)
        return lambda: chain(metrics.collect(), peers.collect())


def shown_certificate(config: ProxyConfig, tls: TlsConfig) -> TlsConfig:
    """Returns the settings of TLS with the certificate that the proxy's own settings name.

    Raises ConfigError.
    """
    if config.tls_test_mode_enable:
        return tls
    return dataclasses.replace(
        tls,
        test_mode=False,
        server_cert_path=config.tls_cert_path,
        server_key_path=config.tls_key_path,
        server_key_password=config.tls_key_password,
    )
