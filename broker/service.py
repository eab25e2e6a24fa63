# SPDX-License-Identifier: Apache-2.0
"""The broker: builds its parts, connects them, starts and stops them.

Counterpart of BrokerController, without its logic: each part gets the two or three things it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.broker.all_parts import all_parts
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.cluster.outer_api import Identity
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.parts import KnownAs, Parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import SlicedBeat, WalkBeat
from txrocketmq.broker.work.slices import Slices
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.dispatch import Dispatcher, Guard, Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Life, Opening, Periodic
from txrocketmq.remoting.host.lives import Lives
from txrocketmq.remoting.host.metrics_port import MetricsPort
from txrocketmq.remoting.host.threads import Threads
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.settings.tls import TlsConfig, own_client_context
from txrocketmq.remoting.transport.address import address_facing, address_of, host_bytes
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.refusals import Refusals
from txrocketmq.remoting.transport.server import RemotingServer, configured_serialize_type

LAST_JOBS_MS = 10_000
"""How long `stop` waits for work in threads, in ms."""
_VIP_OFFSET, _HA_OFFSET = 2, 1

log = Logger()


class Broker:
    """One broker. `start` opens the store, listens and registers; `port` is then the real one."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: StoreConfig,
        clock: Clock | None = None,
        configuration: Configuration | None = None,
        tls: TlsConfig | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.port = config.listen_port
        self._tls = tls or TlsConfig()
        self.metrics = MetricsPort()
        self._threads = Threads(self.clock)
        self.guards: list[Guard] = []
        """Called in this order for each request on both ports before it is served."""
        self.parts = Parts(
            configuration=configuration or Configuration((config, store_config), {}),
            clock=self.clock.now_ms,
            steady_clock=self.clock.steady_ms,
            wake_soon=self._wake_soon,
            call_soon=lambda call: self.clock.later(0, call),
            later=self.clock.later,
            in_thread=self._threads.run,
            walks=Walks(partial(self.clock.later, 0), self.clock.reactor.seconds),
        )
        self.server = RemotingServer(
            self.clock.unhurried,
            self._disconnected,
            max_idle_ms=config.server_channel_max_idle_time_seconds * 1000,
            tls=self._tls,
            max_held_bytes=lambda: self.parts.config.max_bytes_held_for_peers,
        )
        self._connections: Connections | None = None
        self._refusals = Refusals(self.clock.unhurried)
        self._failures = Failures(self.clock.unhurried)
        self._journal = Journal(self.parts)
        self.lives = self._lives_of([])
        """Those of the parts, from the start on."""

    def _lives_of(self, lives: list[Life]) -> Lives:
        return Lives(
            lives,
            self.clock,
            went=self._journal.went,
            in_thread=self._threads.run,
            work_of=self._work_of,
        )

    @property
    def address(self) -> str:
        """The address that clients are given, once the broker has started."""
        return self.parts.known_as.address

    # ------------------------------------------------------- start and stop

    def start(self) -> None:
        """Starts the broker. Raises OSError, ValueError, CannotListenError with advice."""
        parts = self.parts
        config = parts.config
        ip = config.broker_ip1 or address_facing(config.namesrv_addr)
        own_host = address_of(ip, "brokerIP1")
        self.server.encryption.prepare()
        tls = own_client_context(self._tls) if config.use_tls else None
        self._connections = Connections(self.clock.unhurried, tls=tls)
        self.lives = self._lives_of(all_parts(parts, self._journal))
        self.lives.load()
        warnings = [file.warning for file in parts.files if file.warning]
        now_ms, steady_ms = self.clock.now_ms(), self.clock.steady_ms()
        try:
            recovered = parts.store.load(
                now_ms, steady_ms, parts.topics.known(), parts.topics.has_batches
            )
        except StoreError as error:
            raise OSError(str(error)) from error
        warnings += self.lives.open(Opening(now_ms, after_crash=not recovered.was_closed))
        notices.store_opened(parts.store.config.store_path_root_dir, recovered, warnings)
        form = configured_serialize_type()
        # No request finds the registries empty: nothing is read before this method has returned.
        dispatcher, vip = self._dispatchers(form)
        vip_port = self._listen(dispatcher, vip)
        # From here on these count as settings: remarks and answers to tools contain them.
        own = {} if config.broker_ip1 else {"brokerIP1": ip}
        own |= {} if config.broker_ip2 else {"brokerIP2": ip}
        if own:
            parts.configuration.update(own, at_start=True)
        told = config.advertised_port or self.port
        parts.known_as = KnownAs(f"{ip}:{told}", host_bytes(own_host, told))
        registry = Registry(*all_processors(parts, form))
        dispatcher.use(registry)
        vip.use(registry.vip())
        # One thread is started now: when memory is short later, it would be too late.
        maybeDeferred(self.clock.in_thread, int).addErrback(
            lambda why: self._journal.went("starting a thread", why.getErrorMessage())
        )
        self.lives.begin()
        log.info(
            "broker {name} of {cluster} listens on {port} (VIP {vip}) and registers as {address}",
            name=config.broker_name,
            cluster=config.broker_cluster_name,
            port=self.port,
            vip=vip_port,
            address=self.address,
        )
        parts.registration.begin(
            self._connections, self._identity(ip), self._threads.run_or_do, self.clock.steady_ms
        )

    def _dispatchers(self, form: SerializeType) -> tuple[Dispatcher, Dispatcher]:
        """Makes the dispatchers of the two ports, which have no processors yet."""
        times = self.clock.now_ms, self.clock.steady_ms
        dispatcher = Dispatcher(Registry(), *times, self._failures, form)
        vip = Dispatcher(Registry(), *times, self._failures, form)
        for each in (dispatcher, vip):
            each.guards = self.guards
            each.on_refusal.append(self._refusals)
            self._journal.dispatchers.append(each)
        return dispatcher, vip

    def _listen(self, dispatcher: Dispatcher, vip: Dispatcher) -> int:
        """Listens on all ports and returns the VIP port; closes the store if a port is taken."""
        config = self.parts.config
        try:
            self.port = self.server.listen(config.listen_port, dispatcher, config.bind_address)
            vip_port = self.port - _VIP_OFFSET
            self.server.listen(vip_port, vip, config.bind_address)
            self.metrics.open(self.clock.unhurried, config, self._metrics, self.why_not_ready)
        except (CannotListenError, OSError):
            self.parts.store.stop(self.clock.now_ms())
            raise
        return vip_port

    def _metrics(self, labels: Mapping[str, str]) -> Any:
        # Not at the top: the package may not be there.
        from txrocketmq.broker.metrics import BrokerMetrics  # noqa: PLC0415
        from txrocketmq.remoting.transport.peer_metrics import PeerMetrics  # noqa: PLC0415

        times = RpcTimes()
        for dispatcher in self._journal.dispatchers:
            dispatcher.times = times
        metrics = BrokerMetrics(self.parts, labels, self.clock.now_ms, times, self.lives.gauges())
        peers = PeerMetrics(self.server.shared, metrics.own)
        return lambda: chain(metrics.collect(), peers.collect())

    def why_not_ready(self) -> str:
        """Why clients should not connect now, as a sentence; empty when they may."""
        if not self.parts.registration.is_done:
            return "no name server has registered this broker yet"
        return self.parts.store.why_not_writeable()

    def _identity(self, ip: str) -> Identity:
        config, store_config = self.parts.config, self.parts.store.config
        if store_config.ha_listen_port <= 0:
            ha_port = self.port + _HA_OFFSET
            self.parts.configuration.update({"haListenPort": str(ha_port)}, at_start=True)
        return Identity(
            config.broker_cluster_name,
            config.broker_name,
            config.broker_id,
            self.address,
            f"{config.broker_ip2 or ip}:{store_config.ha_listen_port}",
        )

    def _work_of(self, beat: Periodic) -> Callable[[], object] | None:
        """What is done for beats that take many turns."""
        match beat:
            case SlicedBeat(work=work):
                clock = self.clock
                return Slices(work, clock.now_ms, clock.steady_ms, self.parts.call_soon).begin
            case WalkBeat():
                return partial(self._walk, beat)
        return None

    def _walk(self, beat: WalkBeat) -> None:
        steps = beat.steps(self.clock.now_ms(), self.clock.steady_ms())
        if steps is not None:
            if beat.because:
                steps = self._journal.attributed(steps, beat.because)
            self.parts.walks.run(steps, partial(self._failures.by_itself, beat.what))

    def stop(self) -> Deferred[None]:
        """Unregisters, stops listening, writes everything and closes the store, in this order."""
        done: Deferred[None] = Deferred()
        close = partial(self._close, done)
        name_servers = self.parts.registration.name_servers
        if name_servers is None:
            close()
        else:
            name_servers.unregister(partial(self.server.see_off, self.parts.config, close))
        return done

    def _close(self, done: Deferred[None]) -> None:
        self.parts.registration.forget_changes()
        self.clock.stop()
        self.metrics.close()
        if self._connections is not None:
            self._connections.close()

        def closed(_: Any) -> None:
            if late.active():
                late.cancel()
            # Else it never started, and the store is not ours.
            if self.parts.registration.name_servers is not None:
                now_ms = self.clock.now_ms()
                self.lives.stop(now_ms, notices.not_written, (OSError, StoreError))
            log.info("broker {name} has stopped", name=self.parts.config.broker_name)
            done.callback(None)

        read: Deferred[None] = Deferred()
        self.parts.patience.stop(lambda: read.callback(None))
        waiting = DeferredList(
            [self.server.stop(), read, *self._threads.running], consumeErrors=True
        )

        def too_late() -> None:
            self._threads.do_here()
            waiting.cancel()

        late = self.clock.later(LAST_JOBS_MS, too_late)
        waiting.addBoth(closed)

    def _disconnected(self, peer: TcpPeer, steady_ms: int) -> None:
        with self._journal.because(f"the end of the connection of {peer.remote_address}"):
            self.lives.forget(peer, steady_ms)

    def _wake_soon(self) -> None:
        self.clock.later(0, self.parts.polling.run_woken)
