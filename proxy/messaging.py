# SPDX-License-Identifier: Apache-2.0
"""All parts of the proxy that serve calls, and how they begin and end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from twisted.logger import Logger

from txrocketmq.access.audit import Audit
from txrocketmq.proxy.accounts.authority import CallAuthority
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.gate import Gate
from txrocketmq.proxy.accounts.sources import AccountsHere, AccountsOfBrokers
from txrocketmq.proxy.cluster.cluster import Cluster
from txrocketmq.proxy.cluster.groups import Groups
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.grpc.service import Rpcs
from txrocketmq.proxy.receives.acks import Acks
from txrocketmq.proxy.receives.receives import Receives
from txrocketmq.proxy.receives.renewals import Renewals
from txrocketmq.proxy.receives.settlements import Settlements
from txrocketmq.proxy.routes.route_queries import RouteQueries
from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.proxy.sends.sends import Sends
from txrocketmq.proxy.sessions.clients import Clients
from txrocketmq.proxy.sessions.registrations import Registrations
from txrocketmq.proxy.sessions.telemetry import Telemetry
from txrocketmq.proxy.transactions.check_back import CheckBack
from txrocketmq.proxy.transactions.ends import Ends
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.client import Connections

log = Logger()


class Messaging:
    """The methods of apache.rocketmq.v2.MessagingService, in front of the cluster of name servers.

    `name_servers` are their addresses; `options` are those of Connections, such as `tls`. Methods
    that are not served, which are those of lite topics and of pulling, are UNIMPLEMENTED.
    """

    def __init__(
        self,
        clock: Clock,
        config: MessagingConfig,
        name_servers: Sequence[str],
        cluster_name: str,
        connections: Connections | None = None,
        *,
        accounts: AccountsConfig | None = None,
        here: AccountsHere | None = None,
        **options: Any,
    ) -> None:
        """Calls need the accounts `here`, or those of the brokers, if `accounts` says so."""
        self.clients = Clients(clock)
        self._check_back = CheckBack(self.clients, f"{os.getpid()}@{clock.now_ms()}")
        self.dispatcher = Dispatcher(Registry(self._check_back), clock.now_ms, clock.steady_ms)
        self.connections = connections or Connections(clock, self.dispatcher, **options)
        self.cluster = cluster = Cluster(clock, self.connections, list(name_servers), config)
        self._topics = topics = Topics(cluster)
        groups = Groups(cluster, cluster_name)
        settlements = Settlements(cluster)
        self.renewals = Renewals(clock, self.clients, groups, settlements, config)
        self.receives = Receives(cluster, topics, groups, self.clients, settlements, self.renewals)
        self.gate = _gate(cluster, cluster_name, accounts, here)
        """What asks for accounts, if they are needed."""
        self.rpcs = Rpcs(
            SERVICE,
            message_type,
            RouteQueries(clock, topics, groups),
            Telemetry(self.clients, topics, groups, config),
            Registrations(self.clients),
            Sends(cluster, topics, self.clients),
            self.receives,
            Acks(clock, self.clients, settlements, self.renewals, config),
            Ends(cluster, topics, self.clients),
            guarded=None if self.gate is None else self.gate.guarded,
        )

    def start(self) -> None:
        """Begins the work that no call causes."""
        if self.gate is not None:
            self.gate.start()
        self.clients.start()
        self.renewals.start()
        self._check_back.start(self.cluster, self._topics, self.connections)

    def stop(self) -> None:
        """Ends it, and closes the connections with brokers and name servers."""
        if self.gate is not None:
            self.gate.stop()
        self._check_back.stop()
        self.renewals.stop()
        self.clients.stop()
        self.connections.close()


def _gate(
    cluster: Cluster,
    cluster_name: str,
    config: AccountsConfig | None,
    here: AccountsHere | None,
) -> Gate | None:
    if config is None or not config.authentication_enabled:
        return None
    source = AccountsOfBrokers(cluster, cluster_name, config) if here is None else here

    def tell(line: str) -> None:
        log.warn("{line}", line=line)

    clock = cluster.clock
    return Gate(clock, CallAuthority(source, config), Audit(tell, tell, clock.steady_ms))
