# SPDX-License-Identifier: Apache-2.0
"""The membership of a broker: what it does as one of several, by connections that it opens itself.

Name servers are told of it, a slave follows its master, and the brokers of its name are looked
after. It begins when the broker listens, as others are told its address.

Java: BrokerOuterAPI's client, and what BrokerController starts that uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from txrocketmq.broker.cluster.outer_api import (
    Identity,
    ask_another,
    ask_ha_info,
    ask_locks,
    ask_log_end,
)
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.replication.rejoin import Rejoin, address_of_master
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.store.replication.own_records import OwnRecords
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.threads import Threads
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.client import Connections, as_deferred
from txrocketmq.remoting.transport.ha.client import HaClient
from txrocketmq.remoting.transport.tls.renewed_context import own_contexts

Restart = Callable[[], object]
"""Has the broker stopped and made anew."""


class Membership:
    """The membership of the broker with these parts."""

    def __init__(self, parts: Parts, clock: Clock, threads: Threads) -> None:
        self._parts = parts
        self._clock = clock
        self._threads = threads
        self._connections: Connections | None = None
        self._ha_client: HaClient | None = None

    def open_connections(self, tls: TlsConfig) -> None:
        """Makes what connects to others, before the store is opened: raises ConfigError."""
        parts = self._parts
        contexts = own_contexts(tls) if parts.config.use_tls else None
        self._connections = Connections(
            self._clock.unhurried, tls=contexts, seal=parts.access.seal()
        )

    def begin(self, ip: str, ha_port: int, restart: Restart | None) -> None:
        """Has the broker known, and its parts know others.

        `ip` is the address of this host, and `ha_port` the port for slaves, 0 if none are served.
        """
        parts, connections = self._parts, self._connections
        assert connections is not None
        if parts.slave is not None:
            self._follow(parts.slave, connections, restart)
        if parts.controlled is not None:
            parts.controlled.begin(parts.known_as.address, partial(ask_ha_info, connections))
        identity = self._identity(ip, ha_port)
        parts.registration.begin(
            connections, identity, self._threads.run_or_do, self._clock.steady_ms
        )
        parts.members.begin(connections, identity)
        parts.acting.begin(partial(ask_ha_info, connections))
        parts.strict_locks.begin(partial(ask_locks, connections))
        parts.escape.begin(partial(ask_another, connections))
        parts.popped_elsewhere.begin(partial(ask_another, connections))
        parts.pre_online.begin(connections.invoke, identity)

    def stop(self) -> None:
        """Ends all connections, and begins nothing more."""
        parts = self._parts
        parts.registration.forget_changes()
        if self._connections is not None:
            self._connections.close()
        if parts.slave is not None:
            parts.slave.stop()
        if self._ha_client is not None:
            self._ha_client.stop()

    def why_not_ready(self) -> str:
        """Why clients should not connect now, as a sentence; empty when they may."""
        parts = self._parts
        if parts.controlled is not None and parts.controlled.term is None:
            return "no controller has said yet which broker is master"
        if not parts.registration.is_done:
            return "no name server has registered this broker yet"
        return parts.store.why_not_writeable()

    def _follow(self, slave: Slave, connections: Connections, restart: Restart | None) -> None:
        """Has a slave follow its master.

        What only this slave has is cut off if that is wanted: with a controller, the master is
        always right.
        """
        parts = self._parts
        client = self._ha_client = HaClient(self._clock.unhurried)
        may_cut = parts.store.config.ha_truncate or parts.controlled is not None
        rejoin = Rejoin(
            OwnRecords(parts.store.log_files),
            partial(address_of_master, slave),
            connections,
            parts.call_soon,
            partial(self._cut, restart) if may_cut and restart is not None else None,
            parts.store.damaged_from,
        )
        slave.rejoin = lambda: as_deferred(rejoin.check())
        slave.begin(client.connect, partial(ask_log_end, connections))
        if parts.config_copy is not None:
            parts.config_copy.begin(connections.invoke)

    def _cut(self, restart: Restart, at: int) -> None:
        """Has the log cut by the next start, which comes at once. Raises OSError."""
        self._parts.store.order_cut(at, self._clock.now_ms())
        self._clock.later(0, restart)

    def _identity(self, ip: str, ha_port: int) -> Identity:
        parts = self._parts
        config, master = parts.config, parts.master
        if ha_port:
            if ha_port != master.store.config.ha_listen_port:
                parts.configuration.update({"haListenPort": str(ha_port)}, at_start=True)
            master.address = f"{config.broker_ip2 or ip}:{ha_port}"
        return Identity(
            config.broker_cluster_name,
            config.broker_name,
            config.broker_id,
            parts.known_as.address,
            master.address,
            config.broker_not_active_timeout_millis if config.enable_slave_acting_master else None,
        )
