# SPDX-License-Identifier: Apache-2.0
"""The name server: builds its parts, joins them, starts and stops them.

Counterpart of NamesrvController and BrokerHousekeepingService.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import KvConfig
from txrocketmq.namesrv.live_config import LiveConfig
from txrocketmq.namesrv.processors.config import ConfigProcessor
from txrocketmq.namesrv.processors.register import RegisterProcessor
from txrocketmq.namesrv.processors.route import RouteProcessor
from txrocketmq.namesrv.processors.topic import TopicProcessor
from txrocketmq.namesrv.route_table import RouteTable
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.protocol import ha
from txrocketmq.remoting.protocol.ha import NotifyMinBrokerIdChangeRequestHeader
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.server import RemotingServer, log_failure

log = Logger()


class NameServer:
    """One name server. `start` listens; `port` is then the real one."""

    def __init__(self, config: NamesrvConfig, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.live = LiveConfig(config)
        self.port = config.listen_port
        self.kv = KvConfig(Path(config.kv_config_path).expanduser())
        self.table = RouteTable(
            delete_topic_with_registration=config.delete_topic_with_broker_registration,
            support_acting_master=config.support_acting_master,
        )
        self._server = RemotingServer(self.clock, self._disconnected)
        self._connections: Connections | None = None

    def start(self) -> None:
        """Reads the key-values and listens. Raises KvConfigError, CannotListenError."""
        self.kv.load()
        registry = registry_of(self)
        config = self.live.config
        self.port = self._server.listen(
            config.listen_port,
            Dispatcher(registry, self.clock.now_ms, log_failure),
            config.bind_address,
        )
        self.clock.every(config.scan_not_active_broker_interval, self._expire)
        log.info(
            "name server listens on {host}:{port}, key-values in {path}",
            host=config.bind_address,
            port=self.port,
            path=config.kv_config_path,
        )

    def stop(self) -> Deferred[Any]:
        """Ends all connections and stops listening."""
        if self._connections is not None:
            self._connections.close()
        stopped = self._server.stop()
        self.clock.stop()
        return stopped

    def table_changed(self) -> None:
        """Tells brokers of changed smallest ids, where that is wanted (5.x)."""
        changes, self.table.min_id_changes = self.table.min_id_changes, []
        if not self.live.config.notify_min_broker_id_changed:
            return
        for change in changes:
            if self._connections is None:
                self._connections = Connections(self.clock)
            header = NotifyMinBrokerIdChangeRequestHeader(
                min_broker_id=change.min_id,
                broker_name=change.broker_name,
                min_broker_addr=change.min_address,
                offline_broker_addr=change.offline_address,
                ha_broker_addr=change.ha_address,
            )
            for address in change.addresses:
                self._connections.invoke_oneway(address, ha.NOTIFY_MIN_BROKER_ID_CHANGE, header)

    def _disconnected(self, peer: TcpPeer, now_ms: int) -> None:
        for live in self.table.channel_closed(peer):
            log.info(
                "broker {address} of {cluster} is gone", address=live.address, cluster=live.cluster
            )
        self.table_changed()

    def _expire(self) -> None:
        for live in self.table.expire(self.clock.now_ms()):
            log.warn(
                "broker {address} of {cluster} was silent for {s} s and is dropped",
                address=live.address,
                cluster=live.cluster,
                s=live.expired_ms // 1000,
            )
            if isinstance(live.channel, TcpPeer):
                live.channel.close()
        self.table_changed()


def registry_of(server: NameServer) -> Registry:
    """Everything a name server serves."""
    return Registry(
        RegisterProcessor(server.table, server.kv, server.table_changed),
        RouteProcessor(server.live, server.table, server.kv, server.clock.now_ms()),
        TopicProcessor(server.live, server.table),
        ConfigProcessor(server.live, server.kv),
    )
