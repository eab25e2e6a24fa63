# SPDX-License-Identifier: Apache-2.0
"""The name server: builds its parts, connects them, starts and stops them.

Counterpart of NamesrvController and BrokerHousekeepingService.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.access.admin_addresses import near
from txrocketmq.namesrv.accounts import NamesrvAccounts
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.housekeeping import BrokerHousekeeping
from txrocketmq.namesrv.kv_config import KvConfig
from txrocketmq.namesrv.processors.config import ConfigProcessor
from txrocketmq.namesrv.processors.register import RegisterProcessor
from txrocketmq.namesrv.processors.route import RouteProcessor
from txrocketmq.namesrv.processors.topic import TopicProcessor
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Turns
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Gauge, Opening
from txrocketmq.remoting.host.lives import Lives
from txrocketmq.remoting.host.metrics_port import MetricsPort
from txrocketmq.remoting.host.threads import Threads
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.refusals import Refusals
from txrocketmq.remoting.transport.server import RemotingServer, configured_serialize_type
from txrocketmq.remoting.transport.tls.renewed_context import own_contexts

log = Logger()


class NameServer:
    """One name server. `start` listens; `port` is then the real one."""

    def __init__(
        self,
        config: NamesrvConfig,
        clock: Clock | None = None,
        *,
        configuration: Configuration | None = None,
        tls: TlsConfig | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self._tls = tls or TlsConfig()
        self.configuration = configuration or Configuration((config,), {})
        self.port = config.listen_port
        self.kv = KvConfig(Path(config.kv_config_path))
        self.table = RouteTable(self.configuration)
        self._server = RemotingServer(
            self.clock,
            self._disconnected,
            max_idle_ms=config.server_channel_max_idle_time_seconds * 1000,
            tls=self._tls,
            max_held_bytes=lambda: self.configuration.get(NamesrvConfig).max_bytes_held_for_peers,
            balancers=Networks(config.proxy_protocol_from),
            has_accounts=config.authentication_enabled,
            max_per_address=lambda: (
                self.configuration.get(NamesrvConfig).max_connections_per_address
            ),
        )
        self._turns = Turns(partial(self.clock.later, 0), self.clock.reactor.seconds)
        self.housekeeping = BrokerHousekeeping(
            self.table, self.configuration, self.clock.steady_ms, self._turns, self._connect
        )
        in_thread = Threads(self.clock).run
        self.accounts = NamesrvAccounts(config, self.clock.steady_ms, in_thread, _access)
        self.lives = Lives(
            [self.accounts.life(), self.kv.life(), self.housekeeping.life()],
            self.clock,
            went=_went,
            in_thread=in_thread,
        )
        self.metrics = MetricsPort()

    def start(self) -> None:
        """Reads the key-values and listens.

        Raises KvConfigError, ConfigError and CannotListenError.
        """
        config = self.configuration.get(NamesrvConfig)
        self._server.encryption.prepare()
        self._own_tls = own_contexts(self._tls) if config.use_tls else None
        self.lives.load()
        for warning in self.lives.open(Opening(self.clock.now_ms())):
            log.warn("{warning}", warning=warning)
        self.dispatcher = Dispatcher(
            self.registry(),
            self.clock.now_ms,
            self.clock.steady_ms,
            Failures(self.clock),
            configured_serialize_type(),
        )
        self.guards = self.dispatcher.guards
        self.guards += self.accounts.guards()
        self.dispatcher.on_refusal.append(Refusals(self.clock))
        self.port = self._server.listen(
            config.listen_port,
            self.dispatcher,
            config.bind_address,
        )
        self.metrics.open(self.clock, config, self._metrics)
        self.lives.begin()
        log.info(
            "name server listens on {host}:{port}, key-values in {path}",
            host=config.bind_address,
            port=self.port,
            path=self.kv.path,
        )

    def _metrics(self, labels: Mapping[str, str]) -> Any:
        # Not at the top: the package may not be there.
        from txrocketmq.namesrv.metrics import NamesrvMetrics  # noqa: PLC0415
        from txrocketmq.remoting.transport.peer_metrics import PeerMetrics  # noqa: PLC0415

        connections = Gauge(
            "txrocketmq_namesrv_connections",
            lambda: len(self._server.peers),
            "connections of brokers and clients",
        )
        metrics = NamesrvMetrics([*self.lives.gauges(), connections], labels)
        peers = PeerMetrics(self._server.shared, metrics.own)
        return lambda: chain(metrics.collect(), peers.collect())

    def stop(self) -> Deferred[Any]:
        """Ends all connections and stops listening."""
        log.info("name server stops")
        done: Deferred[Any] = Deferred()
        config = self.configuration.get(NamesrvConfig)
        self._server.see_off(config, lambda: self._close().chainDeferred(done))
        return done

    def _close(self) -> Deferred[Any]:
        self.metrics.close()
        self.lives.stop(self.clock.now_ms(), _went, (OSError,))
        stopped = self._server.stop()
        self.clock.stop()
        return stopped

    def registry(self) -> Registry:
        """Makes the registry of everything that a name server serves."""
        started_ms = self.clock.steady_ms()
        turns = self._turns
        tell = self.housekeeping.tell
        registry = Registry(
            RegisterProcessor(self.table, self.kv, self.configuration, tell, turns),
            RouteProcessor(self.table, self.kv, self.configuration, started_ms, turns),
            TopicProcessor(self.table, self.configuration, _note, tell, turns),
            ConfigProcessor(self.kv, self.configuration, _note),
        )
        return near(registry, Networks(self.configuration.get(NamesrvConfig).admin_addresses))

    def _disconnected(self, peer: TcpPeer, steady_ms: int) -> None:
        self.lives.forget(peer, steady_ms)

    def _connect(self) -> Connections:
        return Connections(self.clock, tls=self._own_tls, seal=self.accounts.seal())


def _went(what: str, error: object) -> None:
    if error is not None:
        log.error("{what} failed: {error}", what=what, error=error)


def _access(text: str) -> None:
    log.warn("access: {text}", text=text)


def _note(text: str) -> None:
    log.info("{text}", text=text)
