# SPDX-License-Identifier: Apache-2.0
"""The ports of a broker: for all requests, the VIP port, for slaves, and for metrics.

Whoever reaches the port for slaves can read all messages, as nobody proves there who he is. So if
certificates or accounts keep strangers away from the other ports, it is opened only where
haAllowedAddresses says who may come.

The VIP port (fastRemotingServer) serves all that is not a pull. Counterpart of
initializeRemotingServer in BrokerController.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from txrocketmq.access.admin_addresses import near
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.store.formats.config import ALL_ADDRESSES
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.guards import Guard
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Gauge
from txrocketmq.remoting.host.metrics_port import MetricsPort
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.ha.port import HaPort
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.refusals import Refusals
from txrocketmq.remoting.transport.server import RemotingServer

_VIP_OFFSET = 2


class Ports:
    """The ports. `disconnected(peer, steady_ms)` is called when the connection of a peer ends."""

    def __init__(
        self,
        parts: Parts,
        clock: Clock,
        tls: TlsConfig,
        failures: Failures,
        disconnected: Callable[[TcpPeer, int], None],
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._failures = failures
        self.guards: list[Guard] = [*parts.access.guards(), *parts.role.guards()]
        """Called in this order for each request on both ports before it is served."""
        self.dispatchers: list[Dispatcher] = []
        self.metrics = MetricsPort()
        self.ha = HaPort(clock.unhurried, parts.master)
        self.ha_port = 0
        """The port for slaves; 0 if none are served."""
        self._keeps_strangers_out = tls.keeps_strangers_out or parts.access.is_guarded
        self.port = parts.config.listen_port
        """The port for all requests; the real one when it is open."""
        self.server = RemotingServer(
            clock.unhurried,
            disconnected,
            max_idle_ms=parts.config.server_channel_max_idle_time_seconds * 1000,
            tls=tls,
            max_held_bytes=lambda: parts.config.max_bytes_held_for_peers,
            balancers=Networks(parts.config.proxy_protocol_from),
            has_accounts=parts.access.is_guarded,
            max_per_address=lambda: parts.config.max_connections_per_address,
        )

    def _listen_for_slaves(self) -> None:
        config, store_config = self._parts.config, self._parts.store.config
        allowed = store_config.ha_allowed_addresses
        if not allowed or (self._keeps_strangers_out and allowed == ALL_ADDRESSES):
            return
        # Beside the main port, unless that is just any free one.
        port = store_config.ha_listen_port or (self.port + 1 if config.listen_port else 0)
        interface = store_config.ha_bind_address or config.bind_address
        is_wanted = store_config.ha_listen_port > 0
        self.ha_port = self.ha.listen(port, interface, Networks(allowed), is_wanted=is_wanted)

    @property
    def vip_port(self) -> int:
        """The VIP port."""
        return self.port - _VIP_OFFSET

    def listen(
        self, form: SerializeType, gauges: Sequence[Gauge], why_not_ready: Callable[[], str]
    ) -> None:
        """Listens on all ports; nothing is served before `use`.

        Answers have headers of this `form`. Raises CannotListenError or OSError if a port is taken.
        """
        clock, config = self._clock, self._parts.config
        refusals = Refusals(clock.unhurried)
        for _ in range(2):
            each = Dispatcher(Registry(), clock.now_ms, clock.steady_ms, self._failures, form)
            each.guards = self.guards
            each.on_refusal.append(refusals)
            self.dispatchers.append(each)
        dispatcher, vip = self.dispatchers
        self.port = self.server.listen(config.listen_port, dispatcher, config.bind_address)
        self.server.listen(self.vip_port, vip, config.bind_address)

        def collecting(labels: Mapping[str, str]) -> Any:
            return self._collecting(labels, gauges)

        self.metrics.open(clock.unhurried, config, collecting, why_not_ready)
        self._listen_for_slaves()

    def use(self, registry: Registry) -> None:
        """Serves what the registry has, and what is served from bytes."""
        self.server.raw_requests = self._parts.raw_requests
        registry = near(registry, Networks(self._parts.config.admin_addresses))
        dispatcher, vip = self.dispatchers
        self._parts.dispatcher = dispatcher
        dispatcher.use(registry)
        vip.use(registry.vip())

    def _collecting(self, labels: Mapping[str, str], gauges: Sequence[Gauge]) -> Any:
        # Not at the top: the package may not be there.
        from txrocketmq.broker.metrics import BrokerMetrics  # noqa: PLC0415
        from txrocketmq.remoting.transport.peer_metrics import PeerMetrics  # noqa: PLC0415

        times = RpcTimes()
        for dispatcher in self.dispatchers:
            dispatcher.times = times
        metrics = BrokerMetrics(self._parts, labels, self._clock.now_ms, times, gauges)
        peers = PeerMetrics(self.server.shared, metrics.own)
        return lambda: chain(metrics.collect(), peers.collect())
