# SPDX-License-Identifier: Apache-2.0
"""The name server: builds its parts, connects them, starts and stops them.

Counterpart of NamesrvController and BrokerHousekeepingService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import KvConfig
from txrocketmq.namesrv.processors.config import ConfigProcessor
from txrocketmq.namesrv.processors.register import RegisterProcessor
from txrocketmq.namesrv.processors.route import RouteProcessor
from txrocketmq.namesrv.processors.topic import TopicProcessor
from txrocketmq.namesrv.routes.route_events import Event, MinIdChanged, TwoOfOneId
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Own, Turns
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.metrics_port import MetricsPort
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import NotifyMinBrokerIdChangeRequestHeader
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.settings.tls import TlsConfig, own_client_context
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.refusals import Refusals
from txrocketmq.remoting.transport.server import RemotingServer, configured_serialize_type

FIRST_SCAN_MS = 5_000
_TOLD_AT_ONCE = 16
"""How many events of brokers are told at once."""
TWO_MS = 600_000
"""How often, in ms, there is a warning that two brokers have one name and id."""

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
        )
        self._connections: Connections | None = None
        self._turns = Turns(partial(self.clock.later, 0), self.clock.reactor.seconds)
        self._events: deque[Event] = deque()
        """What happened to brokers and was not told yet."""
        self._is_tidying = self._is_expiring = False
        self._two = Seldom(1, TWO_MS)
        self.metrics = MetricsPort()

    def start(self) -> None:
        """Reads the key-values and listens.

        Raises KvConfigError, ConfigError and CannotListenError.
        """
        config = self.configuration.get(NamesrvConfig)
        self._server.encryption.prepare()
        self._own_tls = own_client_context(self._tls) if config.use_tls else None
        warning = self.kv.load()
        if warning:
            log.warn("key-values: {warning}", warning=warning)
        self.dispatcher = Dispatcher(
            self.registry(),
            self.clock.now_ms,
            self.clock.steady_ms,
            Failures(self.clock),
            configured_serialize_type(),
        )
        self.dispatcher.on_refusal.append(Refusals(self.clock))
        self.port = self._server.listen(
            config.listen_port,
            self.dispatcher,
            config.bind_address,
        )
        self.metrics.open(self.clock, config, self._metrics)
        self.clock.every(
            config.scan_not_active_broker_interval, self._expire, first_ms=FIRST_SCAN_MS
        )
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

        metrics = NamesrvMetrics(self.table, lambda: len(self._server.peers), labels)
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
        if self._connections is not None:
            self._connections.close()
        stopped = self._server.stop()
        self.clock.stop()
        return stopped

    def registry(self) -> Registry:
        """Makes the registry of everything that a name server serves."""
        started_ms = self.clock.steady_ms()
        turns = self._turns
        return Registry(
            RegisterProcessor(self.table, self.kv, self.configuration, self._tell, turns),
            RouteProcessor(self.table, self.kv, self.configuration, started_ms, turns),
            TopicProcessor(self.table, self.configuration, _note, self._tell, turns),
            ConfigProcessor(self.kv, self.configuration, _note),
        )

    def _disconnected(self, peer: TcpPeer, steady_ms: int) -> None:
        self.table.channel_closed(peer)
        self._tell()

    def _expire(self) -> None:
        if not self._is_expiring:
            self._is_expiring = True
            self._turns.run(self._expiring(), _log_failure)

    def _expiring(self) -> Own:
        """Closes the connections of brokers that have been silent."""
        try:
            for live in self.table.expiring(self.clock.steady_ms()):
                if live is not None:
                    self._tell()
                    if isinstance(live.channel, TcpPeer):
                        live.channel.close()
                yield
        finally:
            self._is_expiring = False
        return True

    def _tell(self) -> None:
        """Tells what happened to brokers, and cleans up after those that left.

        A part of it is done at once. What is left when thousands have left together is done in
        turns with all requests.
        """
        at_once = 0 if self._events else _TOLD_AT_ONCE
        self._events += self.table.take_events()
        for _ in range(min(at_once, len(self._events))):
            self._tell_of(self._events.popleft())
        if not self._is_tidying and (self._events or self.table.is_to_clean):
            self._is_tidying = True
            self._turns.run(self._tidying(), _log_failure)

    def _tidying(self) -> Own:
        try:
            while self._events or self.table.is_to_clean:
                yield from self.table.cleaning()
                self._events += self.table.take_events()
                while self._events:
                    self._tell_of(self._events.popleft())
                    yield
        finally:
            self._is_tidying = False
        return True

    def _tell_of(self, event: Event) -> None:
        """Logs an event, and notifies the brokers concerned."""
        if isinstance(event, TwoOfOneId):
            self._warn_of_two(event)
            return
        log.info("{event}", event=event)
        if isinstance(event, MinIdChanged):
            self._tell_brokers(event)

    def _warn_of_two(self, event: TwoOfOneId) -> None:
        """Warns every ten minutes, although both brokers register twice a minute."""
        kind = (event.broker_name, event.broker_id)
        more = self._two.more(self.clock.steady_ms(), kind)
        if more is not None:
            log.warn("{event}{more}", event=event, more=and_more(more))

    def _tell_brokers(self, event: MinIdChanged) -> None:
        if not self.configuration.get(NamesrvConfig).notify_min_broker_id_changed:
            return
        if self._connections is None:
            self._connections = Connections(self.clock, tls=self._own_tls)
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=event.min_id,
            broker_name=event.broker_name,
            min_broker_addr=event.min_address,
            offline_broker_addr=event.offline_address,
            ha_broker_addr=event.ha_address,
        )
        for address in event.told:
            self._connections.invoke_oneway(address, ha.NOTIFY_MIN_BROKER_ID_CHANGE, header)


def _note(text: str) -> None:
    log.info("{text}", text=text)


def _log_failure(error: Exception) -> None:
    log.error("what is left of brokers that went cannot be removed: {error!r}", error=error)
